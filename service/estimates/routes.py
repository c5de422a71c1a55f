"""POST /v1/estimates."""

from fastapi import APIRouter, Request, Response

from service.access import Reader
from service.estimates.create import create_estimates
from service.guarded_route import GuardedRoute
from service.wire.estimates import EstimatesIn, EstimatesOut

router = APIRouter(prefix="/v1/estimates", tags=["estimates"], route_class=GuardedRoute)


@router.post("", summary="Predict fixed deployments", response_model=EstimatesOut)
async def post_estimates(request: Request, _caller: Reader, asked: EstimatesIn) -> Response:
    state = request.app.state
    written = await create_estimates(
        asked, database=state.database, snapshots=state.snapshots, pool=state.solver_pool, metrics=state.metrics,
        clock=state.clock, time_limit_s=state.settings.estimate_time_limit_s,
    )  # fmt: skip
    return Response(written, media_type="application/json")
