"""GET /v1/recommendations/{recommendation_id}/deployments: from a plan to servers that run."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.access import Reader
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.wire.deployments import DeploymentOut

router = APIRouter(prefix="/v1/recommendations/{recommendation_id}", tags=["recommendations"], route_class=GuardedRoute)


@router.get("/deployments", summary="Files that start the plan's servers; 409 where the target cannot express it")
def get_deployments(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    recommendation_id: str,
    target: Annotated[str, Query(max_length=80)],
    engine_version: Annotated[str | None, Query(max_length=80)] = None,
    ramp: Annotated[
        float | None,
        Query(
            ge=0, le=1e6, allow_inf_nan=False, description="requests per second by which demand may rise in a minute"
        ),
    ] = None,
) -> DeploymentOut:
    from service.deployments.create import answer_deployment  # the command line's other calls do without it

    return answer_deployment(session, request.app.state.snapshots, recommendation_id, target, engine_version, ramp)
