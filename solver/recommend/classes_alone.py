"""Traffic classes without company: what their best replicas sustain, and what no plan for all of them can be better than.

What a replica sustains of a mix is not known from its classes: of two that want different things of a device, one compute and
the other memory, it sustains more than the sum of their shares, of others less. What holds whatever the mix is: a replica that serves a
class in company serves it alone. So a plan for all classes is a plan for each of them, and costs no less than the best one for the class
that is dearest by itself (docs/mathematics.md).
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from solver.candidates.screening import Screened, of_classes
from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import LEAST_SOLVE_FRACTION, solve_confirmed, with_bound
from solver.confirmation.mixes import groups_of, learn, mixed_workloads
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult, SolveOptions, solve_fleet
from solver.outcome import Outcome, Status
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput
from solver.traffic_classes import with_rate


@dataclass(frozen=True, slots=True)
class ClassAlone:
    """A class as the only traffic of its workload, with the rate of all that no engine tells from it.

    bound: no plan for it has a better objective; infinitely bad where it has none, None where that could not be settled in time.
    """

    workload: int
    screened: Screened
    bound: float | None


def learn_alone(planning: PlanningInput, assembly: Assembly, confirmations: Confirmations) -> tuple[ClassAlone, ...]:
    """What simulation finds of each traffic class's best replicas where it has the offers to itself.

    A problem of one class is solved in a small part of the time that one of many takes, and what a row does for a class
    alone holds in every company. What earlier requests happened to simulate is not learnt from.
    """
    found = []
    for w, one in mixed_workloads(assembly.screened):
        for group in groups_of(one):
            screened_class = one.classes[group[0]]
            rate = math.fsum(one.workload.classes[k].requests_per_s for k in group)
            workload = with_rate(screened_class.workload, rate)
            by_itself = Confirmations(facts=confirmations.facts)
            single = replace(planning, workloads=(workload,))
            only = of_classes(workload, [replace(screened_class, workload=workload)])
            bound = None
            with suppress(NoPlanInTimeError):  # what it has simulated until then is known all the same
                problem = assemble(single, [only], assembly.problem.offers)
                bound = _bound_of(solve_confirmed(problem, single, by_itself)[1], planning)
            confirmations.simulations += by_itself.simulations
            confirmations.spent_s += by_itself.spent_s
            learn(confirmations, w, group, one, only)
            found.append(ClassAlone(w, only, bound))
    return tuple(found)


def bound_of_every_mix(
    planning: PlanningInput, assembly: Assembly, alone: Sequence[ClassAlone], confirmations: Confirmations
) -> float | None:
    """What no plan's objective is better than, whatever its replicas sustain of mixes: infinitely bad where there is none, None
    where nothing was settled in time.

    Of several workloads those with classes are each left with the class that is dearest alone, and all are planned together.
    """
    larger_is_better = planning.objective == "throughput"
    worst = min if larger_is_better else max
    known = [one.bound for one in alone if one.bound is not None]
    if len(planning.workloads) > 1:
        screened = list(assembly.screened)
        for w in {one.workload for one in alone}:
            mine = [one for one in alone if one.workload == w]
            screened[w] = worst(mine, key=lambda one: 0.0 if one.bound is None else one.bound).screened
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
