"""POST /v1/recommendations/{id}/why-not: what each thing the plan does without would cost."""

import time

from service.recommendations.create import PlanningContext
from service.recommendations.limit_names import names_in_conflict
from service.why.present import present_answer, present_miss
from service.why.replay import ReplayedRequest, answered, elapsed_since, present_base, require_plan
from service.why.subjects import check_named, excluded_by, nobody_offers, things_meant, things_of
from service.wire.why import WhyNotAnswerOut, WhyNotIn, WhyNotOut
from solver.recommend.recommend import SolvedRequest
from solver.why.resolve import Clock
from solver.why.why_not import Thing, WhyNot, why_not


async def answer_why_not(recommendation_id: str, asked: WhyNotIn, context: PlanningContext) -> WhyNotOut:
    """Raises NotFoundError, InvalidFieldsError for unknown names, ConflictError where there is no plan."""
    return await answered(
        recommendation_id,
        context,
        "why_not",
        lambda replay, solved_request: _answer(things_meant(asked, replay), replay, solved_request),
        lambda replay: check_named(things_meant(asked, replay), replay),
    )


def _answer(asked: WhyNotIn, replay: ReplayedRequest, solved_request: SolvedRequest) -> WhyNotOut:
    began = time.perf_counter()
    require_plan(solved_request, replay.stored.id)
    names = [w.name for w in replay.request.workloads]
    # The only workload is meant where there is one: "only on this" is then the whole plan's question.
    name = asked.workload if asked.workload is not None or len(names) > 1 else names[0]
    workload = None if name is None else names.index(name)
    clock = Clock(asked.time_limit_s)
    answers = []
    for thing in things_of(asked, replay.inputs.snapshot, replay.request.limits):
        found = why_not(solved_request, thing, workload, replay.inputs.spaces, clock)
        answers.append(_present(found, thing, replay, solved_request, name))
    return WhyNotOut(base=present_base(replay, solved_request), answers=answers, seconds=elapsed_since(began))


def _present(
    found: WhyNot, thing: Thing, replay: ReplayedRequest, solved_request: SolvedRequest, workload: str | None
) -> WhyNotAnswerOut:
    base, objective = solved_request.result.usd_per_hour, solved_request.planning.objective
    return WhyNotAnswerOut(
        kind=thing.kind,
        name=thing.name,
        in_plan=found.in_plan,
        excluded_by=excluded_by(thing, replay, workload),
        forced_in=present_answer(found.forced_in, base, objective),
        only=None if found.only is None else present_answer(found.only, base, objective),
        reasons=nobody_offers(thing, replay.inputs.snapshot) or [present_miss(m) for m in found.misses],
        limits=[name for limit in found.limits for name in names_in_conflict(solved_request.planning, limit)],
    )
