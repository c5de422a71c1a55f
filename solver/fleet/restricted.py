"""One way to have a reduced problem solved: its programme is built, started from a plan in hand, solved, and read."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from solver.errors import SolverFailedError
from solver.fleet.found import Found, read_plan, starting_values, whole_numbers
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.highs import SolverAnswer, solve_with_cbc, solve_with_highs
from solver.fleet.model.formulation import build_model
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.plan import SolverName
from solver.fleet.reduce import ReducedProblem


@dataclass(frozen=True, slots=True)
class Effort:
    """What a solve may take. gap_fraction: distance from the bound at which it stops. to_refute: better plans are not expected."""

    time_limit_s: float
    gap_fraction: float = 0.0
    seed: int = 0
    solver: SolverName = "highs"
    to_refute: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A programme after its solve: read what it holds before another one."""

    model: FleetProgramme
    solved: SolverAnswer
    solver: SolverName

    @property
    def has_numbers(self) -> bool:
        return self.solved.proof in ("optimal", "feasible")

    @property
    def bound(self) -> float:
        """No plan of the programme costs less; infinitely below where the solver gives no bound."""
        return -math.inf if self.solved.bound is None else self.solved.bound

    def found(self) -> Found | None:
        """The plan, realised and checked; None where there is none, or it does not hold."""
        return read_plan(self.model, self.solver) if self.has_numbers else None

    def draft(self) -> Draft | None:
        """Its whole numbers as they are."""
        return whole_numbers(self.model) if self.has_numbers else None


def build_and_solve(
    reduced: ReducedProblem,
    effort: Effort,
    start: Draft | None = None,
    change: Callable[[FleetProgramme], None] | None = None,
) -> Answered:
    """start: whole numbers to begin with, where the programme has all of their columns. change: what is added to the programme.

    Raises SolverFailedError.
    """
    model = build_model(reduced)
    if change is not None:
        change(model)
    return solve_again(model, effort, start)


def solve_again(model: FleetProgramme, effort: Effort, start: Draft | None = None) -> Answered:
    """The same of a programme that is built. Raises SolverFailedError."""
    if effort.solver == "cbc":
        solved = solve_with_cbc(model.programme, effort.time_limit_s, effort.gap_fraction, effort.seed)
    else:
        first = None if start is None else starting_values(model, start)
        # Of traffic classes plans of one price share their requests out in unlike ways, and what is then simulated differs: as it was.
        jumps = any(len(one.requests_per_s) > 1 for one in model.reduced.problem.demands)
        limits = effort.time_limit_s, effort.gap_fraction, effort.seed
        solved = solve_with_highs(model.programme, first, *limits, to_refute=effort.to_refute, jumps=jumps)
    return Answered(model, solved, effort.solver)


def tried(
    reduced: ReducedProblem,
    effort: Effort,
    start: Draft | None = None,
    change: Callable[[FleetProgramme], None] | None = None,
) -> Answered | None:
    """``build_and_solve``, or None where the solver fails: of a problem that is only tried."""
    try:
        return build_and_solve(reduced, effort, start, change)
    except SolverFailedError:
        return None
