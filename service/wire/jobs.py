"""Jobs: what a request that takes long answers, and what becomes of it."""

from typing import Any, Literal

from service.wire.problems import ProblemOut
from service.wire.quantities import Answer, Instant, Request, Usd

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]


class ProgressOut(Answer):
    """How far the work is. The amounts are those of the best plan so far; null where there is none, or no bound yet."""

    stage: str
    usd_per_hour: Usd | None
    bound_usd_per_hour: Usd | None
    gap_fraction: float | None
    at: Instant


class JobSummaryOut(Answer):
    id: str
    kind: str
    state: JobState
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    expires_at: Instant
    """A job that no worker has taken by then expires."""
    attempts: int
    """How often a worker took it up: more than one after a worker died."""
    cancel_requested: bool
    progress: ProgressOut | None
    result: str | None
    """Address of the stored result; null until the job succeeded."""
    problem: ProblemOut | None
    """Why it failed: what the request would have been answered with."""
    events: str
    """Address of the job's server-sent events."""


class JobOut(JobSummaryOut):
    """``request``: what was asked, with its defaults filled in."""

    request: dict[str, Any]


class JobIn(Request):
    """What a worker hands to the process that computes a job."""

    id: str
    kind: str
    request: dict[str, Any]
    asked_at: Instant


class JobEventOut(Answer):
    """One server-sent event: ``number`` is its id, ``data`` its JSON."""

    number: int
    at: Instant
    event: Literal["state", "progress"]
    data: dict[str, Any]
