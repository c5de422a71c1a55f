"""POST /v1/recommendations/{id}/pareto: plans of which none is both cheaper and better, by solving at several limits."""

import math
import time

from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.create import PlanningContext
from service.recommendations.limit_names import DIGITS, MS_PER_S, target_of
from service.recommendations.money import usd
from service.why.classes import classes_of, wrong_class
from service.why.grids import grids_of, kg_by_offer, unknown_regions
from service.why.present import present_answer, present_miss
from service.why.replay import ReplayedRequest, answered, elapsed_since, present_base, require_plan
from service.wire.pareto import (
    DominatedOut,
    FrontPointOut,
    GridOut,
    ParetoIn,
    ParetoOut,
    StretchOut,
    UnmeteredOut,
    UnreachedOut,
)
from solver.recommend.recommend import SolvedRequest
from solver.why.pareto import Sample, Stretch
from solver.why.resolve import Clock
from solver.why.resource_front import Metered, Unmetered, on_grids, resource_front, unmetered
from solver.why.target_front import Target, target_front, with_predictions

POWER, CARBON = "power_kw", "carbon_kg_co2e_per_hour"
OF: dict[str, tuple[Metered, float]] = {POWER: ("power", 1e3), CARBON: ("carbon", 1.0)}
"""What is metered, and how many of the solver's units are one of the question's."""


async def answer_pareto(recommendation_id: str, asked: ParetoIn, context: PlanningContext) -> ParetoOut:
    """Raises NotFoundError, ConflictError without a plan, InvalidFieldsError for what no front can be made of."""
    return await answered(
        recommendation_id,
        context,
        "pareto",
        lambda replay, solved_request: _answer(asked, replay, solved_request),
        lambda replay: _check(asked, replay),
    )


def _check(asked: ParetoIn, replay: ReplayedRequest) -> None:
    request = replay.request
    names = [w.name for w in request.workloads]
    errors = []
    if request.objective != "cost":
        wrong = f"a front is of cost; this recommendation's objective is {request.objective}"
        errors.append(FieldError(wrong, pointer="/against"))
    stated = asked.grid_kg_co2e_per_kwh_by_region
    if stated and asked.against != CARBON:
        errors.append(FieldError("only against carbon", pointer="/grid_kg_co2e_per_kwh_by_region"))
    errors += unknown_regions(stated, replay.inputs.snapshot.regions)
    if not asked.against.startswith("targets."):
        if asked.workload is not None:
            errors.append(FieldError("this is the whole plan's; leave the workload out", pointer="/workload"))
    elif asked.workload is None and len(names) > 1:
        errors.append(FieldError(f"name one of the workloads: {', '.join(names)}", pointer="/workload"))
    elif asked.workload is not None and asked.workload not in names:
        errors.append(FieldError(unknown_name("workload", asked.workload, names), pointer="/workload"))
    if not errors:
        workload = request.workloads[0 if asked.workload is None else names.index(asked.workload)]
        wrong_one = wrong_class(workload, asked.against, asked.traffic_class)
        errors += [] if wrong_one is None else [wrong_one]
    if errors:
        raise InvalidFieldsError(errors)


def _answer(asked: ParetoIn, replay: ReplayedRequest, solved_request: SolvedRequest) -> ParetoOut:
    began = time.perf_counter()
    require_plan(solved_request, replay.stored.id)
    clock, spaces = Clock(asked.time_limit_s), replay.inputs.spaces
    limits = None if asked.points is None else tuple(dict.fromkeys(asked.points))
    names = [w.name for w in replay.request.workloads]
    target: Target | None = None
    grids: dict[tuple[str, str], GridOut] = {}
    left_out: tuple[Unmetered, ...] = ()
    if asked.against in OF:
        of, unit = OF[asked.against]
        if of == "carbon":
            offers = solved_request.planning.offers
            grids = grids_of(offers, asked.grid_kg_co2e_per_kwh_by_region)
            solved_request = on_grids(solved_request, kg_by_offer(offers, grids))
        front = resource_front(
            solved_request, of, None if limits is None else [v * unit for v in limits], spaces, clock
        )
        left_out = unmetered(solved_request.planning.offers, of)
    else:
        unit = 1.0 / MS_PER_S
        number = 0 if asked.workload is None else names.index(asked.workload)
        classes = classes_of(replay.request.workloads[number], asked.against, asked.traffic_class)
        target = Target(target_of(asked.against), number, classes)
        front = target_front(
            solved_request, target, None if limits is None else [v * unit for v in limits], spaces, clock
        )
    places = {(e.offer.provider, e.offer.region) for one in front.points for e in one.answer.entries}
    return ParetoOut(
        base=present_base(replay, solved_request),
        against=asked.against,
        workload=None if target is None else names[target.workload],
        traffic_class=asked.traffic_class,
        points=[_point(one, solved_request, target, unit) for one in front.points],
        dominated=[
            DominatedOut(
                limit=_stated(one.limit, unit),
                value=_value(one, unit),
                usd_per_hour=usd(one.usd_per_hour),
                by=_value(by, unit),
            )
            for one, by in front.dominated
        ],
        unreached=[_unreached(one, unit) for one in front.unreached],
        stretches=[_stretch(one, unit) for one in front.stretches],
        none_below=None if front.none_below is None else _stated(front.none_below, unit),
        reaches_cheapest=front.reaches_cheapest,
        complete=front.complete,
        left_out=[
            UnmeteredOut(
                node=o.node,
                provider=o.provider,
                region=o.region,
                reason="figure_missing",
                figure=o.figure,
                offers=o.offers,
            )
            for o in left_out
        ],
        grids=[grid for place, grid in grids.items() if place in places],
        seconds=elapsed_since(began),
    )


def _point(one: Sample, solved_request: SolvedRequest, target: Target | None, unit: float) -> FrontPointOut:
    answer, predicted = one.answer, None
    if target is not None:
        answer, seconds = with_predictions(solved_request, target, answer)
        predicted = seconds * MS_PER_S
    plan = solved_request.result.plan
    return FrontPointOut(
        limit=_stated(one.limit, unit),
        value=_value(one, unit),
        predicted=predicted,
        is_recommended=plan is not None and answer.nodes == plan.nodes_by_offer(),
        solved=present_answer(answer, solved_request.result.usd_per_hour, solved_request.planning.objective),
    )


def _value(one: Sample, unit: float) -> float:
    assert one.value is not None
    return _stated(one.value, unit)


def _stated(value: float, unit: float) -> float:
    """In the question's unit; its limits come back as they were asked."""
    return float(f"{value / unit:.{DIGITS}g}")


def _unreached(one: Sample, unit: float) -> UnreachedOut:
    return UnreachedOut(
        limit=_stated(one.limit, unit) if math.isfinite(one.limit) else None,
        outcome="infeasible" if one.answer.outcome == "infeasible" else "not_in_time",
        reasons=[present_miss(miss) for miss in one.misses],
    )


def _stretch(one: Stretch, unit: float) -> StretchOut:
    ceiling = one.ceiling_usd_per_hour
    return StretchOut(
        above=_stated(one.above, unit),
        up_to=_stated(one.up_to, unit),
        complete=one.complete,
        usd_per_hour_at_least=usd(one.floor_usd_per_hour),
        usd_per_hour_at_most=None if ceiling is None else usd(ceiling),
    )
