"""GET and POST /v1/offers, GET /v1/offers/unpriced, POST /v1/offers/{id}/prices."""

from functools import partial
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response, status

from service.access import Editor, Reader
from service.clock import Clock
from service.database import ReadSession, WriteSession
from service.devices.resolve_names import device_meant
from service.filters import refuse_unknown_filters
from service.guarded_route import GuardedRoute
from service.idempotency.keys import IdempotencyKey, claim, named_request, settle
from service.offers.create import create_offer, create_price
from service.offers.present import present_offer, present_step
from service.offers.queries import (
    list_offers,
    machine_of,
    offer_by_id,
    offer_filter_values,
    offer_ids,
    price_step_by_id,
    price_steps,
    prices_at,
    rented_offers,
)
from service.offers.unpriced import unpriced_terms
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.wire.devices import DeviceClass
from service.wire.offers import OfferIn, OfferOut, PriceIn, PriceStepOut, PriceStepsOut, UnpricedOut
from service.wire.pages import Page
from service.wire.providers import ProviderClass
from service.wire.quantities import Commitment, Instant

router = APIRouter(prefix="/v1/offers", tags=["catalog"], route_class=GuardedRoute)
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
    provider_class: ProviderClass | None = None,
    device_class: DeviceClass | None = None,
    named_place: bool | None = None,
    price_as_of: PriceAsOf = None,
    believed_at: BelievedAt = None,
) -> Page[OfferOut]:
    meant = device_meant(session, device)
    found = list_offers(
        session, after=last_id("next", after), limit=limit + 1, provider=provider, region=region,
        commitment=commitment, node=node, device=meant, origin=origin,
        provider_class=provider_class, device_class=device_class, named_place=named_place,
    )  # fmt: skip
    if not found.rows:
        refuse_unknown_filters(
            partial(offer_filter_values, session),
            provider=provider,
            region=region,
            node=node,
            device=meant,
            origin=origin,
        )
    page, cursor = cut_page([offer for offer, _, _ in found.rows], limit)
    machines = {offer.id: (node_row, device_row) for offer, node_row, device_row in found.rows}
    instant = price_as_of or _clock(request)()
    prices = prices_at(session, instant, offers=[o.id for o in page], believed_at=believed_at)
    shown = [present_offer(o, machines[o.id], prices.get(o.id), instant) for o in page]
    return Page(items=shown, next=cursor, total=found.total)


@router.get("/unpriced", summary="List one- and three-year terms of which no price is known")
def get_unpriced(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    provider: Filter = None,
    device: Filter = None,
    provider_class: ProviderClass | None = None,
    price_as_of: PriceAsOf = None,
) -> Page[UnpricedOut]:
    instant = price_as_of or _clock(request)()
    rows = rented_offers(
        session, provider=provider, device=device_meant(session, device), provider_class=provider_class
    )
    start = last_id("next", after)
    found = unpriced_terms(rows, prices_at(session, instant), instant)
    page, cursor = cut_page([entry for entry in found if start is None or entry.id > start][: limit + 1], limit)
    return Page(items=page, next=cursor, total=len(found))


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
    return present_offer(offer, machine_of(session, offer), price, instant)


@router.get("/{offer_id}/prices", summary="The price history of one offer")
def get_prices(_caller: Reader, session: ReadSession, offer_id: str) -> PriceStepsOut:
    if offer_by_id(session, offer_id) is None:
        raise not_found("offer", offer_id, offer_ids(session))
    return PriceStepsOut(items=[present_step(s) for s in price_steps(session, offer_id)])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Add own hardware or an own contract",
    responses={200: {"model": OfferOut, "description": "It was stored before"}},
)
def post_offer(
    request: Request,
    caller: Editor,
    session: WriteSession,
    asked: OfferIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> OfferOut:
    clock = _clock(request)
    named = named_request(request, caller, idempotency_key, asked)
    first = claim(session, named, clock())
    stored = offer_by_id(session, first) if first is not None else None
    offer, is_new = (stored, False) if stored is not None else create_offer(session, asked, clock)
    session.flush()
    settle(session, named, offer.id)
    response.headers["Location"] = f"/v1/offers/{quote(offer.id)}"
    if not is_new:
        response.status_code = status.HTTP_200_OK
    now = clock()
    price = prices_at(session, now, offers=[offer.id]).get(offer.id)
    return present_offer(offer, machine_of(session, offer), price, now)


@router.post(
    "/{offer_id}/prices",
    status_code=status.HTTP_201_CREATED,
    summary="Append a price step",
    responses={200: {"model": PriceStepOut, "description": "It was stored before"}},
)
def post_price(
    request: Request,
    caller: Editor,
    session: WriteSession,
    offer_id: str,
    asked: PriceIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> PriceStepOut:
    clock = _clock(request)
    named = named_request(request, caller, idempotency_key, asked)
    first = claim(session, named, clock())
    stored = price_step_by_id(session, int(first)) if first is not None else None
    step, is_new = (stored, False) if stored is not None else create_price(session, offer_id, asked, clock)
    session.flush()
    settle(session, named, str(step.id))
    response.headers["Location"] = f"/v1/offers/{quote(offer_id)}/prices"
    if not is_new:
        response.status_code = status.HTTP_200_OK
    return present_step(step)
