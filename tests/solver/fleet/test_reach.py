"""What costs too much for a known price is left out, and nothing else: the optimum stays, and less is asked of the solver."""

from dataclasses import replace

import numpy as np
import pytest

from solver.fleet import FleetProblem, solve_fleet, verify
from solver.fleet.decomposition.whole_nodes import is_least
from solver.fleet.reach import within_reach
from tests.seeds import cases
from tests.solver.fleet.instances import (
    middling_problem,
    tiny_distant_problem,
    tiny_placed_problem,
    tiny_problem,
    tiny_rack_problem,
    tiny_resilient_problem,
    tiny_split_problem,
)

KINDS = (
    tiny_problem, tiny_placed_problem, tiny_resilient_problem, tiny_distant_problem, tiny_rack_problem, tiny_split_problem,
)  # fmt: skip
INSTANCES = cases(200)


def size(problem: FleetProblem) -> int:
    return len(problem.offers) + len(problem.deployments)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_optimum_stays_whatever_price_is_known(kind: type[FleetProblem]) -> None:
    compared, smaller = 0, 0
    for seed in range(8_000, 8_000 + INSTANCES):
        problem = kind(seed)
        best = solve_fleet(problem)
        if problem.objective != "cost" or best.usd_per_hour is None:
            continue
        for dearer in (1.0, 1.1, 2.0):
            left = within_reach(problem, best.usd_per_hour * dearer)
            found = solve_fleet(left)
            assert found.usd_per_hour == pytest.approx(best.usd_per_hour, rel=1e-6, abs=1e-9), f"seed {seed}, {dearer}"
            assert found.plan is not None
            assert not verify(problem, found), "a plan of what is left is one of the whole"
            smaller += size(left) < size(problem)
        compared += 1
    assert compared > INSTANCES // 10
    assert smaller > compared // 3


def test_much_of_a_larger_market_is_out_of_reach_of_its_best_plan() -> None:
    left = []
    for seed in range(40):
        problem = middling_problem(seed)
        best = solve_fleet(problem)
        if problem.objective == "cost" and best.usd_per_hour is not None:
            left.append(size(within_reach(problem, best.usd_per_hour)) / size(problem))
    assert len(left) > 5
    assert min(left) < 0.7


def alone(problem: FleetProblem) -> FleetProblem:
    """Its first workload alone, with its first class, for the least cost."""
    demand, table = problem.demands[0], problem.deployments
    mine = table.take(np.flatnonzero(table.workload == 0))
    one_class = replace(mine, capacity_requests_per_s=mine.capacity_requests_per_s[:, :1])
    rates = (max(demand.requests_per_s[0], 0.5),)
    return replace(
        problem, deployments=one_class, demands=(replace(demand, requests_per_s=rates),), objective="cost", required=()
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_said_to_be_least_is_no_dearer_than_the_optimum(kind: type[FleetProblem]) -> None:
    compared, said = 0, 0
    for seed in range(9_000, 9_000 + INSTANCES):
        problem = alone(kind(seed))
        best = solve_fleet(problem)
        if best.usd_per_hour is None or best.usd_per_hour <= 0.0:
            continue
        compared += 1
        assert not is_least(problem, best.usd_per_hour * 1.001), f"seed {seed}: a cheaper plan exists"
        left = within_reach(problem, best.usd_per_hour * 1.3)
        assert not is_least(left, best.usd_per_hour * 1.3), f"seed {seed}: a cheaper plan is within reach"
        said += is_least(within_reach(problem, best.usd_per_hour), best.usd_per_hour)
    assert compared > INSTANCES // 10
    if kind in (tiny_problem, tiny_placed_problem):  # other limits raise what plans cost
        assert said > compared // 4
