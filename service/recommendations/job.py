"""Recommendations as jobs: the same plan, computed by a worker."""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.access import Caller
from service.idempotency.keys import Named, claim_or_stop, settle
from service.jobs.create import enqueue
from service.jobs.kind import Attempt, JobKind, Progress
from service.jobs.tables import JobTable
from service.prefer import Preference
from service.recommendations.create import PlanningContext, provenance, read_inputs, recommendation_row
from service.recommendations.plan import plan, planning_input
from service.settings import Settings
from service.wire.recommendations import InputsOut, RecommendationIn, ResultOut
from solver.planning.types import SearchProgress


def answered_later(asked: RecommendationIn, preference: Preference, settings: Settings) -> bool:
    """Whether a request becomes a job: the client prefers it, or states a size or a time that may take long.

    A client that would rather wait says so (``Prefer: wait=60``); that counts where it covers the time limit.
    """
    if preference.respond_async:
        return True
    if preference.wait_s is not None and preference.wait_s >= asked.time_limit_s:
        return False
    kinds_of_requests = sum(len(workload.streams) for workload in asked.workloads)
    return asked.time_limit_s > settings.synchronous_time_limit_s or kinds_of_requests > settings.synchronous_workloads


def queue_recommendation(
    asked: RecommendationIn, caller: Caller, context: PlanningContext, settings: Settings, named: Named | None = None
) -> JobTable:
    """Checks what the synchronous route checks, so that a mistake is answered now and not by a failed job.

    Raises StoredBeforeError when the same request under the same key was queued or stored meanwhile.
    """
    now = context.clock()
    with context.database.reading() as session:
        inputs = read_inputs(session, asked, asked.price_as_of or now, context)
        planning_input(inputs)
    with context.database.writing() as session:
        claim_or_stop(session, named, now)
        row = enqueue(session, RECOMMENDATION_JOB, inputs.request.model_dump(mode="json"), caller, settings, now)
        settle(session, named, row.id)
        session.expunge(row)
        return row


def _compute(asked: RecommendationIn, attempt: Attempt) -> dict[str, Any]:
    with attempt.bench.database.reading() as session:
        inputs = read_inputs(session, asked, asked.price_as_of or attempt.asked_at, attempt.bench)
    result = plan(inputs, lambda found: attempt.report(_progress(found, asked)))
    return {"result": result.model_dump(mode="json"), "inputs": provenance(inputs).model_dump(mode="json")}


def _progress(found: SearchProgress, asked: RecommendationIn) -> Progress:
    """The bound of another objective than cost is not in dollars."""
    bound = found.bound if asked.objective == "cost" else None
    return Progress(found.stage, found.usd_per_hour, bound, found.gap_fraction)


def _store(session: Session, asked: RecommendationIn, answer: dict[str, Any], now: dt.datetime) -> str:
    row = recommendation_row(
        asked, ResultOut.model_validate(answer["result"]), InputsOut.model_validate(answer["inputs"]), now
    )
    session.add(row)
    session.flush()
    return row.id


RECOMMENDATION_JOB = JobKind(
    name="recommendation",
    request=RecommendationIn,
    compute=_compute,
    store=_store,
    result_address="/v1/recommendations/{id}",
)
