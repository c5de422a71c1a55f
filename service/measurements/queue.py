"""Leases: an agent takes a measurement for a time, says that it is still at it, and ends it.

    queued ──lease──▶ leased ──complete──▶ done
      ▲                 │
      └──fail, expiry───┴──after most_attempts──▶ dead

Only the newest lease of a measurement counts: an agent that lost its lease is told so with 409. Delivery is
at-least-once; results are idempotent by their digest, so a measurement taken twice harms nothing.
"""

import datetime as dt

from sqlmodel import Session
from ulid import ULID

from service.benchmarks.known import KnownNames
from service.benchmarks.normalise import with_forced_defaults
from service.benchmarks.queries import benchmark_by_id
from service.measurements.queries import (
    lease_by_id,
    measurement_for_update,
    next_takeable,
)
from service.measurements.tables import LeaseTable, MeasurementTable
from service.problems import ConflictError, FieldError, InvalidFieldsError, NotFoundError, unknown_name
from service.wire.benchmarks import BenchmarkContext, BenchmarkResults, BenchmarkUpload
from service.wire.measurements import LeaseIn, MeasurementIn


def enqueue(
    session: Session, asked: MeasurementIn, caller: str, known: KnownNames, now: dt.datetime
) -> MeasurementTable:
    """Queue a measurement. Raises InvalidFieldsError for unknown names and for a layout that does not add up."""
    errors = [
        FieldError(unknown_name(field, name, names), pointer=f"/{field}")
        for field, name, names in (
            ("device", asked.device, known.device_memory_gib),
            ("llm", asked.llm, known.hugging_face_ids),
        )
        if name not in names
    ]
    if errors:
        raise InvalidFieldsError(errors)
    row = MeasurementTable(
        id=f"meas_{ULID()}",
        created_at=now,
        caller=caller,
        device_id=asked.device,
        devices=asked.devices,
        llm_id=asked.llm,
        priority=asked.priority,
        most_attempts=asked.most_attempts,
        status="queued",
        wanted=_completed(asked).model_dump(mode="json"),
    )
    session.add(row)
    session.flush()
    return row


def _completed(asked: MeasurementIn) -> MeasurementIn:
    """With layout and precision filled in as for an upload."""
    context = BenchmarkContext(
        device=asked.device, devices=asked.devices, llm=asked.llm, engine=asked.engine, layout=asked.layout,
        precision=asked.precision,
    )  # fmt: skip
    probe = BenchmarkUpload(context=context, results=BenchmarkResults(requests_per_s=0.0))
    try:
        full = with_forced_defaults(probe).context
    except InvalidFieldsError as error:
        raise InvalidFieldsError(
            FieldError(e.detail, pointer=(e.pointer or "").removeprefix("/context")) for e in error.field_errors
        ) from None
    return asked.model_copy(update={"layout": full.layout, "precision": full.precision})


def take(session: Session, asked: LeaseIn, now: dt.datetime) -> tuple[MeasurementTable, LeaseTable] | None:
    """Lease the most urgent measurement; None when there is nothing for this device.

    A measurement whose lease ran out too often is buried on the way.
    """
    while (row := next_takeable(session, asked.device, asked.devices, now)) is not None:
        if row.status == "leased":
            _end_lease(session, row, "expired", "no heartbeat in time", row.lease_expires_at or now)
        if row.attempts >= row.most_attempts:
            _give_up(session, row)
            continue
        lease = LeaseTable(
            id=f"lease_{ULID()}", measurement_id=row.id, agent_id=asked.agent.id, started_at=now, outcome="running"
        )
        row.status, row.attempts = "leased", row.attempts + 1
        row.lease_id, row.lease_expires_at = lease.id, now + dt.timedelta(seconds=asked.lease_s)
        session.add(row)
        session.flush()
        session.add(lease)
        session.flush()
        return row, lease
    return None


def extend(session: Session, measurement_id: str, lease_id: str, lease_s: float, now: dt.datetime) -> MeasurementTable:
    """A heartbeat. Raises ConflictError when the lease is no longer this agent's."""
    row = _held(session, measurement_id, lease_id, now)
    row.lease_expires_at = now + dt.timedelta(seconds=lease_s)
    session.add(row)
    session.flush()
    return row


def complete(
    session: Session, measurement_id: str, lease_id: str, benchmarks: tuple[str, ...], now: dt.datetime
) -> MeasurementTable:
    """Done. The same answer again changes nothing. Raises InvalidFieldsError for results that are not stored."""
    row = _row(session, measurement_id)
    if row.status == "done" and row.lease_id == lease_id:
        return row
    row = _held(session, measurement_id, lease_id, now, may_be_late=True)
    unknown = [
        FieldError(f"no benchmark {name!r}", pointer=f"/benchmarks/{number}")
        for number, name in enumerate(benchmarks)
        if benchmark_by_id(session, name) is None
    ]
    if unknown:
        raise InvalidFieldsError(unknown)
    _end_lease(session, row, "done", "", now)
    row.status, row.benchmarks, row.lease_expires_at = "done", list(benchmarks), None
    session.add(row)
    session.flush()
    return row


def fail(session: Session, measurement_id: str, lease_id: str, reason: str, now: dt.datetime) -> MeasurementTable:
    """Back into the queue, or given up when it failed often enough."""
    row = _held(session, measurement_id, lease_id, now, may_be_late=True)
    _end_lease(session, row, "failed", reason, now)
    if row.attempts >= row.most_attempts:
        _give_up(session, row)
    else:
        row.status, row.lease_id, row.lease_expires_at = "queued", None, None
        session.add(row)
        session.flush()
    return row


def cancel(session: Session, measurement_id: str) -> MeasurementTable:
    """Take a measurement out of the queue. Raises ConflictError when it is over."""
    row = _row(session, measurement_id)
    if row.status in ("done", "dead", "cancelled"):
        raise ConflictError(f"measurement {measurement_id!r} is {row.status}")
    row.status, row.lease_expires_at = "cancelled", None
    session.add(row)
    session.flush()
    return row


def _row(session: Session, measurement_id: str) -> MeasurementTable:
    row = measurement_for_update(session, measurement_id)
    if row is None:
        raise NotFoundError(f"no measurement {measurement_id[:80]!r}")
    return row


def _held(
    session: Session, measurement_id: str, lease_id: str, now: dt.datetime, *, may_be_late: bool = False
) -> MeasurementTable:
    """The row, if the lease is still its newest. A late answer is welcome as long as nobody else has taken over."""
    row = _row(session, measurement_id)
    if row.status != "leased" or row.lease_id != lease_id:
        raise ConflictError(f"the lease on {measurement_id!r} is over: the measurement is {row.status}")
    if not may_be_late and row.lease_expires_at is not None and row.lease_expires_at <= now:
        raise ConflictError(f"the lease on {measurement_id!r} ran out")
    return row


def _end_lease(session: Session, row: MeasurementTable, outcome: str, detail: str, at: dt.datetime) -> None:
    lease = lease_by_id(session, row.lease_id) if row.lease_id else None
    if lease is not None:
        lease.outcome, lease.detail, lease.ended_at = outcome, detail, at
        session.add(lease)


def _give_up(session: Session, row: MeasurementTable) -> None:
    row.status, row.lease_expires_at = "dead", None
    session.add(row)
    session.flush()
