"""What a kind of job is: how its request is computed, and how the answer is stored.

To add one: write a ``JobKind`` beside the resource it belongs to, list it in ``service.job_kinds``, and let the
resource's route call ``service.jobs.create.enqueue``. docs/jobs.md says it step by step.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlmodel import Session

from service.database import Database
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.spaces import SpaceCache

Asked = TypeVar("Asked", bound=BaseModel)


@dataclass(frozen=True)
class Progress:
    """How far a job is. stage: a short word. Amounts are of the best plan so far; None where there is none yet."""

    stage: str
    usd_per_hour: float | None = None
    bound_usd_per_hour: float | None = None
    gap_fraction: float | None = None


@dataclass(frozen=True)
class WorkerContext:
    """What computing needs besides the request. It lives as long as its process, so caches serve the next job too."""

    database: Database
    snapshots: SnapshotCache
    spaces: SpaceCache


@dataclass(frozen=True)
class Attempt:
    """One attempt at a job, as ``JobKind.compute`` sees it.

    asked_at: when the job was created. Prices and everything else that changes with time are taken at this instant, so
    that a second attempt computes what the first one would have.
    report: says how far the work is; cheap, may be called at any time.
    """

    job_id: str
    asked_at: dt.datetime
    bench: WorkerContext
    report: Callable[[Progress], None]


@dataclass(frozen=True)
class JobKind(Generic[Asked]):
    """A registered kind of job.

    request: the shape of the body; what is stored is its JSON.
    compute: the work. Runs in a process of its own, which is killed when the job is cancelled or its worker ends, and
        is run again when the worker died: it must not write anything. Answers JSON. What it raises (ProblemError,
        solver errors) becomes the failed job's problem.
    store: keeps the answer, in the transaction that ends the job, exactly once: the id of the stored result.
    result_address: address of a result, with ``{id}``.
    """

    name: str
    request: type[Asked]
    compute: Callable[[Asked, Attempt], dict[str, Any]]
    store: Callable[[Session, Asked, dict[str, Any], dt.datetime], str]
    result_address: str
