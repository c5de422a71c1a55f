"""SQL about stored fleets."""

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from service.fleets.tables import FleetTable

LONG = ("request", "result")


def list_fleets(session: Session, *, before: str | None, limit: int, outcome: str | None = None) -> list[FleetTable]:
    """Newest first: ids sort by time. Requests and results, which may be megabytes, are not read."""
    wanted = select(FleetTable).order_by(col(FleetTable.id).desc()).limit(limit)
    wanted = wanted.options(*(defer(getattr(FleetTable, name)) for name in LONG))
    if before is not None:
        wanted = wanted.where(FleetTable.id < before)
    if outcome is not None:
        wanted = wanted.where(FleetTable.outcome == outcome)
    return list(session.exec(wanted).all())


def fleet_by_id(session: Session, fleet_id: str) -> FleetTable | None:
    return session.get(FleetTable, fleet_id)
