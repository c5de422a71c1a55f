"""POST /v1/training/estimates; POST and GET /v1/training/recommendations, /{id}, /{id}/why-not, /{id}/deployments."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import JSONResponse

from service.access import Reader
from service.answers.post import answered
from service.answers.queries import list_answers
from service.answers.store import answer_named
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey
from service.jobs.accepted import ACCEPTED
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.recommendations.create import planning_context
from service.training.estimates import create_training_estimates
from service.training.job import TRAINING
from service.training.present import present_stored, present_summary
from service.training.tables import TrainingPlanTable
from service.wire.pages import Page
from service.wire.training import TrainingEstimatesIn, TrainingEstimatesOut
from service.wire.training_plans import (
    TrainingDeploymentOut,
    TrainingPlanSummaryOut,
    TrainingRecommendationIn,
    TrainingRecommendationOut,
    TrainingWhyNotIn,
    TrainingWhyNotOut,
)

router = APIRouter(prefix="/v1/training", tags=["training"], route_class=GuardedRoute)


@router.post("/estimates", summary="Predict training runs")
async def post_training_estimates(
    request: Request, _caller: Reader, asked: TrainingEstimatesIn
) -> TrainingEstimatesOut:
    state = request.app.state
    return await create_training_estimates(
        asked, database=state.database, snapshots=state.snapshots, pool=state.solver_pool, metrics=state.metrics,
        clock=state.clock, time_limit_s=state.settings.estimate_time_limit_s,
    )  # fmt: skip


@router.post(
    "/recommendations", status_code=status.HTTP_201_CREATED,
    summary="Training jobs in, the cheapest machines, layouts and dates out", response_model=TrainingRecommendationOut,
    responses=ACCEPTED | {200: {"model": TrainingRecommendationOut, "description": STORED_BEFORE}},
)  # fmt: skip
async def post_training_recommendation(
    request: Request,
    caller: Reader,
    prefer: Prefer,
    asked: TrainingRecommendationIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> TrainingRecommendationOut | JSONResponse:
    return await answered(TRAINING, request, caller, prefer, asked, response, idempotency_key)


@router.get("/recommendations", summary="Stored training plans, newest first")
def get_training_recommendations(
    _caller: Reader, session: ReadSession, limit: Limit = 100, after: Next = None
) -> Page[TrainingPlanSummaryOut]:
    long = ("request", "result")
    found = list_answers(session, TrainingPlanTable, before=last_id("next", after), limit=limit + 1, without=long)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(row) for row in page], next=cursor, total=found.total)


@router.get("/recommendations/{plan_id}", summary="One stored training plan; it never changes")
def get_training_recommendation(_caller: Reader, session: ReadSession, plan_id: str) -> TrainingRecommendationOut:
    return present_stored(answer_named(session, TrainingPlanTable, TRAINING.noun, plan_id))


@router.post(
    "/recommendations/{plan_id}/why-not", summary="What the jobs would cost on a device that the plan leaves out"
)
async def post_training_why_not(
    request: Request, _caller: Reader, plan_id: str, asked: TrainingWhyNotIn
) -> TrainingWhyNotOut:
    from service.training.why_not import answer_training_why_not

    return await answer_training_why_not(plan_id, asked, planning_context(request))


@router.get("/recommendations/{plan_id}/deployments", summary="Files that start the plan's jobs")
def get_training_deployments(
    _caller: Reader, session: ReadSession, plan_id: str, target: Annotated[str, Query(max_length=80)]
) -> TrainingDeploymentOut:
    from service.training.deployments import answer_training_deployment

    return answer_training_deployment(session, plan_id, target)
