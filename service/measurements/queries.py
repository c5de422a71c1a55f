"""SQL about wanted measurements and agents."""

import datetime as dt
from collections.abc import Sequence

from sqlmodel import Session, col, or_, select

from service.listing import Listed, listed
from service.measurements.tables import AgentTable, DeviceMeasurementTable, LeaseTable, MeasurementTable


def next_takeable(session: Session, device: str, devices: int, now: dt.datetime) -> MeasurementTable | None:
    """The most urgent measurement this device can take, locked; what another agent is just taking is passed over."""
    free = (col(MeasurementTable.status) == "queued") | (
        (col(MeasurementTable.status) == "leased") & (col(MeasurementTable.lease_expires_at) <= now)
    )
    wanted = (
        select(MeasurementTable)
        .where(free, MeasurementTable.device_id == device, col(MeasurementTable.devices) <= devices)
        .order_by(col(MeasurementTable.priority).desc(), col(MeasurementTable.id))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    return session.exec(wanted).first()


def measurement_for_update(session: Session, measurement_id: str) -> MeasurementTable | None:
    wanted = select(MeasurementTable).where(MeasurementTable.id == measurement_id).with_for_update()
    return session.exec(wanted).one_or_none()


def measurement_by_id(session: Session, measurement_id: str) -> MeasurementTable | None:
    return session.get(MeasurementTable, measurement_id)


def list_measurements(
    session: Session, *, after: str | None, limit: int, status: str | None, device: str | None, now: dt.datetime
) -> Listed[MeasurementTable]:
    """In order of arrival. A lease that ran out counts as queued."""
    wanted = select(MeasurementTable)
    if device is not None:
        wanted = wanted.where(MeasurementTable.device_id == device)
    ran_out = (col(MeasurementTable.status) == "leased") & (col(MeasurementTable.lease_expires_at) <= now)
    if status == "queued":
        wanted = wanted.where(or_(col(MeasurementTable.status) == "queued", ran_out))
    elif status == "leased":
        wanted = wanted.where(col(MeasurementTable.status) == "leased", col(MeasurementTable.lease_expires_at) > now)
    elif status is not None:
        wanted = wanted.where(MeasurementTable.status == status)
    return listed(session, wanted, MeasurementTable.id, limit=limit, after=after)


def leases_of(session: Session, measurement_ids: Sequence[str]) -> dict[str, list[LeaseTable]]:
    """Leases by measurement, oldest first."""
    wanted = select(LeaseTable).where(col(LeaseTable.measurement_id).in_(measurement_ids)).order_by(col(LeaseTable.id))
    found: dict[str, list[LeaseTable]] = {}
    for lease in session.exec(wanted).all():
        found.setdefault(lease.measurement_id, []).append(lease)
    return found


def lease_by_id(session: Session, lease_id: str) -> LeaseTable | None:
    return session.get(LeaseTable, lease_id)


def agent_by_id(session: Session, agent_id: str) -> AgentTable | None:
    return session.get(AgentTable, agent_id)


def list_agents(session: Session, *, after: str | None, limit: int) -> Listed[AgentTable]:
    wanted = select(AgentTable)
    return listed(session, wanted, AgentTable.id, limit=limit, after=after)


def device_measurement_by_digest(session: Session, digest: str) -> DeviceMeasurementTable | None:
    wanted = select(DeviceMeasurementTable).where(DeviceMeasurementTable.digest == digest)
    return session.exec(wanted).one_or_none()


def accepted_figures(session: Session, device: str, most: int) -> list[DeviceMeasurementTable]:
    """The newest accepted micro-measurements of a device."""
    wanted = (
        select(DeviceMeasurementTable)
        .where(DeviceMeasurementTable.device_id == device, DeviceMeasurementTable.status == "accepted")
        .order_by(col(DeviceMeasurementTable.id).desc())
        .limit(most)
    )
    return list(session.exec(wanted).all())


def list_device_measurements(
    session: Session, *, after: str | None, limit: int, device: str | None, status: str | None
) -> Listed[DeviceMeasurementTable]:
    wanted = select(DeviceMeasurementTable)
    if device is not None:
        wanted = wanted.where(DeviceMeasurementTable.device_id == device)
    if status is not None:
        wanted = wanted.where(DeviceMeasurementTable.status == status)
    return listed(session, wanted, DeviceMeasurementTable.id, limit=limit, after=after)
