"""Plans on electricity of several kinds: equal to enumeration, checked by the verifier, and what must follow."""

from dataclasses import replace

import pytest

from solver.fleet import FleetProblem, Plan, SolveOptions, solve_fleet, verify
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import tiny_carbon_problem
from tests.solver.fleet.test_brute_force import check

INSTANCES = cases(500)
BATCH = cases(50)


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible = 0
    for seed in range(start, start + BATCH):
        problem = tiny_carbon_problem(seed)
        feasible += check(problem, SolveOptions(), seed, best_objective(problem)).plan is not None
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"


def test_the_verifier_refuses_a_plan_above_its_limit() -> None:
    refused = 0
    for seed in range(INSTANCES, INSTANCES + 150):
        problem = tiny_carbon_problem(seed)
        result = solve_fleet(problem)
        if result.plan is None or problem.objective == "throughput":
            continue
        emitted = result.plan.carbon_kg_per_hour(problem)
        if emitted > 0:
            tighter = replace(problem, limits=replace(problem.limits, carbon_kg_per_hour=emitted * 0.99))
            assert any("carbon limit" in error for error in verify(tighter, result))
            refused += 1
    assert refused > 10


def test_cleaner_electricity_everywhere_scales_emissions_and_changes_no_plan() -> None:
    for seed in range(40):
        problem = replace(tiny_carbon_problem(seed), objective="carbon")
        problem = replace(problem, limits=replace(problem.limits, carbon_kg_per_hour=None))
        halved = replace(
            problem, offers=tuple(replace(o, kg_co2e_per_kwh=o.kg_co2e_per_kwh / 2) for o in problem.offers)
        )
        whole, half = _least(problem), _least(halved)
        assert (whole is None) == (half is None)
        if whole is not None and half is not None:
            assert half == pytest.approx(whole / 2, rel=1e-5, abs=1e-9)


def _least(problem: FleetProblem) -> float | None:
    plan: Plan | None = solve_fleet(problem).plan
    return None if plan is None else plan.carbon_kg_per_hour(problem)
