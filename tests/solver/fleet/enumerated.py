"""Answers of the solver held against enumeration."""

from collections.abc import Callable

import pytest

from solver.fleet import FleetProblem, FleetResult, SolveOptions, solve_fleet, verify
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective

DEFAULTS = SolveOptions()


def solved_as_enumerated(
    problem: FleetProblem, seed: int, options: SolveOptions = DEFAULTS
) -> tuple[FleetResult, bool]:
    """The answer, which keeps the problem's rules and costs what enumeration says, and whether there is a plan."""
    expected, result = best_objective(problem), solve_fleet(problem, options)
    assert verify(problem, result) == [], f"seed {seed}"
    if expected is None:
        assert result.outcome == "infeasible", f"seed {seed}: {result}"
    else:
        assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-7), f"seed {seed}: {result}"
    return result, expected is not None


def whole_programme_and_other_solver_agree(of_seed: Callable[[int], FleetProblem]) -> None:
    for seed in range(2_000, 2_000 + cases(60, 20)):
        problem = of_seed(seed)
        for options in (SolveOptions(exact_steps=False), SolveOptions(solver="cbc")):
            solved_as_enumerated(problem, seed, options)
