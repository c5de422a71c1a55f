"""POST and GET /v1/recommendations."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from sqlmodel import Session

from service.access import Reader
from service.database import Database, ReadSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, StoredBeforeError, new_request
from service.jobs.accepted import ACCEPTED, accepted, accepted_before
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.problems import NotFoundError
from service.recommendations.create import create_recommendation, planning_context
from service.recommendations.diff import plan_diff
from service.recommendations.job import answered_later, queue_recommendation
from service.recommendations.present import present_recommendation, present_summary
from service.recommendations.queries import list_recommendations, recommendation_by_id
from service.recommendations.tables import RecommendationTable
from service.wire.diff import PlanDiffOut
from service.wire.pages import Page
from service.wire.recommendations import RecommendationIn, RecommendationOut, RecommendationSummaryOut

router = APIRouter(prefix="/v1/recommendations", tags=["recommendations"], route_class=GuardedRoute)
Outcome = Annotated[Literal["optimal", "feasible", "infeasible"] | None, Query()]


@router.post(
    "", status_code=status.HTTP_201_CREATED, summary="Workloads in, proven-cheapest cluster out",
    response_model=RecommendationOut,
    responses=ACCEPTED | {200: {"model": RecommendationOut, "description": STORED_BEFORE}},
)  # fmt: skip
async def post_recommendation(
    request: Request,
    caller: Reader,
    prefer: Prefer,
    asked: RecommendationIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> RecommendationOut | JSONResponse:
    settings = request.app.state.settings
    context = planning_context(request)
    try:
        named = await new_request(request, caller, idempotency_key, asked, context.database)
        if answered_later(asked, prefer, settings):
            return accepted(
                await run_in_threadpool(queue_recommendation, asked, caller, context, settings, named), prefer
            )
        made = await create_recommendation(asked, context, named)
    except StoredBeforeError as before:
        later = await run_in_threadpool(accepted_before, context.database, before.resource, prefer)
        if later is not None:
            return later
        made = await run_in_threadpool(_read, context.database, before.resource)
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = f"/v1/recommendations/{made.id}"
    return made


def _read(database: Database, recommendation_id: str) -> RecommendationOut:
    with database.reading() as session:
        return present_recommendation(_row(session, recommendation_id))


def _row(session: Session, recommendation_id: str) -> RecommendationTable:
    row = recommendation_by_id(session, recommendation_id)
    if row is None:
        raise NotFoundError(f"no recommendation {recommendation_id[:80]!r}")
    return row


@router.get("", summary="Stored recommendations, newest first")
def get_recommendations(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[RecommendationSummaryOut]:
    found = list_recommendations(session, before=last_id("next", after), limit=limit + 1, outcome=outcome)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(r) for r in page], next=cursor, total=found.total)


@router.get("/{recommendation_id}", summary="One stored recommendation; it never changes")
def get_recommendation(_caller: Reader, session: ReadSession, recommendation_id: str) -> RecommendationOut:
    return present_recommendation(_row(session, recommendation_id))


@router.get("/{recommendation_id}/diff", summary="From another stored plan to this one, in words and in numbers")
def get_diff(
    _caller: Reader, session: ReadSession, recommendation_id: str, against: Annotated[str, Query(max_length=80)]
) -> PlanDiffOut:
    return plan_diff(_row(session, against), _row(session, recommendation_id))
