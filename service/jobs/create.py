"""Queue a job."""

import datetime as dt
from typing import Any

from sqlmodel import Session
from ulid import ULID

from service.access import Caller
from service.jobs.delivery import announce
from service.jobs.events import append_state
from service.jobs.kind import JobKind
from service.jobs.queries import count_live
from service.jobs.tables import JobTable
from service.problems import TooManyRequestsError
from service.settings import Settings

RETRY_AFTER_S = 30


def enqueue(
    session: Session, kind: JobKind[Any], request: dict[str, Any], caller: Caller, settings: Settings, now: dt.datetime
) -> JobTable:
    """Store a job for a worker. ``request`` is the checked body as JSON, with its defaults filled in.

    Raises TooManyRequestsError where the caller, or all callers together, have as many unfinished jobs as they may.
    """
    if count_live(session, caller.name) >= settings.job_queue_per_caller:
        raise TooManyRequestsError(
            f"you have {settings.job_queue_per_caller} unfinished jobs; wait for one, or cancel one",
            retry_after_s=RETRY_AFTER_S,
        )
    if count_live(session) >= settings.job_queue:
        raise TooManyRequestsError("the queue of jobs is full", retry_after_s=RETRY_AFTER_S)
    row = JobTable(
        id=f"job_{ULID()}",
        kind=kind.name,
        state="queued",
        caller=caller.name,
        created_at=now,
        expires_at=now + dt.timedelta(seconds=settings.job_expiry_s),
        request=request,
    )
    session.add(row)
    session.flush()
    append_state(session, row, now)
    announce(session)
    return row
