"""POST and GET /v1/recommendations."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from service.access import Reader
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.jobs.accepted import ACCEPTED, accepted
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.problems import NotFoundError
from service.recommendations.create import create_recommendation, workshop_of
from service.recommendations.diff import plan_diff
from service.recommendations.job import answered_later, queue_recommendation
from service.recommendations.present import present_recommendation, present_summary
from service.recommendations.queries import list_recommendations, recommendation_by_id
from service.wire.diff import PlanDiffOut
from service.wire.pages import Page
from service.wire.recommendations import RecommendationIn, RecommendationOut, RecommendationSummaryOut

router = APIRouter(prefix="/v1/recommendations", tags=["recommendations"], route_class=GuardedRoute)
Outcome = Annotated[Literal["optimal", "feasible", "infeasible"] | None, Query()]


@router.post(
    "", status_code=status.HTTP_201_CREATED, summary="Workloads in, proven-cheapest cluster out",
    response_model=RecommendationOut, responses=ACCEPTED,
)  # fmt: skip
async def post_recommendation(
    request: Request, caller: Reader, prefer: Prefer, asked: RecommendationIn, response: Response
) -> RecommendationOut | JSONResponse:
    settings = request.app.state.settings
    workshop = workshop_of(request)
    if answered_later(asked, prefer, settings):
        return accepted(await run_in_threadpool(queue_recommendation, asked, caller, workshop, settings), prefer)
    made = await create_recommendation(asked, workshop)
    response.headers["Location"] = f"/v1/recommendations/{made.id}"
    return made


@router.get("", summary="Stored recommendations, newest first")
def get_recommendations(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[RecommendationSummaryOut]:
    rows = list_recommendations(session, before=last_id("next", after), limit=limit + 1, outcome=outcome)
    page, cursor = cut_page(rows, limit)
    return Page(items=[present_summary(r) for r in page], next=cursor)


@router.get("/{recommendation_id}", summary="One stored recommendation; it never changes")
def get_recommendation(_caller: Reader, session: ReadSession, recommendation_id: str) -> RecommendationOut:
    row = recommendation_by_id(session, recommendation_id)
    if row is None:
        raise NotFoundError(f"no recommendation {recommendation_id[:80]!r}")
    return present_recommendation(row)


@router.get("/{recommendation_id}/diff", summary="From another stored plan to this one, in words and in numbers")
def get_diff(
    _caller: Reader, session: ReadSession, recommendation_id: str, against: Annotated[str, Query(max_length=80)]
) -> PlanDiffOut:
    rows = []
    for wanted in (against, recommendation_id):
        row = recommendation_by_id(session, wanted)
        if row is None:
            raise NotFoundError(f"no recommendation {wanted[:80]!r}")
        rows.append(row)
    return plan_diff(*rows)
