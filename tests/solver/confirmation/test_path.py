"""Plans for traffic classes: no plan that any search finds, whatever was asked before, undercuts a stated bound."""

import random
from dataclasses import replace

import pytest

from solver.planning.types import PlanningInput
from solver.recommend.recommend import SpaceMemo, solve_request
from solver.traffic_classes import each_alone
from solver.workload import TrafficClass
from tests.seeds import cases
from tests.solver.planning_cases import A100, H100, L40S, NODES, node, offer, planning
from tests.solver.samples import device
from tests.solver.test_traffic_classes import mixed, random_classes

FEW = 5
"""Each is several searches over mixes: some seconds."""
SINGLE_H100, SINGLE_L40S = node("h100x1", device("h100-sxm"), 1), node("l40sx1", device("l40s"), 1)
OFFERS = [offer(H100, 24.0), offer(SINGLE_H100, 3.3), offer(L40S, 7.2), offer(SINGLE_L40S, 1.0), offer(A100, 7.0)]


def asked(classes: tuple[TrafficClass, ...], rng: random.Random | None = None) -> PlanningInput:
    """Without a clock; offers as rng puts them."""
    offers = OFFERS if rng is None else rng.sample(OFFERS, len(OFFERS))
    made = planning(mixed(*classes), offers=offers, nodes=(SINGLE_H100, SINGLE_L40S, *NODES))
    return replace(made, time_limit_s=300.0)


def drawn(rng: random.Random) -> tuple[TrafficClass, ...]:
    times = rng.uniform(4.0, 12.0)
    found = random_classes(rng, rng.choice((2, 3, 4)))
    return tuple(replace(one, requests_per_s=one.requests_per_s * times) for one in found)


def found(planning: PlanningInput, memo: SpaceMemo) -> tuple[float, float]:
    """(price, what is stated that no plan costs less than)."""
    proven = solve_request(planning, memo).proven
    assert proven.usd_per_hour is not None
    assert proven.bound is not None
    return proven.usd_per_hour, proven.bound


@pytest.mark.parametrize("seed", range(cases(20, FEW)))
def test_neither_what_was_asked_before_nor_order_makes_a_claim_false(seed: int) -> None:
    rng = random.Random(seed)
    classes = drawn(rng)
    cold = found(asked(classes), {})
    memo: SpaceMemo = {}
    for before in (classes[:2], tuple(replace(one, requests_per_s=one.requests_per_s * 0.6) for one in classes)):
        found(asked(before), memo)
    every = [cold, found(asked(classes), memo), found(asked(classes[::-1]), memo), found(asked(classes, rng), memo)]
    assert max(bound for _, bound in every) <= min(price for price, _ in every) * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(cases(20, FEW)))
def test_the_bound_is_what_the_dearest_class_costs_alone(seed: int) -> None:
    classes, memo = drawn(random.Random(seed)), {}  # type: tuple[TrafficClass, ...], SpaceMemo
    _, bound = found(asked(classes), memo)
    alone = [found(replace(asked(classes), workloads=(one,)), memo)[0] for one in each_alone(mixed(*classes))]
    assert bound == pytest.approx(max(alone))
