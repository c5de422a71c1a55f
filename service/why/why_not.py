"""POST /v1/recommendations/{id}/why-not: what each thing the plan does without would cost."""

import time

from service.recommendations.create import Workshop
from service.why.present import present_answer, present_miss
from service.why.replay import Replay, answered, elapsed_since, present_base, require_plan
from service.why.things import check_named, excluded_by, nobody_offers, things_meant, things_of
from service.wire.why import WhyNotAnswerOut, WhyNotIn, WhyNotOut
from solver.recommend import Standing
from solver.why.resolve import Clock
from solver.why.why_not import Thing, WhyNot, why_not


async def answer_why_not(recommendation_id: str, asked: WhyNotIn, workshop: Workshop) -> WhyNotOut:
    """Raises NotFoundError, InvalidFieldsError for unknown names, ConflictError where there is no plan."""
    return await answered(
        recommendation_id,
        workshop,
        "why_not",
        lambda replay, standing: _answer(things_meant(asked, replay), replay, standing),
        lambda replay: check_named(things_meant(asked, replay), replay),
    )


def _answer(asked: WhyNotIn, replay: Replay, standing: Standing) -> WhyNotOut:
    began = time.perf_counter()
    require_plan(standing, replay.stored.id)
    names = [w.name for w in replay.request.workloads]
    # The only workload is meant where there is one: "only on this" is then the whole plan's question.
    name = asked.workload if asked.workload is not None or len(names) > 1 else names[0]
    workload = None if name is None else names.index(name)
    clock = Clock(asked.time_limit_s)
    answers = []
    for thing in things_of(asked, replay.inputs.snapshot, replay.request.limits):
        found = why_not(standing, thing, workload, replay.inputs.spaces, clock)
        answers.append(_present(found, thing, replay, standing, name))
    return WhyNotOut(base=present_base(replay, standing), answers=answers, seconds=elapsed_since(began))


def _present(found: WhyNot, thing: Thing, replay: Replay, standing: Standing, workload: str | None) -> WhyNotAnswerOut:
    base, objective = standing.result.usd_per_hour, standing.planning.objective
    return WhyNotAnswerOut(
        kind=thing.kind,
        name=thing.name,
        in_plan=found.in_plan,
        excluded_by=excluded_by(thing, replay, workload),
        forced_in=present_answer(found.forced_in, base, objective),
        only=None if found.only is None else present_answer(found.only, base, objective),
        reasons=nobody_offers(thing, replay.inputs.snapshot) or [present_miss(m) for m in found.misses],
        limits=list(found.limits),
    )
