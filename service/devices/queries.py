"""SQL about devices."""

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.listing import Listed, listed


def list_devices(
    session: Session,
    *,
    after: str | None,
    limit: int,
    vendor: str | None = None,
    category: str | None = None,
    status: str | None = None,
    family: str | None = None,
    device_class: str | None = None,
) -> Listed[DeviceTable]:
    """Names are compared without regard to case."""
    wanted = select(DeviceTable)
    for column, value in (
        (DeviceTable.vendor, vendor),
        (DeviceTable.category, category),
        (DeviceTable.status, status),
        (DeviceTable.family, family),
        (DeviceTable.device_class, device_class),
    ):
        if value is not None:
            wanted = wanted.where(func.lower(column) == value.lower())
    return listed(session, wanted, DeviceTable.id, limit=limit, after=after)


def device_filter_values(session: Session, name: str) -> list[str]:
    """What devices have in a column that lists are filtered by."""
    column = {"vendor": DeviceTable.vendor, "category": DeviceTable.category, "status": DeviceTable.status,
              "family": DeviceTable.family}[name]  # fmt: skip
    return sorted(session.exec(select(column).distinct()).all())


def device_by_id(session: Session, device_id: str) -> DeviceTable | None:
    return session.get(DeviceTable, device_id)


def all_devices(session: Session) -> list[DeviceTable]:
    return list(session.exec(select(DeviceTable).order_by(DeviceTable.id)).all())


def device_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(DeviceTable.id)).order_by(DeviceTable.id)).all())
