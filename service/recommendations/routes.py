"""POST and GET /v1/recommendations."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import JSONResponse
from sqlmodel import Session

from service.access import Reader
from service.answers.post import answered
from service.answers.queries import list_answers
from service.answers.store import answer_named
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey
from service.jobs.accepted import ACCEPTED
from service.paging import Limit, Next, cut_page, last_id
from service.prefer import Prefer
from service.recommendations.diff import plan_diff
from service.recommendations.job import RECOMMENDATION
from service.recommendations.present import present_recommendation, present_summary
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
    return await answered(RECOMMENDATION, request, caller, prefer, asked, response, idempotency_key)


def _row(session: Session, recommendation_id: str) -> RecommendationTable:
    return answer_named(session, RecommendationTable, RECOMMENDATION.noun, recommendation_id)


@router.get("", summary="Stored recommendations, newest first")
def get_recommendations(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    outcome: Outcome = None,
) -> Page[RecommendationSummaryOut]:
    before = last_id("next", after)
    found = list_answers(session, RecommendationTable, before=before, limit=limit + 1, outcome=outcome)
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
