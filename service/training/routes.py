"""POST /v1/training/estimates."""

from fastapi import APIRouter, Request

from service.access import Reader
from service.guarded_route import GuardedRoute
from service.training.estimates import create_training_estimates
from service.wire.training import TrainingEstimatesIn, TrainingEstimatesOut

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
