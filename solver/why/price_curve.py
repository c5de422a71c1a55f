"""What one requirement costs: the cheapest confirmed plan at each of several values of it, all else unchanged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from solver.candidates.screening import Screened, with_workload
from solver.confirmation.confirmations import Confirmations
from solver.explain.targets import changed_target
from solver.limit import TargetLimit, target_limits
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SolvedRequest, SpaceMemo, screened, space_of
from solver.traffic_classes import (
    ALL_CLASSES,
    ClassSet,
    admitted,
    longest_request_tokens,
    with_confidence,
    with_rate,
    with_targets_of,
)
from solver.why.misses import Miss, misses_of_rows
from solver.why.resolve import Clock, QuestionOutcome, SolvedChange, assembled, known_of, resolve, unchanged
from solver.workload import Workload

FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)
CONTEXT_FACTORS = (0.5, 1.0, 2.0, 4.0)
CONFIDENCE_FRACTIONS = (0.5, 0.75, 0.9, 0.95, 0.99)
EVEN_ODDS = 0.5
SPARES_BEYOND = 2


@dataclass(frozen=True, slots=True)
class PricedRequirement:
    """of: a target (in seconds), or one of the other things. workload: its number; None for spare nodes, which are the
    fleet's. classes: numbers of its traffic classes whose target is meant, all moved to the same value; empty where it has
    none, and for what concerns them all."""

    of: Literal["context_tokens", "confidence_fraction", "spare_nodes", "requests_per_s"] | TargetLimit
    workload: int | None
    classes: ClassSet = ALL_CLASSES


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """value: in the requirement's own SI unit. misses: why no candidate serves the workload there."""

    value: float
    answer: SolvedChange
    misses: tuple[Miss, ...] = ()


def current_value(solved_request: SolvedRequest, of: PricedRequirement) -> float | None:
    """What the request states; None for a target it leaves open."""
    if of.workload is None:
        return float(solved_request.planning.limits.spare_nodes)
    workload = solved_request.planning.workloads[of.workload]
    match of.of:
        case TargetLimit() as target:
            chosen = [workload.classes[k].targets for k in admitted(workload, of.classes)]
            return _if_one([dict(target_limits(targets)).get(target) for targets in chosen])
        case "context_tokens":
            return float(workload.context_tokens)
        case "confidence_fraction":
            return _if_one([one.targets.confidence_fraction for one in workload.classes])
        case _:
            return workload.requests_per_s


def _if_one(values: Sequence[float | None]) -> float | None:
    """The value that all share; None where they differ, and no value is the request's own."""
    return values[0] if len(set(values)) == 1 else None


def automatic_values(solved_request: SolvedRequest, of: PricedRequirement) -> tuple[float, ...]:
    """Values around the request's own; empty where it states none to start from."""
    value = current_value(solved_request, of)
    if of.workload is None:
        return tuple(float(n) for n in range(int(value or 0.0) + SPARES_BEYOND + 1))
    if of.of == "confidence_fraction":
        return tuple(sorted({*CONFIDENCE_FRACTIONS, value or EVEN_ODDS}))
    if value is None:
        return ()
    if of.of != "context_tokens":
        return tuple(value * factor for factor in FACTORS)
    shape = solved_request.assembly.screened[of.workload].space.shape
    longest = max(shape.max_context_tokens, int(value))  # an extended one only where it was asked for
    least = longest_request_tokens(solved_request.planning.workloads[of.workload])
    return tuple(sorted({float(min(max(round(value * f), least), longest)) for f in CONTEXT_FACTORS}))


def price_curve(
    solved_request: SolvedRequest, of: PricedRequirement, values: Sequence[float], memo: SpaceMemo, clock: Clock
) -> tuple[CurvePoint, ...]:
    """A point for each value, in the order given. The request's own value is the plan.

    Raises VerificationError on a defect.
    """
    here = current_value(solved_request, of)
    found = []
    for value in values:
        if value == here and solved_request.result.plan is not None:
            found.append(CurvePoint(value, unchanged(solved_request)))
            continue
        planning, every, known = _at(solved_request, of, value, memo)
        assembly = assembled(planning, every)
        answer = resolve(solved_request, planning, assembly, known, clock)
        misses: tuple[Miss, ...] = ()
        if answer.outcome is QuestionOutcome.INFEASIBLE and of.workload is not None:
            one = every[of.workload]
            if not one.serves.any():
                misses = tuple(misses_of_rows(one, np.ones(len(one.space.rows), dtype=np.bool_)))
        found.append(CurvePoint(value, answer, misses))
    return tuple(found)


def _at(
    solved_request: SolvedRequest, of: PricedRequirement, value: float, memo: SpaceMemo
) -> tuple[PlanningInput, list[Screened], Confirmations]:
    """The request with one requirement changed, its candidates, and what is still known of them.

    What simulation found holds for a workload's own targets and context; for other ones it is found anew.
    """
    planning, every, known = solved_request.planning, list(solved_request.assembly.screened), known_of(solved_request)
    w = of.workload
    if w is None:
        return replace(planning, limits=replace(planning.limits, spare_nodes=round(value))), every, known
    workload = _changed(planning.workloads[w], of, value)
    workloads = (*planning.workloads[:w], workload, *planning.workloads[w + 1 :])
    planning = replace(planning, workloads=workloads)
    is_another_space = False
    if of.of == "requests_per_s":
        # Candidates behind more processes that answer may be there at some rates only.
        is_another_space = space_of(planning, workload, memo).has_more_servers != every[w].space.has_more_servers
        if not is_another_space:
            every[w] = with_workload(every[w], workload)
            return planning, every, known
    known = known.renumbered(w, lambda _: None)
    if is_another_space or of.of in ("context_tokens", "confidence_fraction"):
        every[w] = screened(planning, workload, memo)
    else:
        every[w] = with_workload(every[w], workload)
    return planning, every, known


def _changed(workload: Workload, of: PricedRequirement, value: float) -> Workload:
    match of.of:
        case TargetLimit() as target:
            for number in admitted(workload, of.classes):
                changed = changed_target(workload.classes[number].targets, target, value)
                workload = with_targets_of(workload, number, changed)
            return workload
        case "context_tokens":
            return replace(workload, context_tokens=round(value))
        case "confidence_fraction":
            return with_confidence(workload, value)
        case _:
            return with_rate(workload, value)
