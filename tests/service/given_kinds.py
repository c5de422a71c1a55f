"""A kind of job whose course the request decides: for tests of everything around the work."""

import datetime as dt
import os
import signal
import time
from decimal import Decimal
from typing import Any

from sqlmodel import Session
from ulid import ULID

from service.jobs.kind import Attempt, JobKind, Progress
from service.problems import UnavailableError
from service.recommendations.tables import RecommendationTable
from service.wire.quantities import Request


class Asked(Request):
    tag: str = ""
    busy_s: float = 0.0
    dies: bool = False
    refused: bool = False
    broken: bool = False


def _compute(asked: Asked, attempt: Attempt) -> dict[str, Any]:
    steps = max(1, round(asked.busy_s / 0.05))
    for step in range(steps):
        attempt.report(Progress("working", usd_per_hour=100.0 - step, bound_usd_per_hour=float("-inf")))
        time.sleep(asked.busy_s / steps)
    if asked.dies:
        os.kill(os.getpid(), signal.SIGKILL)
    if asked.refused:
        raise UnavailableError("no plan in the time given")
    if asked.broken:
        raise ZeroDivisionError
    return {"tag": asked.tag}


def _store(session: Session, asked: Asked, answer: dict[str, Any], now: dt.datetime) -> str:
    """A recommendation of nothing, marked with the job's tag."""
    assert answer == {"tag": asked.tag}
    row = RecommendationTable(
        id=f"rec_{ULID()}", created_at=now, outcome="infeasible", objective="cost", usd_per_hour=Decimal(0),
        price_as_of=now, catalog_digest="", version="test", request={"workloads": [], "tag": asked.tag}, result={},
    )  # fmt: skip
    session.add(row)
    session.flush()
    return row.id


GIVEN = JobKind("given", Asked, _compute, _store, "/v1/recommendations/{id}")
KINDS: dict[str, JobKind[Any]] = {GIVEN.name: GIVEN}
