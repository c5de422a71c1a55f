"""Bounds and plans from workloads one by one: never above the optimum, never a plan that does not hold."""

from dataclasses import replace

import numpy as np
import pytest

from solver.fleet import SolveOptions, solve, solve_fleet, verify
from solver.fleet.decomposition.drafts import neighbourhoods, one_by_one
from solver.fleet.decomposition.standalone import add_own_cost, own_cost, promising, replacement_price, within
from solver.fleet.highs import solve_with_highs
from solver.fleet.model.formulation import build_model
from solver.fleet.realise import realise
from solver.fleet.reduce import reduce_problem
from solver.fleet.verify import verify_plan
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import middling_problem, tiny_problem
from tests.solver.fleet.test_brute_force import check

INSTANCES = cases(500)
BATCH = cases(50)


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_workload_by_workload_equals_enumeration(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tiny problem goes through the steps that are otherwise kept for larger ones."""
    monkeypatch.setattr(solve, "FEW_PAIRS", 0)
    for seed in range(5000 + start, 5000 + start + BATCH):
        problem = tiny_problem(seed)
        check(problem, SolveOptions(), seed, best_objective(problem))


def test_a_plan_of_slower_replicas_is_beaten_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known to hold, it is where the search starts; the optimum is the same."""
    monkeypatch.setattr(solve, "FEW_PAIRS", 0)
    started, bettered = 0, 0
    for seed in range(6000, 6150):
        problem = tiny_problem(seed)
        table = problem.deployments
        slower = replace(table, capacity_requests_per_s=table.capacity_requests_per_s * 0.4)
        known = solve_fleet(replace(problem, deployments=slower))
        found, alone = solve_fleet(problem, SolveOptions(), known), solve_fleet(problem)
        assert found.outcome is alone.outcome, f"seed {seed}"
        assert not verify(problem, found), f"seed {seed}"
        if alone.objective is not None:
            assert found.objective == pytest.approx(alone.objective, rel=1e-6), f"seed {seed}"
        if known.objective is not None and found.objective is not None and problem.objective == "cost":
            started, bettered = started + 1, bettered + (found.objective < known.objective * (1 - 1e-9))
    assert started > 30
    assert bettered > 10


def test_own_cost_is_below_every_plan_and_its_rows_cut_none_off() -> None:
    compared = 0
    instances = cases(120, 25)
    for seed in range(instances):
        problem = middling_problem(seed)
        reduced = reduce_problem(problem)
        if problem.objective == "throughput" or reduced.reasons or not len(reduced.pairs):
            continue
        best = solve_fleet(problem)
        own = own_cost(reduced, 10.0, 0)
        if best.objective is None:
            continue
        assert own.lower <= best.objective * (1 + 1e-9), f"seed {seed}"
        assert own.lower >= reduced.bound * (1 - 1e-6), f"seed {seed}: no better than replicas divisible"
        few, few_own = within(reduced, own, best.objective)
        model = build_model(few)
        add_own_cost(model, few_own)
        solved = solve_with_highs(model.programme, None, 10.0, 0.0, 0)
        assert solved.proof == "optimal", f"seed {seed}"
        assert solved.bound == pytest.approx(best.objective, rel=1e-5), f"seed {seed}"
        compared += 1
    assert compared > 0.5 * instances


def test_steps_return_plans_within_all_limits() -> None:
    held, instances = 0, cases(80, 25)
    for seed in range(instances):
        problem = middling_problem(seed)
        reduced = reduce_problem(problem)
        if problem.objective == "throughput" or reduced.draft is None or len(problem.demands) < 2:
            continue
        own = own_cost(reduced, 10.0, 0)
        placed = one_by_one(reduced, own, 10.0, 0)
        assert placed is not None
        placed = neighbourhoods(reduced, own, placed, 10.0, 0)
        plan, multiple = realise(problem, reduced.groups, placed.draft(), {})
        assert verify_plan(problem, plan, multiple) == [], f"seed {seed}"
        objective = plan.power_w(problem) if problem.objective == "power" else plan.usd_per_hour(problem)
        assert objective <= reduced.draft.objective * (1 + 1e-9), f"seed {seed}: dearer than it began"
        few, few_own = promising(replace(reduced, bound=own.lower), own, 0.1)
        assert len(few.pairs) == len(few_own.excess)
        held += 1
    assert held > instances // 8


def test_a_replica_is_priced_by_the_whole_replicas_that_do_its_work() -> None:
    # Two replicas of the first do all the second does; nothing else serves the third's second class.
    load = np.array([[1.0, np.inf], [0.6, np.inf], [1.0, 1.0]])
    price, needed = replacement_price(load, np.array([1.0, 2.5, 4.0]))
    assert price.tolist() == [1.0, 2.0, 4.0]
    assert needed.tolist() == [0, 2]
