"""Prefill and decode replicas in the optimiser: equal to enumeration, under every limit, and mutations of a plan are refused."""

from dataclasses import replace

import pytest

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
from solver.fleet.plan import NodeGroup, Plan, Route
from solver.fleet.verify import verify_plan
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import tiny_exchange_problem
from tests.solver.fleet.test_brute_force import check

INSTANCES = cases(600)
BATCH = cases(100)


def decodes_apart(problem: FleetProblem, plan: Plan | None) -> bool:
    return plan is not None and any(
        problem.deployments.roles[problem.deployments.key == route.key] == 2 for route in plan.routes
    )


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible = apart = 0
    for seed in range(start, start + BATCH):
        problem = tiny_exchange_problem(seed)
        result = check(problem, SolveOptions(), seed, best_objective(problem))
        feasible += result.plan is not None
        apart += decodes_apart(problem, result.plan)
    assert BATCH // 8 < feasible < BATCH
    assert apart >= BATCH // 20, "prefill and decode must be apart now and then"


def test_full_programme_equals_enumeration() -> None:
    for seed in range(1_000, 1_000 + cases(80, 30)):
        problem = tiny_exchange_problem(seed)
        check(problem, SolveOptions(exact_steps=False), seed, best_objective(problem))


def test_cbc_equals_enumeration() -> None:
    for seed in range(2_000, 2_030):
        problem = tiny_exchange_problem(seed)
        check(problem, SolveOptions(solver="cbc"), seed, best_objective(problem))


def by_hand(limits: Limits) -> FleetProblem:
    offers = (
        OfferSlot("a", "ta", "da", 2, "p", "east", "on_demand", 2.0, 3),
        OfferSlot("b", "tb", "db", 2, "p", "east", "on_demand", 2.0, 3),
        OfferSlot("c", "tb", "db", 2, "p", "west", "on_demand", 1.0, 3),
    )
    rows = (
        Deployment(0, "ta", 2, 1, (1.0,), 0.0, 0),
        Deployment(0, "ta", 1, 1, (3.0,), 0.0, 1, role="prefill"),
        Deployment(0, "tb", 2, 1, (4.0,), 0.0, 2, role="decode"),
    )
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((4.0,)),), limits)


class TestByHand:
    def test_apart_beats_four_nodes_of_both(self) -> None:
        """Aggregated: 4 nodes of a, of which 3 exist. Apart, in the east: one node of a (6 prompts/s), one of b (4 replies/s)."""
        problem = by_hand(Limits())
        result = solve_fleet(problem)
        assert result.usd_per_hour == 4.0
        assert result.plan is not None
        assert result.plan.replicas() == {(1, "a"): 2, (2, "b"): 1}
        assert {(r.key, r.offer_id): r.requests_per_s for r in result.plan.routes} == {(1, "a"): 4.0, (2, "b"): 4.0}
        assert verify(problem, result) == []

    def test_the_cache_never_crosses_regions(self) -> None:
        """The west decodes for half the price, and has nothing to prefill with."""
        problem = by_hand(Limits())
        assert solve_fleet(replace(problem, offers=(problem.offers[0], problem.offers[2]))).outcome == "infeasible"

    def test_an_exchange_is_lost_as_one(self) -> None:
        """Both regions must serve alone: two more nodes in the west, where a is then offered too."""
        problem = by_hand(Limits(fault_tolerance=FaultTolerance(regions=1)))
        assert solve_fleet(problem).outcome == "infeasible"
        west = replace(problem.offers[0], id="d", region="west")
        result = solve_fleet(replace(problem, offers=(*problem.offers, west)))
        assert result.usd_per_hour == 2.0 + 2.0 + 1.0 + 2.0

    def test_a_spare_of_either_side(self) -> None:
        assert solve_fleet(by_hand(Limits(spare_nodes=1))).usd_per_hour == 8.0

    def test_least_replicas_count_in_each_phase(self) -> None:
        problem = by_hand(Limits())
        two = replace(problem, demands=(replace(problem.demands[0], min_replicas=2),))
        result = solve_fleet(two)
        assert result.usd_per_hour == 6.0  # a second node that decodes
        assert verify(two, result) == []

    def test_throughput_within_a_budget(self) -> None:
        result = solve_fleet(replace(by_hand(Limits(budget_usd_per_hour=6.0)), objective="throughput"))
        assert result.throughput_multiple == pytest.approx(1.5)  # 6 prompts/s on one node, 8 replies/s on two


def plan_of(a: int, b: int, prefilled: float, decoded: float, decode_at: str = "b") -> Plan:
    return Plan(
        (NodeGroup("a", a, 1, ((1, 2),)), NodeGroup(decode_at, b, 1, ((2, 1),))),
        (Route(1, "a", 0, 0, prefilled), Route(2, decode_at, 0, 0, decoded)),
    )


@pytest.mark.parametrize(
    ("plan", "right"),
    [
        (plan_of(1, 1, 4.0, 4.0), True),
        (plan_of(1, 1, 3.9, 4.0), False),
        (plan_of(1, 1, 4.0, 3.9), False),
        (plan_of(1, 1, 3.9, 3.9), False),
        (plan_of(1, 1, 4.0, 4.0, decode_at="c"), False),
        (plan_of(4, 1, 4.0, 4.0), False),
        (plan_of(1, 1, 4.0, -4.0), False),
        (plan_of(1, 1, 8.0, 8.0), False),
    ],
    ids=[
        "right",
        "unbalanced",
        "not all decoded",
        "under-served",
        "across regions",
        "more than offered",
        "negative",
        "over",
    ],
)
def test_mutations_are_refused(plan: Plan, right: bool) -> None:
    assert (verify_plan(by_hand(Limits()), plan, 1.0) == []) is right
