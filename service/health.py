"""GET /healthz, /readyz, /metrics, and what problem types mean."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError

from service import VERSION
from service.access import Reader
from service.catalog_release.queries import NOT_SEEDED, current_release
from service.database import database_of
from service.guarded_route import GuardedRoute
from service.metrics import Metrics
from service.migrate import newest_revision, stored_revision
from service.problem_handlers import DAMAGED, DAMAGED_ADVICE
from service.problems import PROBLEM_TYPES, UnavailableError, not_found
from service.wire.health import LiveOut, ReadyOut
from service.wire.problems import ProblemTypeOut

router = APIRouter(tags=["operation"], route_class=GuardedRoute)


@router.get("/healthz", summary="The process is alive")
def get_healthz() -> LiveOut:
    return LiveOut(status="alive", version=VERSION)


@router.get("/readyz", summary="The database is reachable, migrated and seeded")
def get_readyz(request: Request) -> ReadyOut:
    database = database_of(request)
    try:
        stored = stored_revision(database)
        if stored != newest_revision():
            raise UnavailableError(
                f"the database is at schema {stored or 'none'}, this version needs {newest_revision()}; "
                "run `clusterwright migrate`"
            )
        with database.reading() as session:
            release = current_release(session)
            if release is None:
                raise UnavailableError(NOT_SEEDED)
            return ReadyOut(
                status="ready", version=VERSION, schema_revision=stored, catalog_digest=release.digest,
                catalog_revision=release.revision,
            )  # fmt: skip
    except SQLAlchemyError as error:
        if DAMAGED.search(str(error)):
            raise UnavailableError(DAMAGED_ADVICE, retry_after_s=60) from error
        raise UnavailableError(f"the database cannot be used: {type(error).__name__}") from error


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
