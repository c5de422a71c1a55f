"""The life of a job.

    queued ──claim──▶ running ──succeed──▶ succeeded
     │ │  ▲             │ │ └───fail─────▶ failed
     │ │  └──lease lost─┘ └──cancelled───▶ cancelled
     │ └──cancel──▶ cancelled
     └──nobody took it──▶ expired

A worker that claims a job holds a lease on it and extends it while it works. When the lease runs out the job goes back
into the queue, and after ``job_most_attempts`` it fails. Every change names the lease it is made under and is refused
when the job has another one by now: a worker that was thought dead and is not cannot store a second result.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlmodel import Session
from ulid import ULID

from service.idempotency.queries import point_keys
from service.jobs.delivery import announce
from service.jobs.events import append_progress, append_state
from service.jobs.kind import JobKind
from service.jobs.queries import TERMINAL, forget_jobs, job_by_id, job_for_update, next_queued, overdue_jobs
from service.jobs.tables import JobTable
from service.problems import PROBLEM_TYPES, ConflictError, NotFoundError
from service.settings import Settings

MOST_SWEPT = 100
"""Jobs changed in one sweep: the transaction stays short."""

Verdict = Literal["go_on", "cancelled", "lost"]


@dataclass(frozen=True)
class Claim:
    """A job as its worker holds it."""

    job_id: str
    lease_id: str
    kind: str
    request: dict[str, Any]
    asked_at: dt.datetime


def claim(session: Session, kinds: Sequence[str], worker: str, lease_s: float, now: dt.datetime) -> Claim | None:
    """Take the oldest job that waits; None when there is none."""
    row = next_queued(session, kinds, now)
    if row is None:
        return None
    row.state, row.attempts, row.worker = "running", row.attempts + 1, worker
    row.lease_id, row.lease_expires_at = f"lease_{ULID()}", now + dt.timedelta(seconds=lease_s)
    row.started_at = row.started_at or now
    append_state(session, row, now)
    return Claim(row.id, row.lease_id, row.kind, row.request, row.created_at)


def verdict(session: Session, held: Claim) -> Verdict:
    """What the worker should do, without writing anything."""
    row = job_by_id(session, held.job_id)
    if row is None or row.state != "running" or row.lease_id != held.lease_id:
        return "lost"
    return "go_on" if row.cancel_requested_at is None else "cancelled"


def heartbeat(
    session: Session, held: Claim, lease_s: float, progress: dict[str, Any] | None, now: dt.datetime
) -> Verdict:
    """Extend the lease and note the progress, if there is any new; what the worker should do."""
    row = _held(session, held)
    if row is None:
        return "lost"
    if row.cancel_requested_at is not None:
        return "cancelled"
    row.lease_expires_at = now + dt.timedelta(seconds=lease_s)
    session.add(row)
    if progress is not None:
        row.progress = progress
        append_progress(session, row, now)
    session.flush()
    return "go_on"


def succeed(session: Session, held: Claim, kind: JobKind[Any], answer: dict[str, Any], now: dt.datetime) -> Verdict:
    """Store the answer and end the job, together or not at all. A job to be cancelled is, and nothing is stored."""
    row = _held(session, held)
    if row is None:
        return "lost"
    if row.cancel_requested_at is not None:
        _end(session, row, "cancelled", now)
        return "cancelled"
    result_id = kind.store(session, kind.request.model_validate(row.request), answer, now)
    row.result = kind.result_address.format(id=result_id)
    point_keys(session, row.id, result_id)
    _end(session, row, "succeeded", now)
    return "go_on"


def fail(session: Session, held: Claim, problem: dict[str, Any], now: dt.datetime) -> Verdict:
    """The work itself has no answer: trying again would end the same way."""
    row = _held(session, held)
    if row is None:
        return "lost"
    if row.cancel_requested_at is not None:
        _end(session, row, "cancelled", now)
        return "cancelled"
    row.problem = problem
    _end(session, row, "failed", now)
    return "go_on"


def stopped(session: Session, held: Claim, now: dt.datetime) -> None:
    """The worker has stopped the work because the job is to be cancelled."""
    row = _held(session, held)
    if row is not None:
        _end(session, row, "cancelled", now)


def hand_back(session: Session, held: Claim, now: dt.datetime) -> None:
    """The worker ends in good order before the work does: another takes it up, and this attempt does not count."""
    row = _held(session, held)
    if row is not None:
        row.attempts -= 1
        _again(session, row, now, "its worker was shut down")


def attempt_died(session: Session, held: Claim, settings: Settings, detail: str, now: dt.datetime) -> None:
    """The process that did the work is gone (killed, out of memory): tried again, in the end given up."""
    row = _held(session, held)
    if row is not None:
        _after_loss(session, row, settings, detail, now)


def cancel(session: Session, job_id: str, now: dt.datetime) -> JobTable:
    """A queued job is cancelled; a running one will be by its worker. Again changes nothing.

    Raises NotFoundError, and ConflictError where the job has ended otherwise.
    """
    row = job_for_update(session, job_id)
    if row is None:
        raise NotFoundError(f"no job {job_id[:80]!r}")
    if row.state == "queued":
        row.cancel_requested_at = now
        _end(session, row, "cancelled", now)
    elif row.state == "running" and row.cancel_requested_at is None:
        row.cancel_requested_at = now
        append_state(session, row, now)
    elif row.state in TERMINAL and row.state != "cancelled":
        raise ConflictError(f"job {job_id!r} has {row.state} already; nothing is left to cancel")
    return row


def sweep(session: Session, settings: Settings, now: dt.datetime) -> int:
    """Put right what no worker will: lost leases, jobs nobody took in time, jobs kept long enough. How many."""
    overdue = overdue_jobs(session, now, MOST_SWEPT)
    for row in overdue:
        if row.state == "queued":
            _end(session, row, "expired", now, "no worker took it in time")
        else:
            _after_loss(session, row, settings, "its worker was not heard of any more", now)
    return len(overdue) + forget_jobs(session, forget_before(settings, now), MOST_SWEPT)


def forget_before(settings: Settings, now: dt.datetime) -> dt.datetime:
    return now - dt.timedelta(days=settings.job_retention_days)


def _held(session: Session, held: Claim) -> JobTable | None:
    """The row, locked, if the lease is still its newest. One that ran out counts until somebody else takes over."""
    row = job_for_update(session, held.job_id)
    return row if row is not None and row.state == "running" and row.lease_id == held.lease_id else None


def _after_loss(session: Session, row: JobTable, settings: Settings, detail: str, now: dt.datetime) -> None:
    if row.cancel_requested_at is not None:
        _end(session, row, "cancelled", now)
    elif row.attempts >= settings.job_most_attempts:
        kind = PROBLEM_TYPES["worker-lost"]
        row.problem = {
            "type": f"/problems/{kind.slug}", "title": kind.title, "status": kind.status,
            "detail": f"given up after {row.attempts} attempts; of the last one: {detail}",
        }  # fmt: skip
        _end(session, row, "failed", now)
    else:
        _again(session, row, now, detail)


def _again(session: Session, row: JobTable, now: dt.datetime, detail: str) -> None:
    row.state, row.lease_id, row.lease_expires_at, row.worker = "queued", None, None, None
    row.progress = None
    append_state(session, row, now, detail)
    announce(session)


def _end(session: Session, row: JobTable, state: str, now: dt.datetime, detail: str = "") -> None:
    row.state, row.finished_at, row.lease_expires_at = state, now, None
    append_state(session, row, now, detail)
