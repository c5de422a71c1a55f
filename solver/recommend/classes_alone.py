"""What no plan for several traffic classes can be better than, by what each costs without company.

What a replica sustains of a mix is not known from its classes: of two that want different things of a device, one compute and
the other memory, it sustains more than the sum of their shares, of others less. What holds whatever the mix is: a replica that serves a
class in company serves it alone. So a plan for all classes is a plan for each of them, and costs no less than the best one for the class
that is dearest by itself (docs/mathematics.md).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from solver.confirmation.alone import ClassAlone
from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import LEAST_SOLVE_FRACTION, with_bound
from solver.fleet import FleetResult, SolveOptions, solve_fleet
from solver.outcome import Outcome, Status
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput


def bound_of_every_mix(
    planning: PlanningInput, assembly: Assembly, alone: Sequence[ClassAlone], confirmations: Confirmations
) -> float | None:
    """What no plan's objective is better than, whatever its replicas sustain of mixes: infinitely bad where there is none, None
    where nothing was settled in time.

    Of several workloads those with classes are each left with the class that is dearest alone, and all are planned together.
    """
    larger_is_better = planning.objective == "throughput"
    worst = min if larger_is_better else max
    bounds = [None if one.result is None else _bound_of(one.result, planning) for one in alone]
    known = [bound for bound in bounds if bound is not None]
    if len(planning.workloads) > 1:
        screened = list(assembly.screened)
        for w in {one.workload for one in alone}:
            mine = [(bound or 0.0, one.screened) for one, bound in zip(alone, bounds, strict=True) if one.workload == w]
            screened[w] = worst(mine, key=lambda pair: pair[0])[1]
        reduced = replace(planning, workloads=tuple(one.workload for one in screened))
        problem = assemble(reduced, screened, assembly.problem.offers)
        left_s = planning.time_limit_s - confirmations.spent_s
        options = SolveOptions(max(left_s, LEAST_SOLVE_FRACTION * planning.time_limit_s), planning.gap_fraction)
        found = solve_fleet(Brackets(screened, confirmations.facts).assumed(problem).problem, options)
        together = _bound_of(found, planning)
        known += [] if together is None else [together]
    return worst(known, default=None)


def _bound_of(result: FleetResult, planning: PlanningInput) -> float | None:
    if result.outcome is Outcome.INFEASIBLE:
        return 0.0 if planning.objective == "throughput" else math.inf
    return result.bound


def proven_of_mixes(result: FleetResult, bound: float | None, planning: PlanningInput) -> FleetResult:
    """What is proven of a search's result where workloads have several classes: its distance from what holds of every mix.

    The search ends where nothing is better as far as unknown mixes are like those simulated, which is no proof.
    """
    if not any(workload.is_mixed for workload in planning.workloads):
        return result
    larger_is_better = planning.objective == "throughput"
    if result.plan is None:
        is_proven = bound is not None and (bound <= 0.0 if larger_is_better else math.isinf(bound))
        is_open = result.outcome is Outcome.INFEASIBLE and not is_proven
        return replace(result, status=Status.MIXES_OPEN) if is_open else result
    assert result.objective is not None
    if bound is not None:
        bound = max(bound, result.objective) if larger_is_better else min(bound, result.objective)
    stated = with_bound(result, bound, planning.gap_fraction)
    has_ended = result.status is not Status.TIME_LIMIT
    return replace(stated, status=Status.MIXES_OPEN) if has_ended and stated.status is Status.TIME_LIMIT else stated
