"""POST /v1/tco/comparisons, GET by id: as JSON, CSV or a workbook."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from sqlmodel import Session

from service.access import Reader
from service.database import Database, ReadSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, StoredBeforeError, new_request
from service.problems import NotFoundError
from service.recommendations.create import planning_context
from service.tco.create import create_comparison
from service.tco.export import CSV_MEDIA_TYPE, XLSX_MEDIA_TYPE, as_csv, as_xlsx
from service.tco.present import present_comparison
from service.tco.queries import comparison_by_id
from service.wire.tco import ComparisonIn
from service.wire.tco_answers import ComparisonOut

router = APIRouter(prefix="/v1/tco/comparisons", tags=["total cost of ownership"], route_class=GuardedRoute)
Format = Annotated[
    Literal["json", "csv", "xlsx"], Query(alias="format", description="`csv` and `xlsx` are sent as a file.")
]
FILES: dict[int | str, dict[str, Any]] = {200: {"content": {CSV_MEDIA_TYPE: {}, XLSX_MEDIA_TYPE: {}}}}


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Rent, reserve, buy, or call an API: what each costs",
    responses={200: {"model": ComparisonOut, "description": STORED_BEFORE}},
)
async def post_comparison(
    request: Request,
    response: Response,
    caller: Reader,
    asked: ComparisonIn,
    idempotency_key: IdempotencyKey = None,
) -> ComparisonOut:
    context = planning_context(request)
    try:
        named = await new_request(request, caller, idempotency_key, asked, context.database)
        comparison = await create_comparison(asked, context, named)
    except StoredBeforeError as before:
        comparison = await run_in_threadpool(_read, context.database, before.resource)
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = comparison.link
    return comparison


@router.get(
    "/{comparison_id}", summary="One stored comparison; it never changes", response_model=ComparisonOut, responses=FILES
)
def get_comparison(
    _caller: Reader,
    session: ReadSession,
    comparison_id: str,
    file_format: Format = "json",
) -> ComparisonOut | Response:
    comparison = _comparison(session, comparison_id)
    if file_format == "json":
        return comparison
    body, media_type = (
        (as_csv(comparison), CSV_MEDIA_TYPE) if file_format == "csv" else (as_xlsx(comparison), XLSX_MEDIA_TYPE)
    )
    return Response(
        body,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{comparison.id}.{file_format}"'},
    )


def _read(database: Database, comparison_id: str) -> ComparisonOut:
    with database.reading() as session:
        return _comparison(session, comparison_id)


def _comparison(session: Session, comparison_id: str) -> ComparisonOut:
    """Raises NotFoundError, also for an answer in a form that this version does not read."""
    row = comparison_by_id(session, comparison_id)
    if row is None:
        raise NotFoundError(f"no comparison {comparison_id[:80]!r}")
    try:
        return present_comparison(row)
    except ValidationError:
        detail = (
            f"comparison {row.id} was answered by version {row.version} in a form that is not read any more; ask again"
        )
        raise NotFoundError(detail) from None
