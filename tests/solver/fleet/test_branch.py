"""Bounds and leaves with whole nodes: below every plan, and the best plan is in one of the leaves."""

import itertools
import random

import numpy as np
import pytest

from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FleetProblem,
    OfferSlot,
    SolveOptions,
    solve,
    solve_fleet,
    verify,
)
from solver.fleet.decomposition import by_workload
from solver.fleet.decomposition.branch import with_whole_nodes
from solver.fleet.decomposition.master import Branch, cost_of_nodes, draft_of, relaxed_master, whole_master
from solver.fleet.decomposition.prices import Subproblems
from solver.fleet.decomposition.standalone import OwnCost, add_leaf, add_own_cost, kept, own_cost
from solver.fleet.found import realised
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.highs import solve_with_highs
from solver.fleet.model.formulation import build_model
from solver.fleet.reduce import ReducedProblem, reduce_problem
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import middling_problem, tiny_problem, tiny_rack_problem
from tests.solver.fleet.test_brute_force import check

BATCH = cases(100)


def shared(problem: FleetProblem) -> ReducedProblem | None:
    """The problem reduced, if it is one of several workloads that may have plans."""
    reduced = reduce_problem(problem)
    several = len(problem.demands) > 1 and problem.objective != "throughput"
    return reduced if several and not reduced.reasons and len(reduced.pairs) else None


def split_up(reduced: ReducedProblem, ceiling: float) -> tuple[OwnCost, list[Draft]]:
    """(bound and leaves, drafts found on the way); the ceiling stays, so that leaves are all it leaves room for."""
    found: list[Draft] = []
    own = with_whole_nodes(reduced, own_cost(reduced, 10.0, 0), ceiling, 0.0, found.append, 10.0, 0)
    return own, found


def best_of_leaves(reduced: ReducedProblem, own: OwnCost, ceiling: float) -> float:
    """Least objective over the leaves' programmes, each with its own pairs, nodes and rows."""
    best = np.inf
    for number, leaf in enumerate(own.leaves):
        few, few_own = kept(reduced, own, leaf.bound + leaf.excess <= ceiling)
        if not len(few.pairs):
            continue
        model = build_model(few)
        add_own_cost(model, few_own)
        add_leaf(model, few_own.leaves[number])
        solved = solve_with_highs(model.programme, None, 10.0, 0.0, 0)
        if solved.proof == "optimal" and solved.bound is not None:
            assert solved.bound >= leaf.bound * (1 - 1e-6), "a leaf's bound is above a plan of it"
            best = min(best, solved.bound)
    return best


@pytest.mark.parametrize("start", range(0, cases(500), BATCH))
def test_fleets_with_a_rack_equal_enumeration(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is below the optimum, one of the leaves contains it, and the optimiser finds it."""
    monkeypatch.setattr(solve, "FEW_PAIRS", 0)
    compared, lifted = 0, 0
    for seed in range(start, start + BATCH):
        problem = tiny_rack_problem(seed)
        expected, reduced = best_objective(problem), shared(problem)
        check(problem, SolveOptions(), seed, expected)
        if expected is None or reduced is None:
            continue
        ceiling = 1.2 * expected
        own, found = split_up(reduced, ceiling)
        assert own.lower <= expected * (1 + 1e-6), f"seed {seed}"
        plans = [plan for draft in found if (plan := realised(reduced, draft, {}, "highs"))]
        assert all(plan.objective >= expected * (1 - 1e-6) for plan in plans), f"seed {seed}"
        assert best_of_leaves(reduced, own, ceiling) == pytest.approx(expected, rel=1e-5), f"seed {seed}"
        lifted += own.lower > own_cost(reduced, 10.0, 0).lower * (1 + 1e-6)
        compared += 1
    assert compared > BATCH // 3
    assert lifted > BATCH // 10, "whole nodes must matter"


def test_any_prices_and_any_branch_give_a_bound() -> None:
    """Prices need not be good ones: the Lagrangian is below every plan of the branch."""
    rng, compared, instances = random.Random(3), 0, cases(80, 40)
    problems = itertools.chain(
        map(tiny_rack_problem, range(instances)), map(tiny_problem, range(7000, 7000 + instances))
    )
    for number, problem in enumerate(problems):
        expected, reduced = best_objective(problem), shared(problem)
        if expected is None or reduced is None:
            continue
        known = Subproblems(reduced, 10.0, 0.0, 0)
        barred = np.zeros(len(reduced.groups), dtype=np.bool_)
        for _ in range(3):
            prices = known.cheapest * np.array([rng.choice((0.0, 0.4, 1.0, 1.7)) for _ in reduced.groups])
            bound = known.at(prices, barred).total + cost_of_nodes(known, Branch(0.0), prices)
            assert bound <= expected * (1 + 1e-6), f"problem {number}"
        compared += 1
    assert compared > 0.35 * instances


def test_ways_that_fit_on_whole_nodes_make_plans_within_the_relaxed_master() -> None:
    plans = 0
    for seed in range(60):
        problem = middling_problem(seed)
        reduced = shared(problem)
        if reduced is None:
            continue
        known = Subproblems(reduced, 10.0, 0.0, 0)
        known.at(known.cheapest, np.zeros(len(reduced.groups), dtype=np.bool_))
        ways, _ = whole_master(known, 10.0, 0)
        draft = None if ways is None else draft_of(known, ways)
        plan = None if draft is None else realised(reduced, draft, {}, "highs")
        if plan is None:
            continue
        assert relaxed_master(known, Branch(0.0)).objective <= plan.objective * (1 + 1e-6), f"seed {seed}"
        plans += 1
    assert plans > 5


def rack_problem() -> FleetProblem:
    """A rack of 8 devices at 16 USD/h that one workload needs 4 of; another needs 6 devices, there or on its own nodes."""
    offers = (
        OfferSlot("rack", "rack", "big", 8, "p", "r", "on_demand", 16.0),
        OfferSlot("own", "own", "small", 1, "p", "r", "on_demand", 1.0),
    )
    rows = [
        Deployment(0, "rack", 4, 1, (1.0,), 0.0, 0),
        Deployment(1, "rack", 1, 1, (1.0,), 0.0, 1),
        Deployment(1, "own", 1, 1, (1.0,), 0.0, 2),
    ]
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((1.0,)), Demand((6.0,))))


def test_a_rack_that_one_workload_needs_is_charged_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # Divisible: 4 of 8 devices of the rack, 8 USD/h, and six nodes at 1: 14. Whole: 16 for the rack, on which four more
    # replicas of the other workload find place, and two nodes: 18.
    problem = rack_problem()
    reduced = reduce_problem(problem)
    assert own_cost(reduced, 10.0, 0).lower == pytest.approx(14.0)
    own, _ = split_up(reduced, 30.0)
    assert own.lower == pytest.approx(18.0)
    monkeypatch.setattr(solve, "FEW_PAIRS", 0)
    result = solve_fleet(problem)
    assert (result.outcome, result.objective) == ("optimal", pytest.approx(18.0))


def test_leaves_are_left_to_one_programme_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "FEW_PAIRS", 0)
    monkeypatch.setattr(by_workload, "MOST_LEAVES", 0)
    for seed in range(12):
        problem = middling_problem(seed)
        result = solve_fleet(problem, SolveOptions(time_limit_s=2))
        assert verify(problem, result) == [], f"seed {seed}"
