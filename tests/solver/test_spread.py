"""Among how many replicas turns are spread, found with the plan: equal to enumeration over every number of replicas."""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from solver.fleet import Demand, Deployment, DeploymentTable, FleetProblem, OfferSlot, solve_fleet
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.outcome import Outcome
from solver.recommend.boxes import BestOfBoxes, CountBox, Counts, Solved, best_of_boxes
from tests.seeds import cases

INSTANCES = cases(300, few=25)
BATCH = cases(100, few=25)
MOST = 16
"""Replicas that any instance has room for."""


class Market:
    """A few kinds of nodes, and what replicas on them sustain of each workload where there are so many of its replicas."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.workloads = rng.choice((1, 1, 1, 1, 2))
        is_alone = self.workloads == 1
        self.offers = tuple(
            OfferSlot(f"o{t}", f"t{t}", f"d{t}", rng.choice((1, 2, 4) if is_alone else (1, 2)), "p", "r", "on_demand",
                      round(rng.uniform(0.8, 6.0), 2), rng.randint(1, 3 if is_alone else 2))
            for t in range(rng.choice((2, 3)))
        )  # fmt: skip
        self.rows: list[Deployment] = []
        self.falls: list[float] = []
        for w in range(self.workloads):
            for offer in self.offers:
                size = rng.choice([g for g in (1, 2, 4) if g <= offer.devices])
                copies = rng.choice((1, 1, 2))
                rate = size * rng.uniform(0.8, 1.6)
                self.rows.append(
                    Deployment(w, offer.node_type_id, size, 1, (rate,), 0.0, len(self.rows), copies=copies)
                )
                # Most of what is lost is lost with the second replica, and less with each further one; some lose nothing.
                self.falls.append(rng.choice((0.0, 0.2, 0.5, 0.8 if is_alone else 0.5)))
        self.rates = [rng.uniform(0.5, 5.0 if is_alone else 1.5) for _ in range(self.workloads)]

    def problem(self, spread: Counts, most: tuple[int | None, ...]) -> FleetProblem:
        """Where turns of each workload are spread over so many."""
        table = DeploymentTable.from_rows(self.rows)
        capacity = np.array(
            [
                row.capacity_requests_per_s[0] * (1.0 - fall * (1.0 - 1.0 / spread[row.workload]))
                for row, fall in zip(self.rows, self.falls, strict=True)
            ]
        )
        demands = tuple(
            Demand((rate,), most_copies=limit, fills_nodes=False) for rate, limit in zip(self.rates, most, strict=True)
        )
        return FleetProblem(self.offers, replace(table, capacity_requests_per_s=capacity[:, None]), demands)

    def room(self, workload: int) -> int:
        """Copies of a workload's model that all nodes hold: spread over more, the same replicas are slower."""
        rows = [row for row in self.rows if row.workload == workload]
        return sum(
            (offer.max_nodes or 0) * (offer.devices // row.devices_per_replica) * row.copies
            for row, offer in zip(rows, self.offers, strict=True)
        )

    def enumerated(self) -> float:
        """The least cost over every number of replicas. That each problem's is the least is for test_copies to say."""
        most = MOST if self.workloads == 1 else MOST // 2
        numbers = itertools.product(*(range(1, min(most, self.room(w)) + 1) for w in range(self.workloads)))
        found = [solve_fleet(self.problem(spread, spread)).objective for spread in numbers]
        return min((value for value in found if value is not None), default=math.inf)

    def searched(self, most_solves: int = 100, *, tries: bool = True) -> tuple[BestOfBoxes[Counts] | None, int]:
        """What boxes come to, and how many of them were solved. tries: what plans are made of is tried with more replicas."""
        solves = 0
        made_of: dict[Counts, set[int]] = {}

        def solve(box: CountBox, best: Solved[Counts] | None) -> Solved[Counts]:
            nonlocal solves
            solves += 1
            result = solve_fleet(self.problem(box.least, box.most))
            if result.plan is None or result.objective is None or result.bound is None:
                assert result.outcome is Outcome.INFEASIBLE
                return Solved(box.least, math.inf, math.inf, None)
            if best is not None and result.objective >= best.value:
                return Solved(box.least, math.inf, best.value, None)  # as a search says that looks at nothing dearer
            copies = [0] * self.workloads
            for (key, _), count in result.plan.replicas().items():
                copies[self.rows[key].workload] += count * self.rows[key].copies
            made_of[box.least] = {key for key, _ in result.plan.replicas()}
            return Solved(box.least, result.objective, result.bound, tuple(max(1, n) for n in copies))

        def true(likely: Solved[Counts]) -> Solved[Counts] | None:
            kinds, copies = made_of[likely.answer], likely.copies
            assert copies is not None
            while True:
                problem = self.problem(copies, (None,) * self.workloads)
                capacity = problem.deployments.capacity_requests_per_s.copy()
                capacity[[key for key in range(len(capacity)) if key not in kinds]] = 0.0
                table = replace(problem.deployments, capacity_requests_per_s=capacity)
                result = solve_fleet(replace(problem, deployments=table))
                if result.plan is None or result.objective is None:
                    return None
                taken = [1] * self.workloads
                for w in range(self.workloads):
                    mine = [(key, n) for (key, _), n in result.plan.replicas().items() if self.rows[key].workload == w]
                    taken[w] = max(1, sum(n * self.rows[key].copies for key, n in mine))
                if all(count <= most for count, most in zip(taken, copies, strict=True)):
                    return Solved(copies, result.objective, -math.inf, tuple(taken))
                copies = tuple(map(max, taken, copies))

        def goes_on() -> bool:
            return solves < most_solves

        gap, first = PROVEN_GAP_FRACTION, (true if tries else (lambda _: None))
        return best_of_boxes(solve, self.workloads, gap, goes_on, first), solves


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible, dearer, taken, untried = 0, 0, [], []
    for seed in range(start, start + BATCH):
        market = Market(seed)
        expected = market.enumerated()
        found, solves = market.searched()
        assert found is not None, f"seed {seed}"
        assert found.value == pytest.approx(expected, rel=1e-5), f"seed {seed}"
        assert found.bound == pytest.approx(expected, rel=1e-5), f"seed {seed}: proven"
        taken.append(solves)
        without, solves = market.searched(tries=False)
        assert without is not None
        assert without.value == pytest.approx(expected, rel=1e-5), f"seed {seed}: nothing tried with more replicas"
        untried.append(solves)
        feasible += math.isfinite(expected)
        together = solve_fleet(market.problem((1,) * market.workloads, (None,) * market.workloads)).objective
        dearer += math.isfinite(expected) and expected != pytest.approx(together, rel=1e-5)
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"
    assert dearer > BATCH // 20, "spreading must cost something"
    assert sum(taken) < sum(untried) < 8.0 * len(untried)


def test_a_search_that_ends_early_bounds_what_it_found() -> None:
    ended_early = 0
    for seed in range(500, 515):
        market = Market(seed)
        expected = market.enumerated()
        found, _ = market.searched(most_solves=2)
        assert found is not None
        assert found.bound <= expected * (1 + 1e-6)
        assert found.value >= expected * (1 - 1e-6)
        ended_early += math.isfinite(expected) and found.bound < expected * (1 - 1e-6)
    assert ended_early > 1


def test_boxes_keep_every_number() -> None:
    rng = random.Random(3)
    for _ in range(200):
        least, room = rng.randint(1, 9), rng.choice((None, rng.randint(1, 40)))
        most = None if room is None else least + room
        copies = rng.randint(least + 1, least + 40 if most is None else most)
        fewer, more = sorted(CountBox((least,), (most,)).parts((copies,)), key=lambda box: box.least)
        assert fewer.least == (least,)
        assert more.most == (most,)
        assert fewer.most[0] is not None
        assert least <= fewer.most[0] == more.least[0] - 1
        assert most is None or more.least[0] <= most


def test_a_plan_of_many_replicas_is_known_soon() -> None:
    """Half a hundred replicas, of which each further one finds less: a search whose time ends after a few boxes has a plan and a bound."""
    load, solves = 50.0, 0

    def solve(box: CountBox, _best: Solved[int] | None) -> Solved[int]:
        nonlocal solves
        solves += 1
        count = math.ceil(load * (1.0 + 0.1 * math.log(box.least[0])))
        if box.most[0] is not None and count > box.most[0]:
            # Fewer and larger ones do as well, if dearer.
            return Solved(box.most[0], 1.5 * count, 1.2 * count, (box.most[0],))
        return Solved(count, float(count), float(count), (count,))

    found = best_of_boxes(solve, 1, 1e-6, lambda: solves < 4)
    assert found is not None
    assert found.best is not None
    assert 50.0 <= found.bound <= found.value < 75.0


def test_what_a_plan_is_made_of_is_a_plan_before_its_own_number_is_searched() -> None:
    """A search whose time ends in the second box: without what the first plan is made of there would be none."""
    solves = 0

    def solve(box: CountBox, _best: Solved[int] | None) -> Solved[int] | None:
        nonlocal solves
        solves += 1
        return Solved(40, 40.0, 40.0, (40,)) if box.least == (1,) and box.most == (None,) else None

    def search(true: Callable[[Solved[int]], Solved[int] | None]) -> BestOfBoxes[int] | None:
        nonlocal solves
        solves = 0
        return best_of_boxes(solve, 1, 1e-6, lambda: solves < 3, true)

    untried = search(lambda _: None)
    assert untried is not None
    assert untried.best is None
    tried = search(lambda likely: replace(likely, value=46.0, copies=(46,)))
    assert tried is not None
    assert (tried.bound, tried.value) == (40.0, 46.0)
