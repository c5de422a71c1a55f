"""Cost against a latency target: the target is moved, and what each value costs is solved for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.candidates.screening import Screened, with_targets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.exchanges import exchange_ratio, partners_of, simulated_with
from solver.confirmation.mixes import worst_ratio
from solver.confirmation.rates import rate_to_hold, rates_to_hold
from solver.explain.targets import changed_target
from solver.limit import TargetLimit
from solver.planning.placements import Placement
from solver.planning.types import PlanEntry
from solver.recommend.predicted_lines import with_estimates
from solver.recommend.recommend import SolvedRequest, SpaceMemo
from solver.traffic_classes import ALL_CLASSES, ClassSet, admitted, with_targets_of
from solver.why.pareto import Front, Sample, front_of
from solver.why.price_curve import CurvePoint, PricedRequirement, current_value, price_curve
from solver.why.resolve import Clock, QuestionOutcome, SolvedChange
from solver.workload import Targets

AUTOMATIC_TARGETS = 6
"""Between the tightest value screening thinks possible and the one beyond which nothing is saved, each a fixed
factor from the next."""
TIGHTENING_STEPS = 2
"""How often the distance between what cannot be and the tightest plan is halved, on a logarithmic scale."""
NO_TARGET_S = 1e6
IMPOSSIBLE_S = 1e-9


@dataclass(frozen=True, slots=True)
class Target:
    """Of the workload with this number; of these of its traffic classes, all alike (empty: it has none)."""

    limit: TargetLimit
    workload: int
    classes: ClassSet = ALL_CLASSES


def target_front(
    solved_request: SolvedRequest, of: Target, limits: Sequence[float] | None, memo: SpaceMemo, clock: Clock
) -> Front:
    """limits: where to solve, in seconds; None: from the tightest that is feasible to the one at which cost stops falling.

    Values are the targets kept, in seconds too. Raises VerificationError on a defect.
    """
    asked = PricedRequirement(of.limit, of.workload, of.classes)
    if limits is not None:
        return front_of(samples_of(price_curve(solved_request, asked, limits, memo, clock)))
    free = price_curve(solved_request, asked, (NO_TARGET_S,), memo, clock)[0]
    if not free.answer.placements:
        return front_of([Sample(math.inf, None, free.answer, free.misses)])
    loosest = slowest_s(solved_request, of, free.answer)
    none_below = least_s(solved_request, of)
    samples = [Sample(loosest, loosest, free.answer)]
    values = automatic_limits(none_below, loosest, current_value(solved_request, asked))
    samples += samples_of(price_curve(solved_request, asked, values, memo, clock))
    for _ in range(TIGHTENING_STEPS):
        if clock.left_s <= 0.0:
            break
        impossible = max([none_below, *(s.limit for s in samples if s.answer.outcome is QuestionOutcome.INFEASIBLE)])
        tightest = min(s.limit for s in samples if s.value is not None)
        between = math.sqrt(impossible * tightest)
        samples += samples_of(price_curve(solved_request, asked, (between,), memo, clock))
    return front_of(samples, none_below, reaches_cheapest=True)


def automatic_limits(none_below: float, loosest: float, own: float | None) -> tuple[float, ...]:
    """Loosest first, the request's own among them: what time leaves unanswered are the tightest.

    >>> [round(v) for v in automatic_limits(1.0, 128.0, 50.0)]
    [64, 50, 32, 16, 8, 4, 2]
    """
    grid = np.geomspace(min(none_below, loosest), loosest, AUTOMATIC_TARGETS + 2)[1:-1].tolist()
    stated = [own] if own is not None and own < loosest else []
    return tuple(sorted({*grid, *stated}, reverse=True))


def samples_of(points: Sequence[CurvePoint]) -> list[Sample]:
    return [Sample(p.value, None if p.answer.usd_per_hour is None else p.value, p.answer, p.misses) for p in points]


def least_s(solved_request: SolvedRequest, of: Target) -> float:
    """The least value that screening, which errs on the optimistic side, sees for any candidate that serves at all."""
    one = solved_request.assembly.screened[of.workload]
    return max(_least_of(one, k, of) for k in admitted(one.workload, of.classes))


def _least_of(one: Screened, number: int, of: Target) -> float:
    targets = one.workload.classes[number].targets
    able = with_targets(one, changed_target(targets, of.limit, NO_TARGET_S), number).classes[number]
    best = with_targets(one, changed_target(targets, of.limit, IMPOSSIBLE_S), number).classes[number].capacity.best_s
    return float(best[able.serves].min())


def slowest_s(solved_request: SolvedRequest, of: Target, answer: SolvedChange) -> float:
    """The largest value of the percentile among a plan's replicas, simulated at the rate they must hold."""
    unit_s = NO_TARGET_S
    only = changed_target(Targets(), of.limit, unit_s)
    screened = solved_request.assembly.screened[of.workload]
    chosen = admitted(screened.workload, of.classes)
    classes = tuple(
        replace(one, workload=with_targets_of(one.workload, 0, only if k in chosen else Targets()))
        for k, one in enumerate(screened.classes)
    )
    under_only = replace(
        screened,
        workload=replace(screened.workload, classes=tuple(one.workload.only for one in classes)),
        classes=classes,
    )
    scratch = Confirmations()
    nodes = {offer.id: offer.node for offer in solved_request.planning.offers}

    def ratio(place: Placement) -> float:
        rate = rate_to_hold(solved_request.assembly, place)
        if place.exchange is not None:
            partner = simulated_with(partners_of(answer.placements, place), place, nodes)
            rates = rate, rate_to_hold(solved_request.assembly, partner)
            return exchange_ratio(solved_request.assembly, place, partner, rates, only, nodes, scratch)
        return worst_ratio(scratch, under_only, place.row, rates_to_hold(solved_request.assembly, place))

    return unit_s * max(ratio(p) for p in answer.placements if p.workload == of.workload and p.requests_per_s > 0.0)


def with_predictions(solved_request: SolvedRequest, of: Target, answer: SolvedChange) -> tuple[SolvedChange, float]:
    """The plan with predictions of the workload's lines, and the largest of the percentile among them, in seconds."""
    workload = solved_request.planning.workloads[of.workload]
    name, classes = workload.name, frozenset(workload.classes[k].name for k in admitted(workload, of.classes))
    own = with_estimates(solved_request.planning, [e for e in answer.entries if e.workload == name])
    entries = (*own, *(e for e in answer.entries if e.workload != name))
    return replace(answer, entries=entries), max(
        predicted_s(of, entry, classes) for entry in entries if entry.workload == name and entry.estimate is not None
    )


def predicted_s(of: Target, entry: PlanEntry, names: frozenset[str | None]) -> float:
    """Of one replica at its planned rate, the way to it included where users wait for it. names: of the traffic classes meant."""
    found = [one.estimate for one in entry.classes if one.estimate is not None and one.name in names]
    away = (entry.network_s or 0.0) if of.limit.metric != "time_per_output_token_s" else 0.0
    return (
        max((float(getattr(one, of.limit.metric)[of.limit.percentile].expected) for one in found), default=0.0) + away
    )
