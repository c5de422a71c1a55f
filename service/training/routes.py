"""POST /v1/training/estimates and /v1/training/recommendations."""

from fastapi import APIRouter, Request

from service.access import Reader
from service.guarded_route import GuardedRoute
from service.training.estimates import create_training_estimates
from service.wire.training import TrainingEstimatesIn, TrainingEstimatesOut
from service.wire.training_plans import TrainingRecommendationIn, TrainingRecommendationOut

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


@router.post("/recommendations", summary="Training jobs in, the cheapest machines, layouts and dates out")
async def post_training_recommendation(
    request: Request, _caller: Reader, asked: TrainingRecommendationIn
) -> TrainingRecommendationOut:
    from service.training.plans import create_training_plan  # loads the solvers: only when asked

    state = request.app.state
    return await create_training_plan(
        asked, database=state.database, snapshots=state.snapshots, pool=state.solver_pool, metrics=state.metrics,
        clock=state.clock,
    )  # fmt: skip
