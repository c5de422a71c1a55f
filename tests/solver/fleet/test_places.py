"""Workloads that may be in few providers, regions or kinds of devices: equal to enumeration, and dearer by what mixing saves."""

from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FleetProblem,
    OfferSlot,
    solve_fleet,
    verify,
)
from solver.fleet.loosened_limits import stated_limits, without_limits
from solver.fleet.verify import verify_plan
from solver.hardware import PlaceKind
from solver.limit import Limit, LimitKind
from tests.seeds import cases
from tests.solver.fleet.enumerated import solved_as_enumerated, whole_programme_and_other_solver_agree
from tests.solver.fleet.instances import middling_problem, tiny_placed_problem

INSTANCES = cases(500)
BATCH = cases(100)


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible = binding = 0
    for seed in range(start, start + BATCH):
        problem = tiny_placed_problem(seed)
        result, has_plan = solved_as_enumerated(problem, seed)
        if not has_plan:
            continue
        feasible += 1
        assert result.outcome == "optimal", f"seed {seed}: {result}"
        anywhere = replace(problem, demands=tuple(replace(d, most_places=()) for d in problem.demands))
        free = solve_fleet(anywhere).objective
        binding += free != pytest.approx(result.objective, rel=1e-5)
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"
    assert binding >= 2, "some must be dearer for it"


def test_the_whole_programme_and_the_other_solver_agree() -> None:
    whole_programme_and_other_solver_agree(tiny_placed_problem)


def test_the_best_single_region_of_a_larger_market_is_the_best_of_its_regions_alone() -> None:
    kinds: tuple[tuple[PlaceKind, int], ...] = (("region", 1),)
    differ = 0
    for seed in range(300, 340):
        market = middling_problem(seed)
        if market.objective != "cost" or len(market.demands) > 1 or market.limits.spare_nodes:
            continue
        problem = replace(market, demands=(replace(market.demands[0], most_places=kinds),))
        alone = []
        for region in sorted({offer.place("region") for offer in market.offers}):
            here = frozenset(offer.id for offer in market.offers if offer.place("region") == region)
            alone.append(solve_fleet(replace(market, demands=(replace(market.demands[0], allowed_offer_ids=here),))))
        prices = [one.objective for one in alone if one.objective is not None]
        found = solve_fleet(problem)
        assert verify(problem, found) == [], f"seed {seed}"
        if not prices:
            assert found.plan is None, f"seed {seed}"
            continue
        assert found.objective == pytest.approx(min(prices), rel=1e-6), f"seed {seed}"
        differ += found.objective != pytest.approx(solve_fleet(market).objective, rel=1e-6)
    assert differ >= 3


def two_places(most: tuple[tuple[PlaceKind, int], ...]) -> FleetProblem:
    """Five requests a second; nodes that serve two for 3 USD in one region, one that serves one for 1 USD in another."""
    offers = (
        OfferSlot("large", "big", "b", 1, "p", "here", "on_demand", 3.0, None),
        OfferSlot("small", "little", "l", 1, "q", "there", "on_demand", 1.0, 1),
    )
    rows = [Deployment(0, "big", 1, 1, (2.0,), 0.0, 0), Deployment(0, "little", 1, 1, (1.0,), 0.0, 1)]
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((5.0,), most_places=most),))


@pytest.mark.parametrize("kind", ["provider", "region", "device"])
def test_one_place_costs_what_a_second_one_saves(kind: PlaceKind) -> None:
    mixed, single = solve_fleet(two_places(())), solve_fleet(two_places(((kind, 1),)))
    assert mixed.objective == pytest.approx(7.0)
    assert single.objective == pytest.approx(9.0)
    assert solve_fleet(two_places(((kind, 2),))).objective == pytest.approx(7.0)


def test_a_plan_in_too_many_places_is_refused_by_the_checker() -> None:
    mixed = solve_fleet(two_places(()))
    assert mixed.plan is not None
    errors = verify_plan(two_places((("device", 1),)), mixed.plan, 1.0)
    assert len(errors) == 1
    assert "places of kind device" in errors[0]


def test_lifting_it_by_name() -> None:
    problem = two_places((("region", 1),))
    assert Limit(LimitKind.PLACES_USED, "region") in stated_limits(problem)
    assert without_limits(problem, [Limit(LimitKind.PLACES_USED, "region")]).demands[0].most_places == ()


def test_no_place_at_all_is_no_limit() -> None:
    with pytest.raises(InvalidInputError, match="at least one place"):
        Demand((1.0,), most_places=(("region", 0),))
