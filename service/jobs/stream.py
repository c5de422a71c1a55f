"""A job's events as server-sent events (WHATWG HTML, section 9.2).

Events are read from the database, so that any process of the service can serve a job that any worker computes, and a
client that comes back with ``Last-Event-ID`` goes on where it was, also after a restart.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool

from service.clock import rfc3339
from service.database import Database
from service.jobs.present import present_event
from service.jobs.queries import TERMINAL, events_after, job_by_id
from service.wire.jobs import JobEventOut

LOOK_EVERY_S = 0.25
HEARTBEAT_EVERY_S = 15.0
"""A comment, so that nobody between takes a quiet stream for a dead one."""
MOST_AT_ONCE = 200
RECONNECT_AFTER_MS = 1_000


@dataclass(frozen=True)
class Pace:
    look_every_s: float = LOOK_EVERY_S
    heartbeat_every_s: float = HEARTBEAT_EVERY_S


PACE = Pace()


async def event_stream(
    database: Database, job_id: str, after: int, is_stopping: Callable[[], bool], pace: Pace = PACE
) -> AsyncIterator[str]:
    """The events after number ``after``, as they come, to the job's end; earlier when the service stops."""
    yield f"retry: {RECONNECT_AFTER_MS}\n\n"
    said_at = time.monotonic()
    while not is_stopping():
        events, is_over = await run_in_threadpool(_look, database, job_id, after)
        for event in events:
            yield event_text(event)
            after = event.number
        if is_over:
            return
        if events:
            said_at = time.monotonic()
        elif time.monotonic() - said_at >= pace.heartbeat_every_s:
            yield ": working\n\n"
            said_at = time.monotonic()
        if len(events) < MOST_AT_ONCE:
            await asyncio.sleep(pace.look_every_s)


def event_text(event: JobEventOut) -> str:
    """
    >>> import datetime as dt
    >>> at = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    >>> print(event_text(JobEventOut(number=3, at=at, event="state", data={"state": "running"})), end="")
    id: 3
    event: state
    data: {"state": "running", "at": "2026-11-21T00:00:00Z"}
    <BLANKLINE>
    """
    return f"id: {event.number}\nevent: {event.event}\ndata: {json.dumps(event.data | {'at': rfc3339(event.at)})}\n\n"


def _look(database: Database, job_id: str, after: int) -> tuple[list[JobEventOut], bool]:
    """What is new, and whether it is the last that will be."""
    with database.reading() as session:
        row = job_by_id(session, job_id)
        if row is None:
            return [], True  # kept long enough, and forgotten
        last, ended = row.events, row.state in TERMINAL
        events = [present_event(e) for e in events_after(session, job_id, after, MOST_AT_ONCE)]
    seen = events[-1].number if events else after
    return events, ended and seen >= last
