"""A few requests an hour: prompts wait for no other, and what serves them then is not ruled out for what it could not do when busy."""

from dataclasses import replace

import pytest

from solver.capacity.sustained_rate import is_settled
from solver.recommend.recommend import screened
from solver.workload import Traffic, Workload, fixed_lengths
from tests.solver.planning_cases import MEMO, OFFERS, plan, planning, workload

RATE = 0.0005
LONG = Traffic(fixed_lengths(12_000), fixed_lengths(100))


def slow_prompts(first_s: float) -> Workload:
    return workload(rate=RATE, traffic=LONG, ttft={"p95": first_s}, tpot={})


@pytest.mark.parametrize("first_s", [0.5, 1.0, 1.5, 2.5, 4.0, 8.0])
def test_no_candidate_that_serves_some_is_ruled_out(first_s: float) -> None:
    asked = slow_prompts(first_s)
    found = screened(planning(asked), asked, MEMO)
    serves = 0
    for row in range(len(found.space.rows)):
        candidate = found.candidate(row)
        holds = replace(candidate, most=candidate.anchor).bracket(is_settled).holds
        assert holds <= candidate.most
        serves += holds > 0.0
    assert serves, "else this shows nothing"


@pytest.mark.parametrize("first_s", [1.0, 1.5, 2.5, 4.0, 8.0])
def test_the_plan_is_the_cheapest_machine_that_simulation_finds(first_s: float) -> None:
    """One request in half an hour: any machine of which a replica sustains more will do, and the cheapest is the plan."""
    asked = slow_prompts(first_s)
    found = screened(planning(asked), asked, MEMO)
    able: set[str] = set()
    for row, entry in enumerate(found.space.rows):
        candidate = found.candidate(row)
        if replace(candidate, most=candidate.anchor).bracket(is_settled).holds >= RATE:
            able |= set(found.space.platforms[entry.platform].node_ids)
    cheapest = min((offer.usd_per_hour for offer in OFFERS if offer.node.id in able), default=None)
    assert plan(asked).usd_per_hour == pytest.approx(cheapest)
