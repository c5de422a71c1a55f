"""Shares by priority: each level equals enumeration, and lower levels never take from higher ones."""

import random
from dataclasses import replace

import pytest

from solver.fleet import Demand, Deployment, DeploymentTable, FleetProblem, Limits, OfferSlot, solve_fleet, verify
from solver.fleet.shed import level_problem, shares_by_priority, shed_problem
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import tiny_problem, tiny_resilient_problem

INSTANCES = cases(500)
BATCH = cases(250)


def scarce_problem(seed: int) -> tuple[FleetProblem, list[float | None]]:
    """A tiny problem of two workloads, one of which is settled at some share of its demand."""
    rng = random.Random(30_000 + seed)
    while True:
        make = tiny_problem if rng.random() < 0.8 else tiny_resilient_problem
        problem = replace(make(rng.randrange(10**6)), objective="cost")
        problem = replace(problem, limits=replace(problem.limits, power_w=None, spare_nodes=0))
        offers = tuple(replace(offer, max_nodes=min(offer.max_nodes or 1, 2)) for offer in problem.offers)
        problem = replace(problem, offers=offers)
        if len(problem.demands) == 2 and any(problem.demands[1].requests_per_s):
            return problem, [rng.choice((0.0, 0.3, 0.7, 1.0)), None]


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_a_level_equals_enumeration(start: int) -> None:
    part = whole = 0
    for seed in range(start, start + BATCH):
        problem, shares = scarce_problem(seed)
        level = level_problem(problem, shares, [1])
        expected, result = best_objective(level), solve_fleet(level)
        assert verify(level, result) == [], f"seed {seed}"
        found = result.throughput_multiple or 0.0
        assert found == pytest.approx(expected or 0.0, rel=1e-5, abs=1e-6), f"seed {seed}: {result}"
        part += 0.0 < found < 1.0 - 1e-9
        whole += found >= 1.0 - 1e-9
    assert part >= max(1, BATCH // 25 - 1)
    assert whole > BATCH // 10


def test_priorities_decide_and_the_shed_problem_has_a_plan() -> None:
    for seed in range(15):
        problem, _ = scarce_problem(seed)
        if not any(problem.demands[0].requests_per_s):
            continue
        for priorities in ((1, 0), (0, 1), (0, 0)):
            shares = shares_by_priority(problem, priorities, solve_fleet)
            assert all(0.0 <= share <= 1.0 for share in shares)
            for w in (0, 1):
                alone = best_objective(level_problem(problem, [None, None], [w])) or 0.0
                if priorities[w] == 1:
                    assert shares[w] == pytest.approx(alone, rel=1e-5, abs=1e-5), f"seed {seed}"
                assert shares[w] <= alone + 1e-5
            left = shed_problem(problem, shares)
            result = solve_fleet(left)
            assert result.plan is not None, f"seed {seed} {priorities} {shares}"
            assert verify(left, result) == []


def two_workloads(budget: float) -> FleetProblem:
    """Chat and batch on nodes of one device at 1 USD/h that serve one request a second; three requests/s each."""
    offers = (OfferSlot("o", "node", "device", 1, "p", "r", "on_demand", 1.0, None, 100.0),)
    rows = [Deployment(w, "node", 1, 1, (1.0,), 100.0, w) for w in (0, 1)]
    demands = (Demand((3.0,)), Demand((3.0,)))
    return FleetProblem(offers, DeploymentTable.from_rows(rows), demands, Limits(budget_usd_per_hour=budget))


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [((2, 1), (1.0, 2 / 3)), ((1, 2), (2 / 3, 1.0)), ((0, 0), (1.0, 2 / 3))],
)
def test_five_nodes_for_six(priorities: tuple[int, int], expected: tuple[float, float]) -> None:
    """Of equals, both are served two thirds; then the first gets the node that is left."""
    assert shares_by_priority(two_workloads(5.0), priorities, solve_fleet) == pytest.approx(expected, rel=1e-5)


def test_a_workload_nothing_can_serve_takes_nothing_from_its_equals() -> None:
    problem = two_workloads(5.0)
    unservable = replace(problem.demands[0], allowed_offer_ids=frozenset())
    problem = replace(problem, demands=(unservable, problem.demands[1]))
    assert shares_by_priority(problem, (0, 0), solve_fleet) == (0.0, 1.0)


def test_a_boast_is_rejected() -> None:
    level = level_problem(two_workloads(5.0), [1.0, None], [1])
    result = solve_fleet(level)
    assert verify(level, result) == []
    assert result.throughput_multiple == pytest.approx(2 / 3)
    assert verify(level, replace(result, throughput_multiple=1.0, objective=1.0, bound=1.0)) != []
    assert verify(replace(level, most_multiple=0.5), result) != []
