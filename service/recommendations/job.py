"""Recommendations as jobs: the same plan, computed by a worker."""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.answers.post import AnswerKind
from service.answers.store import added
from service.jobs.kind import Attempt, JobKind, Progress
from service.recommendations.create import (
    PlanningContext,
    create_recommendation,
    provenance,
    read_inputs,
    recommendation_row,
)
from service.recommendations.plan import plan, planning_input
from service.recommendations.present import present_recommendation
from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import InputsOut, RecommendationIn, ResultOut
from solver.planning.types import SearchProgress


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
    result, inputs = ResultOut.model_validate(answer["result"]), InputsOut.model_validate(answer["inputs"])
    return added(session, recommendation_row(asked, result, inputs, now))


RECOMMENDATION_JOB = JobKind(
    name="recommendation",
    request=RecommendationIn,
    compute=_compute,
    store=_store,
    result_address="/v1/recommendations/{id}",
)


def _checked(asked: RecommendationIn, context: PlanningContext) -> RecommendationIn:
    with context.database.reading() as session:
        inputs = read_inputs(session, asked, asked.price_as_of or context.clock(), context)
        planning_input(inputs)
    return inputs.request


RECOMMENDATION = AnswerKind(
    noun="recommendation",
    address="/v1/recommendations",
    table=RecommendationTable,
    job=RECOMMENDATION_JOB,
    present=present_recommendation,
    create=create_recommendation,
    checked=_checked,
    streams=lambda asked: sum(len(workload.streams) for workload in asked.workloads),
)
