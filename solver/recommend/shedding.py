"""Serving by priority where the limits cannot serve everyone, with every share confirmed by simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from solver.confirmation.confirmations import CLOSE_ENOUGH
from solver.fleet import FleetProblem, FleetResult
from solver.fleet.shed import shares_by_priority, shed_problem
from solver.planning.assemble import Assembly
from solver.planning.types import PlanningInput

MOST_TRIES = 5

Confirmed = tuple[Assembly, FleetResult, int]
SolveConfirmed = Callable[[Assembly], Confirmed]


@dataclass(frozen=True, slots=True)
class Shed:
    """The plan for what is served. shares: of each workload's demand."""

    assembly: Assembly
    result: FleetResult
    rounds: int
    shares: tuple[float, ...]


def shed(planning: PlanningInput, assembly: Assembly, solve: SolveConfirmed) -> Shed | None:
    """Cut demand by priority until a plan exists, and find the best plan for what is left; None if nothing is left.

    Shares are found on capacities that hold in simulation. The plan for them is simulated at rates of its own: where it
    falls short, shares below one give way by the tolerance of a simulation.
    """

    def solved(problem: FleetProblem) -> FleetResult:
        return solve(replace(assembly, problem=problem))[1]

    shares = shares_by_priority(assembly.problem, [w.priority for w in planning.workloads], solved)
    for _ in range(MOST_TRIES):
        if not any(shares):
            return None
        changed, result, rounds = solve(replace(assembly, problem=shed_problem(assembly.problem, shares)))
        if result.plan is not None:
            return Shed(changed, result, rounds, shares)
        shares = tuple(share if share == 1.0 else share * CLOSE_ENOUGH for share in shares)
    return None
