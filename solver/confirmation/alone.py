"""What simulation finds of traffic classes where each has the offers to itself: what it shows of a replica holds in every company."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from solver.candidates.screening import Screened
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.mixes import alone_of, groups_of, learn, mixed_workloads
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput

LEAST_TIME_FRACTION = 0.25
"""Of the time limit: what the searches of all classes alone may take together where screening has used it up. Without what they find
there is no plan."""

Solve = Callable[[Assembly, PlanningInput, Confirmations], tuple[Assembly, FleetResult, int]]
"""A search: ``solver.confirmation.loop.solve_confirmed``."""


@dataclass(frozen=True, slots=True)
class ClassAlone:
    """A class as the only traffic of its workload, with the rate of all that no engine tells from it.

    result: of the search for its best plan; None where there was no time for that, or no need of it.
    """

    workload: int
    screened: Screened
    result: FleetResult | None


def learn_alone(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, solve: Solve, *, again: bool = True
) -> tuple[ClassAlone, ...]:
    """What simulation finds of each traffic class's best replicas where it has the offers to itself.

    A problem of one class is solved in a small part of the time that one of many takes, and what a row does for a class
    alone holds in every company. What earlier requests happened to simulate is not learnt from. Classes share what is left of the time
    with the search that they are for: one that takes long leaves the others a plan of their own. again: off where a class that
    was searched over the same offers before, under the same targets, need not be searched for its plan.
    """
    found = []
    offers = frozenset(offer.id for offer in assembly.problem.offers)
    classes = [(w, one, group) for w, one in mixed_workloads(assembly.screened) for group in groups_of(one)]
    before_s, began_s, searched_s = confirmations.spent_s, planning.clock(), 0.0
    for number, (w, one, group) in enumerate(classes):
        only = alone_of(one, group)
        facts, result = confirmations.facts.of(only), None
        # The search over all classes gets as much as each of those that are left.
        left_s = (planning.time_limit_s - confirmations.spent_s) / (len(classes) - number + 1)
        share_s = max(left_s, LEAST_TIME_FRACTION * planning.time_limit_s / len(classes))
        if again or not any(offers <= before for before in facts.searched_over):
            facts.searched_over.append(offers)
            by_itself = Confirmations(facts=confirmations.facts)
            single = replace(planning, workloads=(only.workload,), time_limit_s=share_s)
            with suppress(NoPlanInTimeError):  # what it has simulated until then is known all the same
                result = solve(assemble(single, [only], assembly.problem.offers), single, by_itself)[1]
            confirmations.simulations += by_itself.simulations
            searched_s += by_itself.spent_s
        learn(confirmations, w, group, one, only)
        found.append(ClassAlone(w, only, result))
        confirmations.spent_s = before_s + max(searched_s, planning.clock() - began_s)
    return tuple(found)
