"""GET /healthz, /readyz, /metrics, and what problem types mean."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service import VERSION
from service.access import Reader
from service.database import database_of
from service.guarded_route import GuardedRoute
from service.metrics import Metrics
from service.problems import PROBLEM_TYPES, not_found
from service.readiness import require_ready
from service.wire.health import LiveOut, ReadyOut
from service.wire.problems import ProblemTypeOut

router = APIRouter(tags=["operation"], route_class=GuardedRoute)


@router.get("/healthz", summary="The process is alive")
def get_healthz() -> LiveOut:
    return LiveOut(status="alive", version=VERSION)


@router.get("/readyz", summary="The database is reachable, migrated, and seeded with what this version needs")
def get_readyz(request: Request) -> ReadyOut:
    ready = require_ready(database_of(request))
    return ReadyOut(
        status="ready", version=VERSION, schema_revision=ready.schema, catalog_digest=ready.release.digest,
        catalog_revision=ready.release.revision,
    )  # fmt: skip


@router.get("/metrics", summary="Prometheus metrics", response_class=Response)
def get_metrics(request: Request, _caller: Reader) -> Response:
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/problems/{slug}", summary="What a problem type means")
def get_problem_type(slug: str) -> ProblemTypeOut:
    kind = PROBLEM_TYPES.get(slug)
    if kind is None:
        raise not_found("problem type", slug, PROBLEM_TYPES)
    return ProblemTypeOut(type=f"/problems/{slug}", status=kind.status, title=kind.title, explanation=kind.explanation)
