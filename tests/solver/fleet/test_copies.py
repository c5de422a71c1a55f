"""Workloads that may have few copies of their model: equal to enumeration, and dearer by what more copies save."""

from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.fleet import Demand, Deployment, DeploymentTable, FleetProblem, OfferSlot, SolveOptions, solve_fleet, verify
from solver.fleet.verify import verify_plan
from tests.seeds import cases
from tests.solver.fleet.enumerated import solved_as_enumerated, whole_programme_and_other_solver_agree
from tests.solver.fleet.instances import middling_problem, tiny_copies_problem

INSTANCES = cases(500)
BATCH = cases(100)


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible = binding = 0
    for seed in range(start, start + BATCH):
        problem = tiny_copies_problem(seed)
        result, has_plan = solved_as_enumerated(problem, seed)
        many = replace(problem, demands=tuple(replace(one, most_copies=None) for one in problem.demands))
        free = solve_fleet(many)
        if not has_plan:
            binding += free.plan is not None
            continue
        feasible += 1
        assert result.outcome == "optimal", f"seed {seed}: {result}"
        binding += free.objective != pytest.approx(result.objective, rel=1e-5)
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"
    assert binding >= 2, "some must be dearer for it"


def test_the_whole_programme_and_the_other_solver_agree() -> None:
    whole_programme_and_other_solver_agree(tiny_copies_problem)


def test_larger_problems_equal_their_whole_programme() -> None:
    """Reductions, drafts and decompositions of several workloads against the programme without any of them."""
    binding = 0
    for seed in range(400, 400 + cases(24, 12)):
        market = middling_problem(seed)
        demands = tuple(replace(one, most_copies=2 + (seed + w) % 5) for w, one in enumerate(market.demands))
        problem = replace(market, demands=demands)
        found, whole = solve_fleet(problem), solve_fleet(problem, SolveOptions(exact_steps=False))
        assert verify(problem, found) == [], f"seed {seed}"
        assert (found.plan is None) == (whole.plan is None), f"seed {seed}"
        if found.plan is not None:
            assert found.objective == pytest.approx(whole.objective, rel=1e-5), f"seed {seed}"
        binding += found.objective != pytest.approx(solve_fleet(market).objective, rel=1e-6)
    assert binding >= 3


def small_or_large(most: int | None) -> FleetProblem:
    """Six requests a second; nodes that serve two for 1 USD, or six for 5 USD."""
    offers = (
        OfferSlot("small", "little", "l", 1, "p", "here", "on_demand", 1.0, None),
        OfferSlot("large", "big", "b", 1, "p", "here", "on_demand", 5.0, None),
    )
    rows = [Deployment(0, "little", 1, 1, (2.0,), 0.0, 0), Deployment(0, "big", 1, 1, (6.0,), 0.0, 1)]
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((6.0,), most_copies=most),))


@pytest.mark.parametrize(("most", "usd_per_hour"), [(None, 3.0), (3, 3.0), (2, 5.0), (1, 5.0)])
def test_fewer_copies_take_larger_machines(most: int | None, usd_per_hour: float) -> None:
    assert solve_fleet(small_or_large(most)).objective == pytest.approx(usd_per_hour)


def test_a_plan_of_too_many_copies_is_refused_by_the_checker() -> None:
    many = solve_fleet(small_or_large(None))
    assert many.plan is not None
    assert verify_plan(small_or_large(2), many.plan, 1.0) == [
        "workload 0 has 3 copies of its model, at most 2 are allowed"
    ]


def test_no_copy_at_all_is_no_limit() -> None:
    with pytest.raises(InvalidInputError, match="most_copies"):
        Demand((1.0,), most_copies=0)
