"""GET and POST /v1/offers, POST /v1/offers/{id}/prices."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status

from service.access import Editor, Reader
from service.clock import Clock
from service.database import ReadSession, WriteSession
from service.nodes.tables import NodeTable
from service.offers.create import create_offer, create_price
from service.offers.present import present_offer, present_step
from service.offers.queries import list_offers, offer_by_id, offer_ids, price_steps, prices_at
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.wire.offers import OfferIn, OfferOut, PriceIn, PriceStepOut, PriceStepsOut
from service.wire.pages import Page
from service.wire.quantities import Commitment, Instant

router = APIRouter(prefix="/v1/offers", tags=["catalog"])
Filter = Annotated[str | None, Query(max_length=300)]
PriceAsOf = Annotated[Instant | None, Query(description="Prices in force at this instant; now when left out.")]
BelievedAt = Annotated[Instant | None, Query(description="As recorded by this instant: later corrections left out.")]


def _clock(request: Request) -> Clock:
    clock: Clock = request.app.state.clock
    return clock


@router.get("", summary="List offers with their prices")
def get_offers(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    provider: Filter = None,
    region: Filter = None,
    commitment: Commitment | None = None,
    node: Filter = None,
    device: Filter = None,
    origin: Filter = None,
    price_as_of: PriceAsOf = None,
    believed_at: BelievedAt = None,
) -> Page[OfferOut]:
    rows = list_offers(
        session, after=last_id("next", after), limit=limit + 1, provider=provider, region=region,
        commitment=commitment, node=node, device=device, origin=origin,
    )  # fmt: skip
    page, cursor = cut_page([offer for offer, _ in rows], limit)
    nodes = {offer.id: node_row for offer, node_row in rows}
    instant = price_as_of or _clock(request)()
    prices = prices_at(session, instant, offers=[o.id for o in page], believed_at=believed_at)
    return Page(items=[present_offer(o, nodes[o.id], prices.get(o.id), instant) for o in page], next=cursor)


@router.get("/{offer_id}", summary="One offer with its price")
def get_offer(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    offer_id: str,
    price_as_of: PriceAsOf = None,
    believed_at: BelievedAt = None,
) -> OfferOut:
    offer = offer_by_id(session, offer_id)
    if offer is None:
        raise not_found("offer", offer_id, offer_ids(session))
    instant = price_as_of or _clock(request)()
    price = prices_at(session, instant, offers=[offer_id], believed_at=believed_at).get(offer_id)
    return present_offer(offer, session.get_one(NodeTable, offer.node_id), price, instant)


@router.get("/{offer_id}/prices", summary="The price history of one offer")
def get_prices(_caller: Reader, session: ReadSession, offer_id: str) -> PriceStepsOut:
    if offer_by_id(session, offer_id) is None:
        raise not_found("offer", offer_id, offer_ids(session))
    return PriceStepsOut(items=[present_step(s) for s in price_steps(session, offer_id)])


@router.post("", status_code=status.HTTP_201_CREATED, summary="Add own hardware or an own contract")
def post_offer(
    request: Request, _caller: Editor, session: WriteSession, asked: OfferIn, response: Response
) -> OfferOut:
    clock = _clock(request)
    offer, is_new = create_offer(session, asked, clock)
    session.flush()
    if not is_new:
        response.status_code = status.HTTP_200_OK
    now = clock()
    price = prices_at(session, now, offers=[offer.id]).get(offer.id)
    return present_offer(offer, session.get_one(NodeTable, offer.node_id), price, now)


@router.post("/{offer_id}/prices", status_code=status.HTTP_201_CREATED, summary="Append a price step")
def post_price(
    request: Request, _caller: Editor, session: WriteSession, offer_id: str, asked: PriceIn, response: Response
) -> PriceStepOut:
    step, is_new = create_price(session, offer_id, asked, _clock(request))
    if not is_new:
        response.status_code = status.HTTP_200_OK
    return present_step(step)
