"""Plans that outlive the loss of providers and regions: equal to enumeration, checked, and never cheaper than without."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FaultTolerance,
    FleetProblem,
    Limits,
    OfferSlot,
    SolveOptions,
    solve_fleet,
    verify,
)
from solver.fleet.groups.losses import losses_of_plan
from solver.fleet.loosened_limits import limit_steps, stated_limits, without_limits
from solver.fleet.relaxations import conflicts, has_plan, relaxations
from solver.fleet.verify import verify_plan
from solver.limit import Limit, LimitKind
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import tiny_distant_problem, tiny_resilient_problem

INSTANCES = cases(500)
BATCH = cases(100)


def offer(name: str, region: str, usd: float, most: int | None = None, provider: str = "p") -> OfferSlot:
    return OfferSlot(name, "node", "device", 1, provider, region, "on_demand", usd, most, 100.0)


def problem(fault_tolerance: FaultTolerance, *offers: OfferSlot, requests_per_s: float = 6.0) -> FleetProblem:
    """Nodes of one device that serve two requests a second, used up to 80 % in normal operation."""
    rows = [Deployment(0, "node", 1, 1, (2.0,), 100.0, 0)]
    demand = Demand((requests_per_s,), 0.8)
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (demand,), Limits(fault_tolerance=fault_tolerance))


THREE = (offer("a", "ra", 1.0), offer("b", "rb", 1.1), offer("c", "rc", 1.5))


def cost(case: FleetProblem) -> float:
    result = solve_fleet(case)
    assert verify(case, result) == []
    assert result.outcome in ("optimal", "infeasible")
    return math.inf if result.objective is None else result.objective


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible: Counter[bool] = Counter()
    for seed in range(start, start + BATCH):
        case = tiny_resilient_problem(seed)
        expected = best_objective(case)
        result = solve_fleet(case, SolveOptions(exact_steps=seed % 4 != 0))
        assert verify(case, result) == [], f"seed {seed}"
        feasible[expected is not None] += 1
        if expected is None:
            assert result.outcome == "infeasible", f"seed {seed}: {result}"
        else:
            assert result.outcome == "optimal", f"seed {seed}: {result}"
            assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-7), f"seed {seed}"
    assert min(feasible[True], feasible[False]) > BATCH // 8


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_deployments_tied_to_regions_equal_enumeration(start: int) -> None:
    rejected = 0
    for seed in range(start, start + BATCH):
        case = tiny_distant_problem(seed)
        expected, result = best_objective(case), solve_fleet(case, SolveOptions(exact_steps=seed % 4 != 0))
        assert verify(case, result) == [], f"seed {seed}"
        assert (result.objective is None) == (expected is None), f"seed {seed}: {result}"
        if expected is None or result.plan is None:
            continue
        assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-7), f"seed {seed}"
        moved = tuple(replace(offer, region="elsewhere") for offer in case.offers)
        tied = {int(key) for key, site in zip(case.deployments.key, case.deployments.site, strict=True) if site >= 0}
        if any(key in tied for key, _ in result.plan.replicas()):
            errors = verify_plan(replace(case, offers=moved), result.plan, result.throughput_multiple or 1.0)
            assert any("may not run in" in error for error in errors), f"seed {seed}"
            rejected += 1
    assert rejected > BATCH // 10


def test_two_regions_hold_everything_twice_three_half_as_much_again() -> None:
    """6 requests/s on nodes of 2, full use after a loss: three nodes must remain, whichever region is lost."""
    two = solve_fleet(problem(FaultTolerance(regions=1), *THREE[:2]))
    assert two.plan is not None
    assert two.plan.nodes_by_offer() == {"a": 3, "b": 3}
    three = solve_fleet(problem(FaultTolerance(regions=1), *THREE))
    assert three.plan is not None
    assert three.plan.nodes_by_offer() == {
        "a": 2,
        "b": 2,
        "c": 1,
    }  # one of 1.5 USD/h instead of one each of 1.0 and 1.1
    assert three.usd_per_hour == pytest.approx(5.7)


def test_headroom_after_a_loss_is_stated_and_kept() -> None:
    case = problem(FaultTolerance(regions=1, utilisation_limit_fraction=0.75), *THREE[:2])
    result = solve_fleet(case)
    assert result.plan is not None
    assert result.plan.nodes_by_offer() == {"a": 4, "b": 4}
    (loss,) = losses_of_plan(case, result.plan)
    assert loss.utilisation_fraction == pytest.approx(0.75)


def test_any_two_regions_may_be_lost() -> None:
    four = (*THREE, offer("d", "rd", 2.0))
    case = problem(FaultTolerance(regions=2), *four)
    result = solve_fleet(case)
    assert result.plan is not None
    assert sorted(result.plan.nodes_by_offer().values()) == [1, 2, 2, 2] or result.usd_per_hour is not None
    for lost in ((x, y) for x in "abcd" for y in "abcd" if x < y):
        left = sum(n for o, n in result.plan.nodes_by_offer().items() if o not in lost)
        assert left >= 3, lost


def test_a_plan_that_does_not_outlive_the_loss_is_rejected() -> None:
    rejected = 0
    instances = cases(150)
    for seed in range(instances):
        case = replace(tiny_resilient_problem(seed), objective="cost")
        careless = replace(case, limits=replace(case.limits, fault_tolerance=FaultTolerance()))
        result = solve_fleet(careless)
        careful = best_objective(case)
        if result.plan is None:
            continue
        errors = verify_plan(case, result.plan, 1.0)
        if careful is None or (result.objective is not None and careful > result.objective + 1e-6):
            assert errors, f"seed {seed}"
            rejected += any("loss of" in error for error in errors)
    assert rejected > 0.26 * instances


def test_cost_is_monotone() -> None:
    for seed in range(cases(80)):
        case = replace(tiny_resilient_problem(seed), objective="cost")
        safe, fault_tolerance = cost(case), case.limits.fault_tolerance
        for fewer in (
            FaultTolerance(utilisation_limit_fraction=fault_tolerance.utilisation_limit_fraction),
            replace(fault_tolerance, utilisation_limit_fraction=1.0),
            replace(fault_tolerance, regions=max(0, fault_tolerance.regions - 1)),
        ):
            assert cost(replace(case, limits=replace(case.limits, fault_tolerance=fewer))) <= safe + 1e-6, (
                f"seed {seed}"
            )
        elsewhere = replace(case.offers[0], id="more", region="r7", provider="p7")
        assert cost(replace(case, offers=(*case.offers, elsewhere))) <= safe + 1e-6, f"seed {seed}"


def test_too_few_regions_are_named_and_priced() -> None:
    case = problem(FaultTolerance(regions=1), THREE[0])
    result = solve_fleet(case)
    assert result.outcome == "infeasible"
    assert result.reasons == ("workload 0: nothing is left to serve it after the loss of 1 region",)
    assert conflicts(stated_limits(case), lambda lifted: has_plan(without_limits(case, lifted))) == (
        Limit(LimitKind.LOSSES, "region"),
    )
    (fewer,) = relaxations(case)
    assert (fewer.change.relaxing_to, fewer.result.usd_per_hour) == (0, 4)
    assert fewer.change.limit == Limit(LimitKind.LOSSES, "region")


def test_each_loss_and_each_pinned_workload_is_a_step_to_explain() -> None:
    case = problem(FaultTolerance(regions=1), *THREE)
    pinned = replace(case.demands[0], allowed_offer_ids=frozenset({"a", "b"}), min_replicas=7)
    case = replace(case, demands=(pinned,))
    steps = {step.limit.kind: step for step in limit_steps(case, solve_fleet(case), 0.2)}
    assert set(steps) == {LimitKind.LOSSES, LimitKind.MIN_REPLICAS, LimitKind.ADMITTED_OFFERS}
    assert cost(steps[LimitKind.ADMITTED_OFFERS].problem) <= cost(case)


def test_the_heuristic_alone_has_a_plan() -> None:
    case = problem(FaultTolerance(regions=1), *THREE, requests_per_s=60.0)
    result = solve_fleet(case, SolveOptions(time_limit_s=1e-6))
    assert result.plan is not None
    assert verify(case, result) == []


def test_too_many_losses_of_several_classes_are_refused() -> None:
    offers = tuple(offer(f"o{n}", f"r{n}", 1.0) for n in range(40))
    rows = DeploymentTable.from_rows([Deployment(0, "node", 1, 1, (2.0, 1.0), 100.0, 0)])
    with pytest.raises(InvalidInputError, match="780 ways to lose 2 regions"):
        FleetProblem(offers, rows, (Demand((1.0, 1.0)),), Limits(fault_tolerance=FaultTolerance(regions=2)))
