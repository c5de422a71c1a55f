"""A plan in which no replica serves two traffic classes: true by what simulation has seen of each class alone.

What replicas sustain of a mix is known only once that mix is simulated, so a search over mixes has no plan until the first of them
holds. One that keeps classes apart rests on what was simulated before the search began, costs a moment to find, and is no further from
the best than company saves.
"""

from collections.abc import Callable

from solver.confirmation.capacities import EveryCapacity
from solver.fleet import FleetProblem, FleetResult
from solver.planning.assemble import Assembly, exceeds_default, with_default_limits
from solver.planning.placements import placements
from solver.planning.types import PlanningInput

MOST_ROUNDS = 4
"""Plans that are tried: what a replica was seen to hold of one class it does not hold at a lower rate only by chance of the draws."""


def best_apart(
    assembly: Assembly, planning: PlanningInput, capacities: EveryCapacity, solve: Callable[[FleetProblem], FleetResult]
) -> tuple[Assembly, FleetResult] | None:
    """The best plan without mixes of what simulation has seen hold, and its problem; None where too little is known for one, or none
    holds after all. solve: finds it, in a moment."""
    current = capacities.apart(assembly)
    for _ in range(MOST_ROUNDS):
        result = solve(current.problem)
        if result.plan is None:
            return None
        if exceeds_default(result.plan, current, planning.default_max_nodes):
            current = with_default_limits(planning, current)
        elif capacities.hold_confirmed(current, placements(current, result.plan)):
            return current, result
        else:
            current = capacities.apart(assembly)
    return None


def is_better(one: FleetResult, other: FleetResult, *, of: FleetProblem) -> bool:
    """Is one plan better than another, by what a problem asks for?"""
    if one.objective is None or other.objective is None:
        return other.objective is None and one.objective is not None
    return one.objective > other.objective if of.objective == "throughput" else one.objective < other.objective
