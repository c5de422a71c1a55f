"""SQL that an import needs: in bulk, since lists have thousands of lines."""

import datetime as dt
from collections.abc import Iterable

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.offers.tables import OfferTable, PriceStepTable
from service.recommendations.tables import RecommendationTable

BATCH = 500
"""Values in one IN list; SQLite takes 32,766, PostgreSQL plans short lists better."""


def nodes_of_instances(session: Session, providers: Iterable[str]) -> dict[tuple[str, str], str]:
    """Which node an instance type of a provider is, as offers already say."""
    rows = session.exec(
        select(OfferTable.provider, OfferTable.instance, func.min(OfferTable.node_id))
        .where(col(OfferTable.provider).in_(set(providers)))
        .group_by(col(OfferTable.provider), col(OfferTable.instance))
    ).all()
    return {(provider, instance): node for provider, instance, node in rows}


def stored_ids(session: Session, ids: Iterable[str]) -> set[str]:
    wanted = sorted(ids)
    found: set[str] = set()
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        found.update(session.exec(select(col(OfferTable.id)).where(col(OfferTable.id).in_(batch))).all())
    return found


def steps_at_instant(session: Session, offers: Iterable[str], instant: dt.datetime) -> dict[str, PriceStepTable]:
    """What is stored for exactly this instant, in its latest correction."""
    wanted = sorted(offers)
    found: dict[str, PriceStepTable] = {}
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        rows = session.exec(
            select(PriceStepTable)
            .where(col(PriceStepTable.offer_id).in_(batch), PriceStepTable.valid_from == instant)
            .order_by(col(PriceStepTable.recorded_at))
        ).all()
        found.update({row.offer_id: row for row in rows})
    return found


def all_recommendations(session: Session) -> list[RecommendationTable]:
    """Newest first."""
    return list(session.exec(select(RecommendationTable).order_by(col(RecommendationTable.id).desc())).all())
