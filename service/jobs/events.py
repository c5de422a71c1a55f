"""What happened to a job, numbered in the order in which it happened: the source of its server-sent events.

An event is appended under the lock on the job's row, in the transaction that makes the change: a reader that has seen
number n misses nothing by asking for what comes after n.
"""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.jobs.tables import JobEventTable, JobTable


def append_state(session: Session, row: JobTable, now: dt.datetime, detail: str = "") -> None:
    """The job's new state. detail: why, where it is not what everybody expects."""
    data: dict[str, Any] = {"job": row.id, "state": row.state, "attempts": row.attempts}
    if row.cancel_requested_at is not None:
        data["cancel_requested"] = True
    if detail:
        data["detail"] = detail
    if row.result is not None:
        data["result"] = row.result
    if row.problem is not None:
        data["problem"] = row.problem
    _append(session, row, "state", data, now)


def append_progress(session: Session, row: JobTable, now: dt.datetime) -> None:
    _append(session, row, "progress", {"job": row.id, **(row.progress or {})}, now)


def _append(session: Session, row: JobTable, event: str, data: dict[str, Any], now: dt.datetime) -> None:
    row.events += 1
    session.add(row)
    session.add(JobEventTable(job_id=row.id, number=row.events, at=now, event=event, data=data))
    session.flush()
