"""Switching costs as tiers of offers: the optimum equals enumeration of rent and switching over all node counts."""

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from solver.fleet import FleetProblem, Limits, solve_fleet, verify
from solver.recommend.replan import CurrentFleet, HeldNodes, SwitchingCost, split_offers
from tests.seeds import cases
from tests.solver.fleet.brute_force import _Enumeration
from tests.solver.fleet.instances import tiny_problem

INSTANCES = cases(510)


def price_of(nodes: int, held: HeldNodes | None, usd_per_hour: float, cost: SwitchingCost) -> float:
    """USD/h of renting so many nodes of one offer, the switch spread over the payback time."""
    before = held.nodes if held else 0
    once = max(0, nodes - before) * cost.usd_per_node_added
    once += max(0, before - nodes) * (cost.usd_per_node_removed + cost.overlap_h * usd_per_hour)
    return nodes * usd_per_hour + once / cost.payback_h


def by_enumeration(problem: FleetProblem, current: CurrentFleet) -> float | None:
    """Least rent and switching over every count of nodes that can serve the demand."""
    counted = _Enumeration(problem)
    held = {h.offer.id: h for h in current.held}
    found: list[float] = []
    ranges = []
    for offer in problem.offers:
        least = held[offer.id].committed if offer.id in held else 0
        ranges.append(range(least, (offer.max_nodes or 0) + 1))
    for nodes in itertools.product(*ranges):
        total = sum(
            price_of(n, held.get(o.id), o.usd_per_hour, current.cost)
            for n, o in zip(nodes, problem.offers, strict=True)
        )
        if found and total >= min(found):
            continue
        if any(counted._value(replicas, nodes) is not None for replicas in counted._replica_counts(nodes)):
            found.append(total)
    return min(found, default=None)


def random_current(rng: random.Random, problem: FleetProblem) -> CurrentFleet:
    held = []
    for offer in problem.offers:
        if rng.random() < 0.7:
            nodes = rng.randint(1, offer.max_nodes or 1)
            slot: Any = offer  # tiers need an id, a price and a limit, which slots and offers both have
            held.append(HeldNodes(slot, nodes, rng.choice((0, 0, rng.randint(0, nodes)))))
    cost = SwitchingCost(
        rng.choice((0.0, 5.0, 40.0)), rng.choice((0.0, 5.0, 200.0)), rng.choice((0.0, 2.0)), rng.choice((1.0, 24.0))
    )
    return CurrentFleet(tuple(held), cost)


def tiered(problem: FleetProblem, current: CurrentFleet) -> tuple[FleetProblem, float]:
    slots: Any = problem.offers
    split = split_offers(slots, current)
    tiers: Any = split.offers
    return replace(problem, offers=tiers), split.constant_usd_per_hour


def test_switching_optimum_equals_enumeration() -> None:
    checked = seed = moved = 0
    while checked < INSTANCES:
        seed += 1
        rng = random.Random(seed)
        problem = tiny_problem(30_000 + seed)
        spare = problem.limits.spare_nodes
        problem = replace(
            problem,
            objective="cost",
            limits=Limits(spare_nodes=spare),
            demands=tuple(replace(d, allowed_offer_ids=None) for d in problem.demands),
        )
        if problem.deployments.nodes_per_replica.max() > 1 or len(problem.offers) > 2:
            continue  # a replica over several nodes takes held or added ones, not both
        current = random_current(rng, problem)
        changed, constant = tiered(problem, current)
        expected = by_enumeration(problem, current)
        if not changed.offers:
            continue
        found = solve_fleet(changed)
        assert verify(changed, found) == [], f"seed {seed}"
        if expected is None:
            assert found.outcome == "infeasible", f"seed {seed}"
        else:
            assert found.objective is not None, f"seed {seed}"
            assert found.objective + constant == pytest.approx(expected, rel=1e-6, abs=1e-9), f"seed {seed}"
            assert found.plan is not None
            moved += any(name.startswith("added") for name in found.plan.nodes_by_offer())
        checked += 1
    assert moved > INSTANCES // 20


def test_tiers_by_hand() -> None:
    """10 USD/h, two run, one of them committed; 4 USD a node that goes and 6 USD a node that comes, over two hours."""
    problem = tiny_problem(1)
    offer: Any = replace(problem.offers[0], id="x", usd_per_hour=10.0, max_nodes=5)
    current = CurrentFleet((HeldNodes(offer, 2, 1),), SwitchingCost(6.0, 4.0, 0.0, 2.0))
    split = split_offers((offer,), current)
    assert {o.id: (o.usd_per_hour, o.max_nodes) for o in split.offers} == {
        "paid:x": (0.0, 1), "held:x": (8.0, 1), "added:x": (13.0, 3),
    }  # fmt: skip
    assert split.constant_usd_per_hour == 10.0 + 2.0
    dear = CurrentFleet((HeldNodes(offer, 2),), SwitchingCost(0.0, 30.0, 0.0, 2.0))
    assert {o.id: o.usd_per_hour for o in split_offers((offer,), dear).offers} == {"paid:x": 0.0, "added:x": 10.0}
