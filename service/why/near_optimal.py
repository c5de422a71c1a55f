"""POST /v1/recommendations/{id}/near-optimal: other plans nearly as cheap, and what none of them can do without."""

import time

from service.problems import FieldError, InvalidFieldsError
from service.recommendations.create import PlanningContext
from service.why.present import PERCENT, present_answer
from service.why.replay import ReplayedRequest, answered, elapsed_since, present_base, require_plan
from service.wire.why import NearOptimalIn, NearOptimalOut, NearPlanOut, SolvedOut, WithoutOut
from solver.recommend.recommend import SolvedRequest
from solver.why.near_optimal import near_optimal
from solver.why.resolve import Clock, SolvedChange


async def answer_near_optimal(recommendation_id: str, asked: NearOptimalIn, context: PlanningContext) -> NearOptimalOut:
    """Raises NotFoundError, ConflictError without a plan, InvalidFieldsError for other objectives than cost."""
    return await answered(
        recommendation_id,
        context,
        "near_optimal",
        lambda replay, solved_request: _answer(asked, replay, solved_request),
        _check,
    )


def _check(replay: ReplayedRequest) -> None:
    if replay.request.objective != "cost":
        wrong = f"the percentage is of the price; this recommendation's objective is {replay.request.objective}"
        raise InvalidFieldsError([FieldError(wrong, pointer="/within_percent")])


def _answer(asked: NearOptimalIn, replay: ReplayedRequest, solved_request: SolvedRequest) -> NearOptimalOut:
    began = time.perf_counter()
    require_plan(solved_request, replay.stored.id)
    found = near_optimal(solved_request, asked.within_percent / PERCENT, asked.count, Clock(asked.time_limit_s))

    def solved(answer: SolvedChange) -> SolvedOut:
        return present_answer(answer, solved_request.result.usd_per_hour, solved_request.planning.objective)

    return NearOptimalOut(
        base=present_base(replay, solved_request),
        within_percent=asked.within_percent,
        plans=[NearPlanOut(without=list(names), solved=solved(answer)) for answer, names in found.plans],
        diversity_proven=False,
        without=[
            WithoutOut(kind=w.kind, name=w.name, indispensable=w.indispensable, solved=solved(w.answer))
            for w in found.without
        ],
        seconds=elapsed_since(began),
    )
