"""Properties every plan must have, on problems too large to enumerate."""

import random
from dataclasses import replace

import numpy as np
import pytest

from solver.fleet import FleetProblem, FleetResult, Limits, Plan, SolveOptions, solve_fleet, verify
from solver.fleet.verify import verify_plan
from tests.seeds import cases
from tests.solver.fleet.instances import middling_problem

INSTANCES = cases(500)
BATCH = cases(50)
TOLERANCE = 1e-5


def cost_of(problem: FleetProblem) -> float:
    """Least cost; infinite where there is no plan."""
    result = solve_fleet(problem)
    assert verify(problem, result) == []
    assert result.outcome in ("optimal", "infeasible")
    return float("inf") if result.objective is None else result.objective


def cost_problem(seed: int) -> FleetProblem:
    return replace(middling_problem(seed), objective="cost")


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_verify_accepts_every_plan_and_rejects_its_mutations(start: int) -> None:
    plans = 0
    for seed in range(start, start + BATCH):
        problem = middling_problem(seed)
        result = solve_fleet(problem, SolveOptions(time_limit_s=2))
        assert verify(problem, result) == [], f"seed {seed}"
        assert result.outcome in ("optimal", "feasible", "infeasible"), f"seed {seed}"
        if result.plan is None:
            continue
        plans += 1
        for name, mutated in mutations(random.Random(seed), result, result.plan):
            assert verify(problem, mutated) != [], f"seed {seed}: {name} goes unnoticed"
        if problem.objective == "cost" and result.outcome == "optimal":
            for plan in without_one_unit(result.plan):
                assert verify_plan(problem, plan, 1.0) != [], f"seed {seed}: the plan can spare a node"
    assert plans > BATCH // 2


def mutations(rng: random.Random, result: FleetResult, plan: Plan) -> list[tuple[str, FleetResult]]:
    groups, routes = plan.groups, plan.routes
    position = rng.randrange(len(groups))
    group = groups[position]
    more = replace(group, replicas=tuple((key, count + 9) for key, count in group.replicas) or ((10**6, 1),))
    wrong = [
        ("another node", replace(plan, groups=(*groups, replace(group, units=1, replicas=())))),
        ("a crowded node", replace(plan, groups=(*groups[:position], more, *groups[position + 1 :]))),
        ("no nodes", replace(plan, groups=())),
    ]
    if routes:
        first, rest = routes[0], routes[1:]
        wrong += [
            ("a lost route", replace(plan, routes=rest)),
            ("more traffic", replace(plan, routes=(replace(first, requests_per_s=first.requests_per_s * 1.01), *rest))),
            ("a strange class", replace(plan, routes=(replace(first, workload=first.workload + 50), *rest))),
        ]
    mutated = [(name, replace(result, plan=changed)) for name, changed in wrong]
    assert result.objective is not None
    assert result.usd_per_hour is not None
    return [
        *mutated,
        ("double price", replace(result, usd_per_hour=2 * result.usd_per_hour)),
        ("a boast", replace(result, outcome="optimal", gap_fraction=0.5)),
        ("no bound", replace(result, bound=None)),
    ]


def without_one_unit(plan: Plan) -> list[Plan]:
    fewer = []
    for position, group in enumerate(plan.groups):
        left = () if group.units == 1 else (replace(group, units=group.units - 1),)
        fewer.append(replace(plan, groups=(*plan.groups[:position], *left, *plan.groups[position + 1 :])))
    return fewer


def test_pruned_equals_unpruned() -> None:
    for seed in range(cases(25, 12)):
        problem = middling_problem(seed)
        pruned = solve_fleet(problem)
        full = solve_fleet(problem, SolveOptions(exact_steps=False))
        assert pruned.outcome == full.outcome, f"seed {seed}"
        if pruned.objective is not None:
            assert pruned.objective == pytest.approx(full.objective, rel=TOLERANCE), f"seed {seed}"


def test_same_problem_same_plan() -> None:
    for seed in range(cases(20, 8)):
        problem = middling_problem(seed)
        first, second = solve_fleet(problem), solve_fleet(problem)
        assert first.plan == second.plan
        assert first.objective == second.objective


def test_order_of_offers_and_splitting_one_change_nothing() -> None:
    for seed in range(15):
        problem = cost_problem(seed)
        cost = cost_of(problem)
        assert cost_of(replace(problem, offers=problem.offers[::-1])) == pytest.approx(cost, rel=TOLERANCE)
        if problem.deployments.nodes_per_replica.max() > 1:
            continue  # a replica may not span the halves of a split offer
        split = [
            part
            for offer in problem.offers
            for part in (
                [offer]
                if offer.max_nodes is None or offer.max_nodes < 2
                else [replace(offer, id=f"{offer.id}-a", max_nodes=1), replace(offer, max_nodes=offer.max_nodes - 1)]
            )
        ]
        assert cost_of(replace(problem, offers=tuple(split))) == pytest.approx(cost, rel=TOLERANCE)


def test_cost_is_monotone() -> None:
    """Dearer with more demand and more spares; cheaper with more offers, more nodes and more capacity."""
    for seed in range(cases(15, 8)):
        problem = cost_problem(seed)
        cost = cost_of(problem)
        slack = 1 + TOLERANCE
        table = problem.deployments
        faster = replace(table, capacity_requests_per_s=table.capacity_requests_per_s * 1.2)
        assert cost_of(replace(problem, deployments=faster)) <= cost * slack
        unlimited = tuple(replace(offer, max_nodes=None) for offer in problem.offers)
        assert cost_of(replace(problem, offers=unlimited)) <= cost * slack
        assert cost_of(replace(problem, limits=Limits())) <= cost * slack
        assert cost_of(replace(problem, offers=problem.offers[1:])) * slack >= cost
        busier = tuple(
            replace(demand, requests_per_s=tuple(1.3 * rate for rate in demand.requests_per_s))
            for demand in problem.demands
        )
        assert cost_of(replace(problem, demands=busier)) * slack >= cost
        safer = replace(problem.limits, spare_nodes=problem.limits.spare_nodes + 1)
        assert cost_of(replace(problem, limits=safer)) * slack >= cost


def test_scaling_prices_scales_cost() -> None:
    for seed in range(20):
        problem = replace(cost_problem(seed), limits=Limits())
        tripled = tuple(replace(offer, usd_per_hour=3 * offer.usd_per_hour) for offer in problem.offers)
        assert cost_of(replace(problem, offers=tripled)) == pytest.approx(3 * cost_of(problem), rel=TOLERANCE)


def test_throughput_and_cost_are_each_others_inverse() -> None:
    """With the cost of θ times the demand as the budget, θ can be served."""
    checked = 0
    for seed in range(20):
        problem = replace(cost_problem(seed), limits=Limits())
        cost = cost_of(problem)
        if not np.isfinite(cost):
            continue
        budgeted = replace(problem, limits=Limits(budget_usd_per_hour=cost * 1.000001), objective="throughput")
        result = solve_fleet(budgeted)
        assert verify(budgeted, result) == []
        assert result.throughput_multiple is not None
        assert result.throughput_multiple >= 1 - TOLERANCE
        checked += 1
    assert checked > 10
