"""A second draw made beside the first is the draw that it would be later."""

import random

import numpy as np
import pytest

from solver.capacity.goal import QUICK_EASE, QUICK_OPEN, Goal
from solver.capacity.runs import Runs, TableMemo
from solver.replay.long_run import DRAW_SEEDS, is_sure
from solver.workload import Targets
from tests.llm_shapes import shape
from tests.solver.confirmation.noise import noisy
from tests.solver.planning_cases import CHAT
from tests.solver.samples import configuration

RATE = 2.0


def simulated() -> Runs:
    return Runs((0, False), configuration(shape("llama-3.1-8b")), CHAT, TableMemo())


def goal_where_a_quick_look_is_at(share: float, runs: Runs) -> Goal:
    assert runs.is_not_too_much(RATE, Goal(Targets()))
    quick = runs.by_rate[RATE].quick
    assert quick is not None
    return Goal(Targets(time_to_first_token_s={"p95": quick.value_s("time_to_first_token_s", "p95") / share}))


@pytest.mark.parametrize("seed", range(40))
def test_no_verdict_turns_on_when_draws_are_made(seed: int) -> None:
    rng = random.Random(seed)
    asked, known = noisy(seed), noisy(seed)
    for _ in range(60):
        rate, limit = rng.uniform(0.5, 20.0), rng.uniform(0.3, 3.0)
        goal = Goal(Targets(time_to_first_token_s={"p95": limit}))
        known.long_run(rate)  # one draw after the other
        assert asked.holds(rate, goal) == known.holds(rate, goal)
        assert asked.simulations <= known.simulations
    assert any(looks.has_second for looks in asked.by_rate.values())
    assert not any(looks.has_second for looks in known.by_rate.values())


def test_all_draws_are_the_same_and_counted_once() -> None:
    beside, after = simulated(), simulated()
    beside.holds(RATE, goal_where_a_quick_look_is_at(0.9, beside))
    assert beside.by_rate[RATE].has_second
    ours, theirs = beside.long_run(RATE), after.long_run(RATE)
    assert ours is not None
    assert theirs is not None
    assert is_sure(theirs)
    for name in ("time_to_first_token_s", "time_per_output_token_s", "end_to_end_s", "time_to_first_answer_s"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.in_flight_fraction == theirs.in_flight_fraction
    assert beside.simulations == after.simulations == 1 + len(DRAW_SEEDS)


@pytest.mark.parametrize("share", [0.9 * QUICK_EASE, 1.05 * QUICK_OPEN])
def test_it_is_not_made_where_one_draw_may_do(share: float) -> None:
    runs = simulated()
    runs.holds(RATE, goal_where_a_quick_look_is_at(share, runs))
    assert not runs.by_rate[RATE].has_second
