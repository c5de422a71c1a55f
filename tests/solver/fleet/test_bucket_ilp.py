"""Buckets of request lengths over GPU types: equal to enumeration, and never dearer than whole slices."""

from dataclasses import replace

import pytest

from solver.fleet import FleetProblem, solve_fleet
from solver.fleet.solve import SolveOptions
from tests.bench.bucket_ilp import bucket_fleet, sliced_cost
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.test_brute_force import check

INSTANCES = cases(500)
BATCH = cases(100)


def few_nodes(seed: int) -> FleetProblem:
    """Four buckets, two GPU types of at most three nodes: small enough to enumerate."""
    problem = bucket_fleet(seed, side=2, gpus=2, requests_per_s=0.2 * (1 + seed % 7))
    return replace(problem, offers=tuple(replace(offer, max_nodes=3) for offer in problem.offers))


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equal_to_enumeration(start: int) -> None:
    feasible = 0
    for seed in range(start, start + BATCH):
        problem = few_nodes(seed)
        feasible += check(problem, SolveOptions(), seed, best_objective(problem)).plan is not None
    assert feasible > BATCH // 4


def test_never_dearer_than_whole_slices() -> None:
    for seed in range(12):
        problem = bucket_fleet(seed, side=3, gpus=3, requests_per_s=4.0)
        result = solve_fleet(problem)
        sliced, proven = sliced_cost(problem, 2, 10.0)
        assert result.outcome == "optimal"
        assert result.objective is not None
        assert sliced is not None
        assert proven
        assert result.objective <= sliced * (1 + 1e-6), f"seed {seed}"
