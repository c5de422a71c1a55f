"""Training plans as jobs: the same plan, computed by a worker."""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.answers.post import AnswerKind
from service.answers.store import added
from service.idempotency.keys import Named
from service.jobs.kind import Attempt, JobKind, Progress
from service.recommendations.create import PlanningContext
from service.training.present import present_stored
from service.training.tables import TrainingPlanTable
from service.wire.training_plans import TrainingRecommendationIn, TrainingRecommendationOut, TrainingResultOut

# What plans loads the solvers: imported when a plan is asked for.


def _compute(asked: TrainingRecommendationIn, attempt: Attempt) -> dict[str, Any]:
    from service.training.plans import prepare_plan, result_of

    prepared = prepare_plan(asked, attempt.bench, attempt.asked_at)
    attempt.report(Progress("columns"))
    result = result_of(prepared)
    return {"result": result.model_dump(mode="json"), "request": prepared.fixed.model_dump(mode="json")}


def _store(session: Session, _asked: TrainingRecommendationIn, answer: dict[str, Any], now: dt.datetime) -> str:
    from service.training.plans import plan_row

    fixed = TrainingRecommendationIn.model_validate(answer["request"])
    return added(session, plan_row(fixed, TrainingResultOut.model_validate(answer["result"]), now))


async def _create(
    asked: TrainingRecommendationIn, context: PlanningContext, named: Named | None
) -> TrainingRecommendationOut:
    from service.training.plans import create_training_plan

    return await create_training_plan(asked, context, named)


def _checked(asked: TrainingRecommendationIn, context: PlanningContext) -> TrainingRecommendationIn:
    from service.training.plans import check_beginning, prepare_plan

    now = context.clock()
    check_beginning(asked, now)
    prepare_plan(asked, context, now)
    return asked


TRAINING_JOB = JobKind(
    name="training_recommendation",
    request=TrainingRecommendationIn,
    compute=_compute,
    store=_store,
    result_address="/v1/training/recommendations/{id}",
)
TRAINING = AnswerKind(
    noun="training recommendation",
    address="/v1/training/recommendations",
    table=TrainingPlanTable,
    job=TRAINING_JOB,
    present=present_stored,
    create=_create,
    checked=_checked,
)
