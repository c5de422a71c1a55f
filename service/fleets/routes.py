"""POST and GET /v1/fleets."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from sqlmodel import Session

from service.access import Reader
from service.database import Database, ReadSession
from service.fleets.create import create_fleet
from service.fleets.job import answered_later, queue_fleet
from service.fleets.present import present_fleet, present_summary
from service.fleets.queries import fleet_by_id, list_fleets
from service.fleets.tables import FleetTable
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, StoredBeforeError, new_request
from service.jobs.accepted import ACCEPTED, accepted, accepted_before
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.problems import NotFoundError
from service.recommendations.create import planning_context
from service.wire.fleet_answers import FleetOut, FleetSummaryOut
from service.wire.fleets import FleetIn
from service.wire.pages import Page

router = APIRouter(prefix="/v1/fleets", tags=["fleets"], route_class=GuardedRoute)
Outcome = Annotated[Literal["optimal", "feasible", "infeasible"] | None, Query()]


@router.post(
    "", status_code=status.HTTP_201_CREATED, summary="Demand over time in; what to own, reserve and rent by the hour out",
    response_model=FleetOut, responses=ACCEPTED | {200: {"model": FleetOut, "description": STORED_BEFORE}},
)  # fmt: skip
async def post_fleet(
    request: Request,
    caller: Reader,
    prefer: Prefer,
    asked: FleetIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> FleetOut | JSONResponse:
    context, settings = planning_context(request), request.app.state.settings
    try:
        named = await new_request(request, caller, idempotency_key, asked, context.database)
        if answered_later(asked, prefer, settings):
            return accepted(await run_in_threadpool(queue_fleet, asked, caller, context, settings, named), prefer)
        made = await create_fleet(asked, context, named)
    except StoredBeforeError as before:
        later = await run_in_threadpool(accepted_before, context.database, before.resource, prefer)
        if later is not None:
            return later
        made = await run_in_threadpool(_read, context.database, before.resource)
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = f"/v1/fleets/{made.id}"
    return made


def _read(database: Database, fleet_id: str) -> FleetOut:
    with database.reading() as session:
        return present_fleet(_row(session, fleet_id))


def _row(session: Session, fleet_id: str) -> FleetTable:
    row = fleet_by_id(session, fleet_id)
    if row is None:
        raise NotFoundError(f"no fleet {fleet_id[:80]!r}")
    return row


@router.get("", summary="Stored fleets, newest first")
def get_fleets(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[FleetSummaryOut]:
    found = list_fleets(session, before=last_id("next", after), limit=limit + 1, outcome=outcome)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(r) for r in page], next=cursor, total=found.total)


@router.get("/{fleet_id}", summary="One stored fleet; it never changes")
def get_fleet(_caller: Reader, session: ReadSession, fleet_id: str) -> FleetOut:
    return present_fleet(_row(session, fleet_id))
