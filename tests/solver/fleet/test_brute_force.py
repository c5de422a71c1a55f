"""The optimiser equals enumeration on tiny problems of every kind."""

import pytest

from solver.fleet import FleetProblem, FleetResult, SolveOptions, solve_fleet, verify
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import tiny_problem

INSTANCES = cases(600)
BATCH = cases(50)


def check(problem: FleetProblem, options: SolveOptions, seed: int, expected: float | None) -> FleetResult:
    """The answer: verified, and with a plan of what is expected, or with none."""
    result = solve_fleet(problem, options)
    assert verify(problem, result) == [], f"seed {seed}"
    if expected is None:
        assert result.outcome == "infeasible", f"seed {seed}: {result}"
        assert result.plan is None, f"seed {seed}"
        return result
    assert result.outcome == "optimal", f"seed {seed}: {result}"
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-7), f"seed {seed}: {result}"
    return result


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_highs_pruned_equals_enumeration(start: int) -> None:
    feasible = 0
    for seed in range(start, start + BATCH):
        problem = tiny_problem(seed)
        feasible += check(problem, SolveOptions(), seed, best_objective(problem)).plan is not None
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"


def test_full_programme_equals_enumeration() -> None:
    for seed in range(1000, 1100):
        problem = tiny_problem(seed)
        check(problem, SolveOptions(exact_steps=False), seed, best_objective(problem))


@pytest.mark.parametrize("exact_steps", [True, False])
def test_cbc_equals_enumeration(exact_steps: bool) -> None:
    for seed in range(2000, 2040):
        problem = tiny_problem(seed)
        check(problem, SolveOptions(solver="cbc", exact_steps=exact_steps), seed, best_objective(problem))
