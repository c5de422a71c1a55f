"""POST /v1/training/estimates; POST and GET /v1/training/recommendations, /{id}, /{id}/why-not, /{id}/deployments."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool

from service.access import Reader
from service.database import Database, ReadSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, StoredBeforeError, new_request
from service.paging import Limit, Next, cut_page, last_id
from service.recommendations.create import planning_context
from service.training.estimates import create_training_estimates
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
    "/recommendations",
    status_code=status.HTTP_201_CREATED,
    summary="Training jobs in, the cheapest machines, layouts and dates out",
    responses={200: {"model": TrainingRecommendationOut, "description": STORED_BEFORE}},
)
async def post_training_recommendation(
    request: Request,
    response: Response,
    caller: Reader,
    asked: TrainingRecommendationIn,
    idempotency_key: IdempotencyKey = None,
) -> TrainingRecommendationOut:
    from service.training.plans import create_training_plan  # loads the solvers: only when asked

    context = planning_context(request)
    try:
        named = await new_request(request, caller, idempotency_key, asked, context.database)
        made = await create_training_plan(asked, context, named)
    except StoredBeforeError as before:
        made = await run_in_threadpool(_read, context.database, before.resource)
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = made.link
    return made


def _read(database: Database, plan_id: str) -> TrainingRecommendationOut:
    from service.training.why_not import stored_plan

    with database.reading() as session:
        return TrainingRecommendationOut.model_validate(stored_plan(session, plan_id).result)


@router.get("/recommendations", summary="Stored training plans, newest first")
def get_training_recommendations(
    _caller: Reader, session: ReadSession, limit: Limit = 100, after: Next = None
) -> Page[TrainingPlanSummaryOut]:
    from service.training.present_plan import present_summary
    from service.training.queries import list_training_plans

    found = list_training_plans(session, before=last_id("next", after), limit=limit + 1)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(row) for row in page], next=cursor, total=found.total)


@router.get("/recommendations/{plan_id}", summary="One stored training plan; it never changes")
def get_training_recommendation(request: Request, _caller: Reader, plan_id: str) -> TrainingRecommendationOut:
    return _read(request.app.state.database, plan_id)


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
