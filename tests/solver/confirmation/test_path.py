"""Plans for traffic classes: no plan that any search finds, whatever was asked before, undercuts a stated bound."""

import random
from dataclasses import replace

import pytest

from solver.candidates.screening import with_targets
from solver.explain.resolver import Resolver
from solver.explain.targets import looser_targets
from solver.fleet.loosened_limits import limit_steps
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SpaceMemo, recommend, solve_request
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


@pytest.mark.parametrize("seed", range(cases(24, FEW)))
def test_the_same_request_costs_the_same_whatever_was_asked_before(seed: int) -> None:
    """13 once cost $66.50 and, of a service that had answered like requests, $67.50."""
    rng = random.Random((13, *range(13), *range(14, 24))[seed])
    classes = drawn(rng)
    cold = solve_request(asked(classes), {}).proven
    memo: SpaceMemo = {}
    for before in (classes[:2], tuple(replace(one, requests_per_s=one.requests_per_s * 0.6) for one in classes)):
        solve_request(asked(before), memo)
    warm = solve_request(asked(classes), memo).proven
    recommend(replace(asked(classes), explain=True, alternatives=2), memo)
    after_questions = solve_request(asked(classes), memo).proven
    said = [(one.plan, one.usd_per_hour, one.bound, one.status) for one in (cold, warm, after_questions)]
    assert said[1:] == said[:1] * 2


@pytest.mark.parametrize("seed", range(cases(20, FEW)))
def test_what_more_is_allowed_never_costs_more(seed: int) -> None:
    """Of the answers that a question about a plan gets the plan itself is one."""
    request = replace(asked(drawn(random.Random(seed))), explain=True)
    solved_request = solve_request(request, {})
    resolver, found = Resolver(request, solved_request.confirmations), solved_request.result
    assembly = solved_request.assembly
    for step in limit_steps(assembly.problem, found, 0.2, 3):
        freer = resolver.best(replace(assembly, problem=step.problem), freer_than=found)
        assert freer.usd_per_hour is not None
        assert found.usd_per_hour is not None
        assert freer.usd_per_hour <= found.usd_per_hour
    looser = [
        one.screened for one in (_looser(assembly, number) for number in range(len(assembly.screened[0].classes)))
    ]
    for every in looser:
        freer = resolver.best(assemble(request, every, assembly.problem.offers), other_targets=True, freer_than=found)
        assert freer.usd_per_hour is not None
        assert freer.usd_per_hour <= (found.usd_per_hour or 0.0)


def _looser(assembly: Assembly, number: int) -> Assembly:
    one = assembly.screened[0]
    targets = looser_targets(one.workload.classes[number].targets, 1.2)
    return replace(assembly, screened=(with_targets(one, targets, number),))


@pytest.mark.parametrize("seed", range(cases(20, FEW)))
def test_the_bound_is_what_the_dearest_class_costs_alone(seed: int) -> None:
    classes, memo = drawn(random.Random(seed)), {}  # type: tuple[TrafficClass, ...], SpaceMemo
    _, bound = found(asked(classes), memo)
    alone = [found(replace(asked(classes), workloads=(one,)), memo)[0] for one in each_alone(mixed(*classes))]
    assert bound == pytest.approx(max(alone))
