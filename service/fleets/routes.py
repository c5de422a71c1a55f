"""POST and GET /v1/fleets."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import JSONResponse

from service.access import Reader
from service.answers.post import answered
from service.answers.queries import list_answers
from service.answers.store import answer_named
from service.database import ReadSession
from service.fleets.job import FLEET
from service.fleets.present import present_fleet, present_summary
from service.fleets.tables import FleetTable
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey
from service.jobs.accepted import ACCEPTED
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
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
    return await answered(FLEET, request, caller, prefer, asked, response, idempotency_key)


@router.get("", summary="Stored fleets, newest first")
def get_fleets(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[FleetSummaryOut]:
    # Requests and results, which may be megabytes, are not read.
    before, long = last_id("next", after), ("request", "result")
    found = list_answers(session, FleetTable, before=before, limit=limit + 1, outcome=outcome, without=long)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(r) for r in page], next=cursor, total=found.total)


@router.get("/{fleet_id}", summary="One stored fleet; it never changes")
def get_fleet(_caller: Reader, session: ReadSession, fleet_id: str) -> FleetOut:
    return present_fleet(answer_named(session, FleetTable, FLEET.noun, fleet_id))
