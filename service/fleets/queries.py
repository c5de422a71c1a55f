"""SQL about stored fleets."""

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.fleets.tables import FleetTable
from service.listing import Listed, listed
from service.nodes.tables import NodeTable

LONG = ("request", "result")


def list_fleets(session: Session, *, before: str | None, limit: int, outcome: str | None = None) -> Listed[FleetTable]:
    """Newest first: ids sort by time. Requests and results, which may be megabytes, are not read."""
    wanted = select(FleetTable)
    short = [defer(getattr(FleetTable, name)) for name in LONG]
    if outcome is not None:
        wanted = wanted.where(FleetTable.outcome == outcome)
    return listed(session, wanted, FleetTable.id, limit=limit, after=before, newest_first=True, options=short)


def fleet_by_id(session: Session, fleet_id: str) -> FleetTable | None:
    return session.get(FleetTable, fleet_id)


def machines_known(session: Session) -> list[tuple[NodeTable, DeviceTable]]:
    """Every machine of the catalog with its device."""
    wanted = select(NodeTable, DeviceTable).join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
    return list(session.exec(wanted.order_by(col(NodeTable.id))).all())
