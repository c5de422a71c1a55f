"""Sessions spread over as many replicas as a plan has, simulated: against every number of replicas, every candidate settled."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from solver.confirmation.brackets import Brackets
from solver.fleet import solve_fleet, verify
from solver.lengths import uniform_lengths
from solver.outcome import Outcome
from solver.planning.assemble import assemble, with_most_copies
from solver.planning.placements import placements
from solver.planning.types import PlanningInput, unobserved
from solver.recommend.boxes import CountBox
from solver.recommend.recommend import _solve_stated, recommend, screened, solve_request
from solver.recommend.spread import SpreadSearch, spread_over
from solver.sessions import session_traffic
from solver.workload import Sessions
from tests.seeds import cases
from tests.solver.planning_cases import MEMO, node, offer, planning, workload
from tests.solver.samples import device

H100 = node("h100x1", device("h100-sxm"), 1)
A100 = node("a100x1", device("a100-sxm-80"), 1)
MOST = 5
"""Replicas that the offers leave room for."""
BATCH = cases(4, few=2)


def many_openings(seed: int) -> PlanningInput:
    """Chats over many documents or system prompts that caches cannot all hold, routed by prefixes."""
    rng = random.Random(seed)
    of_documents = rng.random() < 0.5
    sessions = Sessions(
        uniform_lengths(1, rng.choice([1, 4])), uniform_lengths(20, rng.choice([100, 800])), rng.choice([5.0, 60.0]),
        rng.choice([500, 4_000]), 1 if of_documents else rng.choice([10, 200]), 8_000 if of_documents else 0,
        rng.choice([20, 100, 1_000]) if of_documents else 1, routing="prefix_aware", spread_is_stated=False,
    )  # fmt: skip
    traffic = session_traffic(sessions, uniform_lengths(20, rng.choice([100, 300])), None)[0]
    chat = workload(
        rate=rng.choice([2.0, 5.0, 9.0]), traffic=traffic, ttft={"p95": rng.choice([1.0, 3.0])}, engines=("vllm",)
    )
    offers = (offer(H100, rng.uniform(2.0, 3.0), 3), offer(A100, rng.uniform(0.7, 2.0), 2))
    return planning(chat, offers=offers, nodes=(H100, A100))


def at_random(asked: PlanningInput) -> PlanningInput:
    """The same with turns sent to any replica."""
    one = asked.workloads[0]
    assert one.traffic.sessions is not None
    sessions = replace(one.traffic.sessions, routing="random")
    traffic = session_traffic(sessions, one.traffic.output, None)[0]
    classes = tuple(replace(each, traffic=traffic) for each in one.classes)
    return replace(asked, workloads=(replace(one, classes=classes),))


def least_costs(asked: PlanningInput) -> tuple[float, float]:
    """The least cost over every number of replicas: where they count for what they sustain at their own number, and for no more than
    at any smaller one. A search that has not simulated a candidate at each smaller number lies between. Numbers that cost more than the
    best plan of fewer at the cheapest offer's price are not tried."""
    found: list[list[float]] = [[], []]
    fewest: dict[int, float] = {}
    least_usd = min(offer.usd_per_hour for offer in asked.offers)  # of one replica: nodes have one device
    for n in range(1, MOST + 1):
        if n * least_usd >= min(found[1], default=math.inf):
            break
        stated = spread_over(asked, (n,))
        one = screened(stated, stated.workloads[0], MEMO)
        brackets, able = Brackets([one]), np.flatnonzero(one.serves)
        own = {row: brackets.settle(0, row).holds for row in sorted(set(one.all_alike(able).tolist()))}
        fewest = {row: min(rate, fewest.get(row, rate)) for row, rate in own.items()}
        assembly = with_most_copies(assemble(stated, [one]), (n,), (True,))
        for known, values in zip((own, fewest), found, strict=True):
            rates = np.array([known.get(int(like), 0.0) for like in one.all_alike(np.arange(len(one.serves)))])
            capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
            mine = assembly.rows_in_role(0)
            capacity[mine, 0] = np.where(one.serves, rates, 0.0)[assembly.row_of[mine]]
            cost = solve_fleet(assembly.with_capacity(capacity).problem).objective
            values.append(math.inf if cost is None else cost)
    return min(found[0]), min(found[1])


@pytest.mark.parametrize("first", range(8, 8 + cases(24, few=BATCH), BATCH))
def test_plans_over_many_openings_are_the_cheapest_of_every_number(first: int) -> None:
    proven = exact = 0
    for seed in range(first, first + BATCH):
        asked = many_openings(seed)
        at_least, at_most = least_costs(asked)
        result = solve_request(asked, MEMO).result
        if result.plan is None:
            assert result.outcome is Outcome.INFEASIBLE, f"seed {seed}"
            assert math.isinf(at_most), f"seed {seed}"
            continue
        assert result.outcome is Outcome.OPTIMAL, f"seed {seed}: {result.status}"
        assert result.objective is not None
        assert at_least * (1 - 1e-4) <= result.objective <= at_most * (1 + 1e-4), f"seed {seed}"
        proven += 1
        exact += at_least == pytest.approx(at_most, rel=1e-4)
    assert exact >= proven / 2 > 0


def test_where_no_number_of_replicas_will_do_there_is_no_plan() -> None:
    """Three of the larger machine carry it if they find as much as one of them alone does, or nearly, as under routing by prefixes; at
    random they find less."""
    kept_together = many_openings(11)
    assert solve_request(kept_together, MEMO).result.outcome is Outcome.OPTIMAL
    found = recommend(replace(at_random(kept_together), explain=True), MEMO)
    assert found.solve.outcome is Outcome.INFEASIBLE
    assert not found.entries
    assert found.largest_servable_multiple is not None
    assert 0.8 < found.largest_servable_multiple < 1.0


@pytest.mark.parametrize("seed", [7, 11, 14])
def test_kinds_of_a_plan_make_a_true_one_of_all_candidates(seed: int) -> None:
    """What a plan of one number of replicas is made of, tried with as many as it takes: no more than were reckoned with, no cheaper than
    the best of all kinds, and of a problem in which the other kinds are believed what they were."""
    asked = many_openings(seed)
    search = SpreadSearch(asked, lambda problem: _solve_stated(problem, MEMO, unobserved), 0.0)
    first = search.in_box(CountBox((1,), (None,)), None)
    assert first is not None
    assert first.copies is not None
    assert first.copies > (1,)
    found = search.true(first)
    assert found is not None
    assert found.copies is not None
    (reckoned,) = found.answer.planning.workloads
    assert reckoned.traffic.sessions is not None
    assert found.copies[0] <= reckoned.traffic.sessions.spread_over
    assert verify(found.answer.assembly.problem, found.answer.result) == []
    best = solve_request(asked, MEMO).result.objective
    assert best is not None
    assert first.value * (1.0 - 1e-6) <= best <= found.value * (1.0 + 1e-6)
    (one,) = found.answer.assembly.screened
    known = found.answer.confirmations.facts.of(one).known
    plan = found.answer.result.plan
    assert plan is not None
    made_of = {one.alike(place.row) for place in placements(found.answer.assembly, plan)}
    assert made_of <= set(known)
    assert all(bracket.holds > 0.0 for row, bracket in known.items() if row in made_of)
    assert all(bracket.at_most > 0.0 for bracket in known.values())


def test_a_box_whose_plans_are_dearer_than_the_one_that_is_known_is_not_looked_into() -> None:
    """Of up to two replicas plans cost more than the known one of four; those are not simulated until they hold."""
    asked = many_openings(14)
    large = node("h100x2", device("h100-sxm"), 2)
    offers = (*asked.offers, replace(asked.offers[0], id="large", usd_per_hour=7.5, node=large))
    asked = replace(asked, offers=offers, nodes=(*asked.nodes, large), catalog_key="large")
    search = SpreadSearch(asked, lambda problem: _solve_stated(problem, MEMO, unobserved), 0.0)
    first = search.in_box(CountBox((1,), (None,)), None)
    assert first is not None
    best = search.true(first)
    assert best is not None
    known = best.value + 1.0  # what small machines cost is below it, if there could be more than two of them
    answer = replace(best.answer, result=replace(best.answer.result, usd_per_hour=known))
    found = search.in_box(CountBox((1,), (2,)), replace(best, answer=answer, value=known))
    assert found is not None
    assert (found.value, found.bound, found.copies) == (math.inf, known, None)
    alone = search.in_box(CountBox((1,), (2,)), None)
    assert alone is not None
    assert known < alone.value < math.inf
