"""SQL about jobs and their events."""

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, func
from sqlmodel import Session, col, or_, select

from service.idempotency.queries import forget_keys
from service.jobs.tables import JobEventTable, JobTable
from service.listing import Listed, listed

LIVE = ("queued", "running")
TERMINAL = ("succeeded", "failed", "cancelled", "expired")


def job_by_id(session: Session, job_id: str) -> JobTable | None:
    return session.get(JobTable, job_id)


def job_for_update(session: Session, job_id: str) -> JobTable | None:
    wanted = select(JobTable).where(JobTable.id == job_id).with_for_update()
    return session.exec(wanted).one_or_none()


def list_jobs(
    session: Session, *, before: str | None, limit: int, state: str | None, kind: str | None
) -> Listed[JobTable]:
    """Newest first: ids sort by time."""
    wanted = select(JobTable)
    if state is not None:
        wanted = wanted.where(JobTable.state == state)
    if kind is not None:
        wanted = wanted.where(JobTable.kind == kind)
    return listed(session, wanted, JobTable.id, limit=limit, after=before, newest_first=True)


def next_queued(session: Session, kinds: Sequence[str], now: dt.datetime) -> JobTable | None:
    """The oldest job that waits, locked; what another worker is just taking is passed over."""
    wanted = (
        select(JobTable)
        .where(JobTable.state == "queued", col(JobTable.kind).in_(kinds), ~_late(now))
        .order_by(col(JobTable.id))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    return session.exec(wanted).first()


def any_queued(session: Session, kinds: Sequence[str], now: dt.datetime) -> bool:
    wanted = select(JobTable.id).where(JobTable.state == "queued", col(JobTable.kind).in_(kinds), ~_late(now))
    return session.exec(wanted.limit(1)).first() is not None


def overdue_jobs(session: Session, now: dt.datetime, limit: int) -> list[JobTable]:
    """Jobs whose lease ran out, and jobs nobody took in time; locked, except those that another is just changing."""
    wanted = select(JobTable).where(_lost(now) | _late(now)).order_by(col(JobTable.id)).limit(limit)
    return list(session.exec(wanted.with_for_update(skip_locked=True)).all())


def any_overdue(session: Session, now: dt.datetime, forget_before: dt.datetime) -> bool:
    """Whether a sweep has anything to do."""
    old = col(JobTable.state).in_(TERMINAL) & (col(JobTable.finished_at) <= forget_before)
    return session.exec(select(JobTable.id).where(or_(_lost(now), _late(now), old)).limit(1)).first() is not None


def _lost(now: dt.datetime) -> ColumnElement[bool]:
    """Running, and not heard of within its lease."""
    return (col(JobTable.state) == "running") & (col(JobTable.lease_expires_at) <= now)


def _late(now: dt.datetime) -> ColumnElement[bool]:
    """Never started, and too late to start now."""
    never_started = (col(JobTable.state) == "queued") & col(JobTable.started_at).is_(None)
    return never_started & (col(JobTable.expires_at) <= now)


def count_live(session: Session, caller: str | None = None) -> int:
    """Jobs queued or running, of one caller or of all."""
    wanted = select(func.count()).select_from(JobTable).where(col(JobTable.state).in_(LIVE))
    if caller is not None:
        wanted = wanted.where(JobTable.caller == caller)
    return session.exec(wanted).one()


def count_queued(session: Session) -> int:
    return session.exec(select(func.count()).select_from(JobTable).where(JobTable.state == "queued")).one()


def events_after(session: Session, job_id: str, number: int, limit: int) -> list[JobEventTable]:
    wanted = (
        select(JobEventTable)
        .where(JobEventTable.job_id == job_id, col(JobEventTable.number) > number)
        .order_by(col(JobEventTable.number))
        .limit(limit)
    )
    return list(session.exec(wanted).all())


def forget_jobs(session: Session, finished_before: dt.datetime, limit: int) -> int:
    """Delete jobs that ended before, with the keys of those without a result; results stay. How many."""
    old = (
        select(JobTable.id)
        .where(col(JobTable.state).in_(TERMINAL), col(JobTable.finished_at) <= finished_before)
        .order_by(col(JobTable.id))
        .limit(limit)
    )
    ids = list(session.exec(old).all())
    if ids:
        forget_keys(session, ids)
        connection = session.connection()
        connection.execute(delete(JobEventTable).where(col(JobEventTable.job_id).in_(ids)))
        connection.execute(delete(JobTable).where(col(JobTable.id).in_(ids)))
    return len(ids)
