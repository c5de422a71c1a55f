"""Questions about a stored recommendation: computed when asked, not stored.

Answers are imported when first asked for: the optimiser loads libraries that listing the catalog does without.
"""

from fastapi import APIRouter, Request

from service.access import Reader
from service.guarded_route import GuardedRoute
from service.recommendations.create import planning_context
from service.wire.pareto import ParetoIn, ParetoOut
from service.wire.quote import QuoteOut
from service.wire.why import (
    NearOptimalIn,
    NearOptimalOut,
    PriceCurveIn,
    PriceCurveOut,
    TimeLimit,
    WhyNotIn,
    WhyNotOut,
)

router = APIRouter(prefix="/v1/recommendations/{recommendation_id}", tags=["recommendations"], route_class=GuardedRoute)


@router.post("/why-not", summary="What a device, offer, provider, precision or layout the plan does without would cost")
async def post_why_not(request: Request, _caller: Reader, recommendation_id: str, asked: WhyNotIn) -> WhyNotOut:
    from service.why.why_not import answer_why_not

    return await answer_why_not(recommendation_id, asked, planning_context(request))


@router.post("/price-curve", summary="What a target, context, confidence, spare or rate costs at several values")
async def post_price_curve(
    request: Request, _caller: Reader, recommendation_id: str, asked: PriceCurveIn
) -> PriceCurveOut:
    from service.why.price_curve import answer_price_curve

    return await answer_price_curve(recommendation_id, asked, planning_context(request))


@router.get(
    "/quote", summary="What to confirm with each seller before the plan is signed, and how much each price may rise"
)
async def get_quote(
    request: Request, _caller: Reader, recommendation_id: str, time_limit_s: TimeLimit = 10.0
) -> QuoteOut:
    from service.why.quote import answer_quote

    return await answer_quote(recommendation_id, time_limit_s, planning_context(request))


@router.post("/near-optimal", summary="Other plans nearly as cheap, and what none of them can do without")
async def post_near_optimal(
    request: Request, _caller: Reader, recommendation_id: str, asked: NearOptimalIn
) -> NearOptimalOut:
    from service.why.near_optimal import answer_near_optimal

    return await answer_near_optimal(recommendation_id, asked, planning_context(request))


@router.post("/pareto", summary="Plans none of which is both cheaper and better: cost against a target or power")
async def post_pareto(request: Request, _caller: Reader, recommendation_id: str, asked: ParetoIn) -> ParetoOut:
    from service.why.pareto import answer_pareto

    return await answer_pareto(recommendation_id, asked, planning_context(request))
