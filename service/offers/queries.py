"""SQL about offers and price steps."""

import datetime as dt
from collections.abc import Iterable

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.listing import Listed, listed
from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable, PriceStepTable


def list_offers(
    session: Session,
    *,
    after: str | None,
    limit: int,
    provider: str | None = None,
    region: str | None = None,
    commitment: str | None = None,
    node: str | None = None,
    device: str | None = None,
    origin: str | None = None,
    provider_class: str | None = None,
    device_class: str | None = None,
    named_place: bool | None = None,
) -> Listed[tuple[OfferTable, NodeTable, DeviceTable]]:
    """Names are compared without regard to case."""
    wanted = (
        select(OfferTable, NodeTable, DeviceTable)
        .join(NodeTable, col(OfferTable.node_id) == NodeTable.id)
        .join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
    )
    for column, value in (
        (OfferTable.provider, provider),
        (OfferTable.region, region),
        (OfferTable.commitment, commitment),
        (OfferTable.node_id, node),
        (NodeTable.device_id, device),
        (OfferTable.origin, origin),
        (OfferTable.provider_class, provider_class),
        (DeviceTable.device_class, device_class),
    ):
        if value is not None:
            wanted = wanted.where(func.lower(column) == value.lower())
    if named_place is not None:
        wanted = wanted.where(OfferTable.named_place == named_place)
    return listed(session, wanted, OfferTable.id, limit=limit, after=after)


def offer_filter_values(session: Session, name: str) -> list[str]:
    """What a filter of offers may be: every machine and device, with or without an offer, and what offers have."""
    if name == "origin":
        return ["catalog", "user"]
    column = {
        "provider": OfferTable.provider,
        "region": OfferTable.region,
        "node": NodeTable.id,
        "device": DeviceTable.id,
    }[name]
    return sorted(session.exec(select(column).distinct()).all())


def machine_of(session: Session, offer: OfferTable) -> tuple[NodeTable, DeviceTable]:
    node = session.get_one(NodeTable, offer.node_id)
    return node, session.get_one(DeviceTable, node.device_id)


def rented_offers(
    session: Session, *, provider: str | None = None, device: str | None = None, provider_class: str | None = None
) -> list[tuple[OfferTable, NodeTable]]:
    """Every offer of the providers the catalog knows, purchases left out, in the order of their ids."""
    wanted = (
        select(OfferTable, NodeTable)
        .join(NodeTable, col(OfferTable.node_id) == NodeTable.id)
        .where(OfferTable.commitment != "purchase", col(OfferTable.provider_class).is_not(None))
        .order_by(OfferTable.id)
    )
    for column, value in (
        (OfferTable.provider, provider),
        (NodeTable.device_id, device),
        (OfferTable.provider_class, provider_class),
    ):
        if value is not None:
            wanted = wanted.where(func.lower(column) == value.lower())
    return list(session.exec(wanted).all())


def offer_by_id(session: Session, offer_id: str) -> OfferTable | None:
    return session.get(OfferTable, offer_id)


def all_offers(session: Session) -> list[OfferTable]:
    return list(session.exec(select(OfferTable).order_by(OfferTable.id)).all())


def offer_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(OfferTable.id)).order_by(OfferTable.id)).all())


def prices_at(
    session: Session,
    instant: dt.datetime,
    *,
    offers: Iterable[str] | None = None,
    believed_at: dt.datetime | None = None,
) -> dict[str, PriceStepTable]:
    """The step in force for each offer at ``instant``: the last one valid by then, in its latest correction.

    offers: only these (None: all). believed_at: as known then; steps recorded later are left out.
    """
    newest_first = (col(PriceStepTable.valid_from).desc(), col(PriceStepTable.recorded_at).desc())
    ranked = select(
        PriceStepTable.id,
        func.row_number().over(partition_by=col(PriceStepTable.offer_id), order_by=newest_first).label("place"),
    ).where(PriceStepTable.valid_from <= instant)
    if offers is not None:
        ranked = ranked.where(col(PriceStepTable.offer_id).in_(list(offers)))
    if believed_at is not None:
        ranked = ranked.where(PriceStepTable.recorded_at <= believed_at)
    inner = ranked.subquery()
    wanted = select(PriceStepTable).join(inner, col(PriceStepTable.id) == inner.c.id).where(inner.c.place == 1)
    return {step.offer_id: step for step in session.exec(wanted).all()}


def last_price_change(session: Session, instant: dt.datetime) -> dt.datetime | None:
    """The last instant up to ``instant`` at which any price changed: between two such instants no price does."""
    newest = (
        select(PriceStepTable.valid_from)
        .where(PriceStepTable.valid_from <= instant)
        .order_by(col(PriceStepTable.valid_from).desc())
        .limit(1)
    )
    return session.exec(newest).first()


def believed_step(session: Session, offer_id: str, valid_from: dt.datetime) -> PriceStepTable | None:
    """What is stored for exactly this instant, in its latest correction."""
    newest = (
        select(PriceStepTable)
        .where(PriceStepTable.offer_id == offer_id, PriceStepTable.valid_from == valid_from)
        .order_by(col(PriceStepTable.recorded_at).desc())
        .limit(1)
    )
    return session.exec(newest).first()


def price_step_by_id(session: Session, step_id: int) -> PriceStepTable | None:
    return session.get(PriceStepTable, step_id)


def price_steps(session: Session, offer_id: str) -> list[PriceStepTable]:
    wanted = (
        select(PriceStepTable)
        .where(PriceStepTable.offer_id == offer_id)
        .order_by(col(PriceStepTable.valid_from), col(PriceStepTable.recorded_at))
    )
    return list(session.exec(wanted).all())
