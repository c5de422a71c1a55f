"""SQL about offers and price steps."""

import datetime as dt
from collections.abc import Iterable

from sqlalchemy import func
from sqlmodel import Session, col, select

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
) -> list[tuple[OfferTable, NodeTable]]:
    wanted = (
        select(OfferTable, NodeTable)
        .join(NodeTable, col(OfferTable.node_id) == NodeTable.id)
        .order_by(OfferTable.id)
        .limit(limit)
    )
    if after is not None:
        wanted = wanted.where(OfferTable.id > after)
    if provider is not None:
        wanted = wanted.where(OfferTable.provider == provider)
    if region is not None:
        wanted = wanted.where(OfferTable.region == region)
    if commitment is not None:
        wanted = wanted.where(OfferTable.commitment == commitment)
    if node is not None:
        wanted = wanted.where(OfferTable.node_id == node)
    if device is not None:
        wanted = wanted.where(NodeTable.device_id == device)
    if origin is not None:
        wanted = wanted.where(OfferTable.origin == origin)
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


def price_steps(session: Session, offer_id: str) -> list[PriceStepTable]:
    wanted = (
        select(PriceStepTable)
        .where(PriceStepTable.offer_id == offer_id)
        .order_by(col(PriceStepTable.valid_from), col(PriceStepTable.recorded_at))
    )
    return list(session.exec(wanted).all())
