"""Fleets proven place by place: the bound, the plan and the knapsacks under it, against enumeration and the whole programme."""

import itertools
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import solver.fleet.solve
from solver.fleet import FleetProblem, Limits, solve_fleet, verify
from solver.fleet.decomposition import by_place
from solver.fleet.decomposition.by_place import parts_by_place, solve_by_place
from solver.fleet.decomposition.covering import Coverer, least_cover
from solver.fleet.decomposition.known_parts import PartsMemo
from solver.fleet.problem import MustUse
from solver.fleet.reduce import reduce_problem
from solver.fleet.restricted import tried
from solver.hardware import PlaceKind
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import middling_problem, tiny_placed_problem

EVERY_KIND: tuple[tuple[PlaceKind, int], ...] = (("provider", 1), ("region", 1), ("device", 1))
TIME_LIMIT_S = 30.0


def in_one_place(problem: FleetProblem, seed: int) -> FleetProblem:
    """The problem for least money, each workload in one place of some kinds, with no limit that joins places."""
    kinds = random.Random(seed).choice((EVERY_KIND, EVERY_KIND[:2], EVERY_KIND[2:]))
    demands = tuple(replace(demand, most_places=kinds, is_fixed=False) for demand in problem.demands)
    limits = Limits(spare_nodes=problem.limits.spare_nodes)
    return replace(problem, demands=demands, limits=limits, objective="cost")


@pytest.mark.parametrize("seed", range(cases(300)))
def test_a_covering_knapsack_equals_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    things = [
        Coverer(float(rng.randint(1, 9)), rng.choice((0.5, 1.0, 2.0, 3.0, 7.0)), rng.choice((1, 2, 3, math.inf)))
        for _ in range(rng.randint(1, 4))
    ]
    need = rng.uniform(0.1, 9.0)
    counts = [range(int(min(one.most, math.ceil(need / one.weight))) + 1) for one in things]
    least = min(
        (
            sum(n * one.cost for n, one in zip(chosen, things, strict=True))
            for chosen in itertools.product(*counts)
            if sum(n * one.weight for n, one in zip(chosen, things, strict=True)) >= need
        ),
        default=math.inf,
    )
    assert least_cover(things, need) == pytest.approx(least)
    assert least_cover(things, need, ceiling=least / 2) == pytest.approx(least / 2)


def test_a_covering_knapsack_of_many_things_ends_with_a_bound() -> None:
    rng = random.Random(5)
    things = [Coverer(10.0 + rng.random(), 10.0 + rng.random()) for _ in range(60)]
    bound = least_cover(things, 9_000.3)
    assert min(one.cost / one.weight for one in things) * 9_000.3 == pytest.approx(bound, rel=1e-3)


def test_thousands_of_single_things_are_bounded_without_depth() -> None:
    rng = random.Random(6)
    things = [Coverer(1.0 + rng.random(), 1.0, 1) for _ in range(3_000)]
    cheapest = sorted(one.cost for one in things)
    assert least_cover(things, 2_000.0) == pytest.approx(sum(cheapest[:2_000]))
    assert least_cover(things, 1_999.5) == pytest.approx(sum(cheapest[:1_999]) + 0.5 * cheapest[1_999])


@pytest.mark.parametrize("start", range(0, cases(400), cases(50)))
def test_bounds_and_plans_equal_enumeration(start: int) -> None:
    proven = beaten = 0
    memo = PartsMemo()  # what is known of one problem must never be believed of another
    for seed in range(start, start + cases(50)):
        problem = in_one_place(tiny_placed_problem(seed), seed)
        if not parts_by_place(problem):
            continue
        expected, reduced = best_objective(problem), reduce_problem(problem)
        if expected is None or reduced.reasons:
            continue
        found = solve_by_place(reduced, math.inf, TIME_LIMIT_S, 0.0, 0, memo)
        assert found.bound <= expected * (1 + 1e-6), f"seed {seed}: {found} of {expected}"
        if found.found is not None:
            assert found.found.objective >= expected * (1 - 1e-6), f"seed {seed}"
        if solve_by_place(reduced, expected, TIME_LIMIT_S, 0.0, 0, memo).bound >= expected * (1 - 1e-6):
            proven += 1
        beaten += found.found is not None
    assert proven > 5, "the bound must often be the optimum"
    assert beaten > 2, "and its plan be found"


@pytest.mark.parametrize("start", range(0, cases(200), cases(50)))
def test_what_is_known_of_parts_changes_no_answer(start: int) -> None:
    """Problems that differ in little share what is known, whatever numbers rows and offers have."""
    known = 0
    for seed in range(start, start + cases(50)):
        problem, rng = in_one_place(tiny_placed_problem(seed), seed), random.Random(seed)
        if not parts_by_place(problem):
            continue
        memo = PartsMemo()
        solve_fleet(problem, parts=memo)
        before = len(memo.solved)
        for changed in _changed_a_little(problem, rng):
            result, expected = solve_fleet(changed, parts=memo), best_objective(changed)
            assert verify(changed, result) == [], f"seed {seed}"
            if expected is None:
                assert result.outcome == "infeasible", f"seed {seed}"
            else:
                assert result.outcome == "optimal", f"seed {seed}"
                assert result.objective == pytest.approx(expected, rel=1e-5), f"seed {seed}"
        known += before
    assert known > 20, "parts must be solved"


def _changed_a_little(problem: FleetProblem, rng: random.Random) -> list[FleetProblem]:
    """Offers and deployments in another order, an offer dearer or gone, a deployment slower, spare nodes."""
    offers, table = list(problem.offers), problem.deployments
    rng.shuffle(offers)
    order = np.array(rng.sample(range(len(table)), len(table)))
    moved = replace(problem, offers=tuple(offers), deployments=table.take(order))
    dearer = replace(offers[0], usd_per_hour=offers[0].usd_per_hour + 1.0)
    slower = table.capacity_requests_per_s.copy()
    slower[rng.randrange(len(table))] *= 0.6
    return [
        moved,
        replace(moved, offers=(dearer, *offers[1:])),
        replace(moved, offers=tuple(offers[1:])) if len({one.node_type_id for one in offers[1:]}) > 1 else moved,
        replace(problem, deployments=replace(table, capacity_requests_per_s=slower)),
        replace(problem, limits=replace(problem.limits, spare_nodes=1 - min(1, problem.limits.spare_nodes))),
    ]


def test_a_part_that_is_known_is_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    solves = {"first": 0, "again": 0}
    for seed in range(cases(100, 50)):
        problem = in_one_place(tiny_placed_problem(seed), seed)
        if not parts_by_place(problem) or reduce_problem(problem).reasons:
            continue
        memo = PartsMemo()
        for which in solves:
            with monkeypatch.context() as patch:

                def counted(*arguments: Any, which: str = which) -> Any:
                    solves[which] += 1
                    return tried(*arguments)

                patch.setattr(by_place, "tried", counted)
                solve_by_place(reduce_problem(problem), math.inf, TIME_LIMIT_S, 0.0, 0, memo)
    assert solves["first"] > 10
    assert solves["again"] == 0


def test_the_whole_programme_agrees_on_larger_markets(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    for seed in range(700, 700 + cases(120, 40)):
        problem = in_one_place(middling_problem(seed), seed)
        if seed % 3 == 0:  # something that every plan must contain
            problem = replace(problem, required=(MustUse("r", offer_ids=frozenset({problem.offers[seed % 2].id})),))
        if not parts_by_place(problem):
            continue
        looked += 1
        parted = solve_fleet(problem)
        assert verify(problem, parted) == [], f"seed {seed}"
        with monkeypatch.context() as patch:
            patch.setattr(solver.fleet.solve, "parts_by_place", lambda _: False)
            whole = solve_fleet(problem)
        assert (parted.outcome, whole.outcome) in {("optimal", "optimal"), ("infeasible", "infeasible")}, f"seed {seed}"
        assert (parted.objective or 0.0) == pytest.approx(whole.objective or 0.0, rel=1e-5), f"seed {seed}"
    assert looked > 20


def test_what_joins_places_is_not_parted() -> None:
    problem = in_one_place(tiny_placed_problem(3), 3)
    assert parts_by_place(problem)
    assert not parts_by_place(replace(problem, limits=Limits(power_w=900.0)))
    assert not parts_by_place(replace(problem, limits=Limits(max_spot_fraction=0.5)))
    assert not parts_by_place(replace(problem, objective="power"))
