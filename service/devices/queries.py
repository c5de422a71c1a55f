"""SQL about devices."""

from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable


def list_devices(
    session: Session,
    *,
    after: str | None,
    limit: int,
    vendor: str | None = None,
    category: str | None = None,
    status: str | None = None,
    family: str | None = None,
) -> list[DeviceTable]:
    wanted = select(DeviceTable).order_by(DeviceTable.id).limit(limit)
    if after is not None:
        wanted = wanted.where(DeviceTable.id > after)
    if vendor is not None:
        wanted = wanted.where(DeviceTable.vendor == vendor)
    if category is not None:
        wanted = wanted.where(DeviceTable.category == category)
    if status is not None:
        wanted = wanted.where(DeviceTable.status == status)
    if family is not None:
        wanted = wanted.where(DeviceTable.family == family)
    return list(session.exec(wanted).all())


def device_by_id(session: Session, device_id: str) -> DeviceTable | None:
    return session.get(DeviceTable, device_id)


def all_devices(session: Session) -> list[DeviceTable]:
    return list(session.exec(select(DeviceTable).order_by(DeviceTable.id)).all())


def device_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(DeviceTable.id)).order_by(DeviceTable.id)).all())
