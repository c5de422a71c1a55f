"""POST and GET /v1/fleets."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from service.access import Reader
from service.database import ReadSession
from service.fleets.create import create_fleet
from service.fleets.job import answered_later, queue_fleet
from service.fleets.present import present_fleet, present_summary
from service.fleets.queries import fleet_by_id, list_fleets
from service.guarded_route import GuardedRoute
from service.jobs.accepted import ACCEPTED, accepted
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.problems import NotFoundError
from service.recommendations.create import workshop_of
from service.wire.fleet_answers import FleetOut, FleetSummaryOut
from service.wire.fleets import FleetIn
from service.wire.pages import Page

router = APIRouter(prefix="/v1/fleets", tags=["fleets"], route_class=GuardedRoute)
Outcome = Annotated[Literal["optimal", "feasible", "infeasible"] | None, Query()]


@router.post(
    "", status_code=status.HTTP_201_CREATED, summary="Demand over time in; what to own, reserve and rent by the hour out",
    response_model=FleetOut, responses=ACCEPTED,
)  # fmt: skip
async def post_fleet(
    request: Request, caller: Reader, prefer: Prefer, asked: FleetIn, response: Response
) -> FleetOut | JSONResponse:
    workshop, settings = workshop_of(request), request.app.state.settings
    if answered_later(asked, prefer, settings):
        return accepted(await run_in_threadpool(queue_fleet, asked, caller, workshop, settings), prefer)
    made = await create_fleet(asked, workshop)
    response.headers["Location"] = f"/v1/fleets/{made.id}"
    return made


@router.get("", summary="Stored fleets, newest first")
def get_fleets(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[FleetSummaryOut]:
    rows = list_fleets(session, before=last_id("next", after), limit=limit + 1, outcome=outcome)
    page, cursor = cut_page(rows, limit)
    return Page(items=[present_summary(r) for r in page], next=cursor)


@router.get("/{fleet_id}", summary="One stored fleet; it never changes")
def get_fleet(_caller: Reader, session: ReadSession, fleet_id: str) -> FleetOut:
    row = fleet_by_id(session, fleet_id)
    if row is None:
        raise NotFoundError(f"no fleet {fleet_id[:80]!r}")
    return present_fleet(row)
