"""A few requests an hour: prompts wait for no other, and what serves them then is not ruled out for what it could not do when busy."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from solver.candidates.screening import ScreenedClass, no_better_than_smaller
from solver.capacity.sustained_rate import is_settled
from solver.lengths import fixed_lengths
from solver.recommend.recommend import screened
from solver.workload import Traffic, Workload
from tests.seeds import cases
from tests.solver.planning_cases import MEMO, OFFERS, plan, planning, workload

Whole = NDArray[np.int64]

RATE = 0.0005
FIRST_S = (0.5, 1.0, 4.0, 1.5, 2.5, 8.0)
"""Targets on the first token; nothing is planned for the first of them."""
LONG = Traffic(fixed_lengths(12_000), fixed_lengths(100))


@cache
def unbounded(first_s: float) -> tuple[ScreenedClass, list[tuple[float, float]]]:
    """What was screened, and of each candidate what it sustains where screening bounds nothing, with that bound."""
    asked = slow_prompts(first_s)
    found = screened(planning(asked), asked, MEMO).only
    candidates = [found.candidate(int(row)) for row in tried(found)]
    return found, [(replace(one, most=one.anchor).bracket(is_settled).holds, one.most) for one in candidates]


def tried(found: ScreenedClass) -> Whole:
    """Rows for whose steps no smaller ones stand."""
    return np.flatnonzero(~no_better_than_smaller([found]))


def slow_prompts(first_s: float) -> Workload:
    return workload(rate=RATE, traffic=LONG, ttft={"p95": first_s}, tpot={})


@pytest.mark.parametrize("first_s", FIRST_S[: cases(len(FIRST_S), few=3)])
def test_no_candidate_that_serves_some_is_ruled_out(first_s: float) -> None:
    _, sustained = unbounded(first_s)
    assert all(holds <= most for holds, most in sustained)
    assert any(holds > 0.0 for holds, _ in sustained), "else this shows nothing"


@pytest.mark.parametrize("first_s", FIRST_S[1 : cases(len(FIRST_S), few=3)])
def test_the_plan_is_the_cheapest_machine_that_simulation_finds(first_s: float) -> None:
    """One request in half an hour: any machine of which a replica sustains more will do, and the cheapest is the plan."""
    found, sustained = unbounded(first_s)
    able: set[str] = set()
    for row, (holds, _) in zip(tried(found), sustained, strict=True):
        if holds >= RATE:
            able |= set(found.space.platforms[found.space.rows[row].platform].node_ids)
    cheapest = min((offer.usd_per_hour for offer in OFFERS if offer.node.id in able), default=None)
    assert plan(slow_prompts(first_s)).usd_per_hour == pytest.approx(cheapest)
