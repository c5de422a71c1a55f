"""POST /v1/recommendations/{id}/price-curve: the cheapest plan at each of several values of one requirement."""

import math
import time

from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.create import PlanningContext
from service.recommendations.limit_names import DIGITS, MS_PER_S, target_of
from service.why.classes import classes_of, states_target, wrong_class
from service.why.curve_words import curve_says
from service.why.present import present_answer, present_miss
from service.why.replay import ReplayedRequest, answered, elapsed_since, present_base
from service.wire.recommendations import WorkloadIn
from service.wire.traffic import ANSWERS_FOLLOW_HIDDEN_TOKENS
from service.wire.why import CurvePointOut, PriceCurveIn, PriceCurveOut
from solver.limit import TargetLimit
from solver.recommend.recommend import SolvedRequest
from solver.why.price_curve import CurvePoint, PricedRequirement, automatic_values, current_value, price_curve
from solver.why.resolve import Clock

LEAST_CONFIDENCE_PERCENT, MOST_CONFIDENCE_PERCENT = 50.0, 99.0
MOST_SPARES = 100
PERCENT = 100.0


async def answer_price_curve(recommendation_id: str, asked: PriceCurveIn, context: PlanningContext) -> PriceCurveOut:
    """Raises NotFoundError and InvalidFieldsError; an infeasible recommendation has a curve too."""
    return await answered(
        recommendation_id,
        context,
        "price_curve",
        lambda replay, solved_request: _answer(asked, replay, solved_request),
        lambda replay: _check(asked, replay),
    )


def _requirement(asked: PriceCurveIn, replay: ReplayedRequest) -> PricedRequirement:
    names = [w.name for w in replay.request.workloads]
    number = names.index(asked.workload) if asked.workload is not None else 0
    match asked.of:
        case "spare_nodes":
            return PricedRequirement("spare_nodes", None)
        case "confidence_percent":
            return PricedRequirement("confidence_fraction", number)
        case "context_tokens" | "requests_per_s" as of:
            return PricedRequirement(of, number)
        case of:
            classes = classes_of(replay.request.workloads[number], of, asked.traffic_class)
            return PricedRequirement(target_of(of), number, classes)


def _unit(of: PricedRequirement) -> float:
    """How many of the question's units are one of the solver's: milliseconds of targets, per cent of confidence."""
    if isinstance(of.of, TargetLimit):
        return MS_PER_S
    return PERCENT if of.of == "confidence_fraction" else 1.0


def _check(asked: PriceCurveIn, replay: ReplayedRequest) -> None:
    workloads = replay.request.workloads
    names = [w.name for w in workloads]
    errors = []
    if asked.of == "spare_nodes" and asked.workload is not None:
        errors.append(FieldError("spare nodes are the whole fleet's; leave the workload out", pointer="/workload"))
    elif asked.of != "spare_nodes" and asked.workload is None and len(names) > 1:
        errors.append(FieldError(f"name one of the workloads: {', '.join(names)}", pointer="/workload"))
    elif asked.workload is not None and asked.workload not in names:
        errors.append(FieldError(unknown_name("workload", asked.workload, names), pointer="/workload"))
    if errors:
        raise InvalidFieldsError(errors)
    workload = workloads[_requirement(asked, replay).workload or 0]
    if wrong_one := wrong_class(workload, asked.of, asked.traffic_class):
        raise InvalidFieldsError([wrong_one])
    if asked.of.startswith("targets.ttfat_ms") and not any(one.shape.thinking_tokens for one in workload.streams):
        raise InvalidFieldsError([FieldError(ANSWERS_FOLLOW_HIDDEN_TOKENS, pointer="/of")])
    if (
        asked.of.startswith("targets.")
        and asked.points is None
        and not states_target(workload, asked.of, asked.traffic_class)
    ):
        raise InvalidFieldsError(
            [FieldError(f"{workload.name} states no {asked.of} to start from; give points", pointer="/points")]
        )
    for position, value in enumerate(asked.points or ()):
        wrong = _wrong_value(asked.of, value, workload, replay)
        if wrong:
            errors.append(FieldError(wrong, pointer=f"/points/{position}"))
    if errors:
        raise InvalidFieldsError(errors)


def _wrong_value(of: str, value: float, workload: WorkloadIn, replay: ReplayedRequest) -> str | None:
    if of in ("context_tokens", "spare_nodes") and value != math.floor(value):
        return f"{of} is a whole number"
    if of == "spare_nodes":
        return None if value <= MOST_SPARES else f"at most {MOST_SPARES} spare nodes"
    if of == "confidence_percent" and not LEAST_CONFIDENCE_PERCENT <= value <= MOST_CONFIDENCE_PERCENT:
        return f"confidence_percent lies between {LEAST_CONFIDENCE_PERCENT:g} and {MOST_CONFIDENCE_PERCENT:g}"
    if of != "context_tokens":
        return None if value > 0 else f"{of} is above zero"
    classes = replay.inputs.traffic[[w.name for w in replay.request.workloads].index(workload.name)]
    longest = max(traffic.maximum for traffic in classes)
    most = replay.inputs.shapes[workload.llm].longest_context_tokens
    if not longest <= value <= most:
        return f"the traffic needs a context of {longest} tokens, and {workload.llm} takes up to {most}"
    return None


def _answer(asked: PriceCurveIn, replay: ReplayedRequest, solved_request: SolvedRequest) -> PriceCurveOut:
    began = time.perf_counter()
    of = _requirement(asked, replay)
    unit = _unit(of)
    values = [v / unit for v in asked.points] if asked.points else automatic_values(solved_request, of)
    found = price_curve(solved_request, of, values, replay.inputs.spaces, Clock(asked.time_limit_s))
    here = current_value(solved_request, of)
    points = [_present(point, here, unit, solved_request) for point in found]
    name = None if of.workload is None else replay.request.workloads[of.workload].name
    return PriceCurveOut(
        base=present_base(replay, solved_request),
        of=asked.of,
        workload=name,
        traffic_class=asked.traffic_class,
        says=curve_says(points, solved_request.result.usd_per_hour),
        points=points,
        seconds=elapsed_since(began),
    )


def _present(point: CurvePoint, here: float | None, unit: float, solved_request: SolvedRequest) -> CurvePointOut:
    return CurvePointOut(
        value=float(f"{point.value * unit:.{DIGITS}g}"),
        is_requested=point.value == here,
        solved=present_answer(point.answer, solved_request.result.usd_per_hour, solved_request.planning.objective),
        reasons=[present_miss(miss) for miss in point.misses],
    )
