"""What a replica is said to sustain is what an open load of many requests is served at."""

from dataclasses import replace

import numpy as np
import pytest

from solver.capacity.goal import Goal
from solver.capacity.runs import Runs, TableMemo
from solver.capacity.sustained_rate import CandidateReplica, is_settled
from solver.deployment.configuration import Configuration
from solver.engine.simulate import simulate
from solver.errors import SaturatedError
from solver.layout import Layout
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths
from solver.precision import Precision
from solver.replay.crowds import crowd_for, lane_seats, may_be_above_capacity, steady_rate
from solver.replay.long_run import long_run, long_run_mixed
from solver.replay.one_stream import capacity_requests_per_s
from solver.replay.streams import RequestStream
from solver.sessions import spread_lengths
from solver.workload import EngineSettings, Targets, Traffic
from tests.bench.long_capacities import ANCHOR, EASE, holds_on
from tests.llm_shapes import shape
from tests.solver.samples import configuration

LONG_RUN = 40_000
EQUAL = Traffic(fixed_lengths(800), fixed_lengths(300))
SPREAD = Traffic(lognormal_lengths(800, 2_400), lognormal_lengths(300, 900))
PROMPTS_ALONE = Traffic(fixed_lengths(800), fixed_lengths(1))

MIXTURE = configuration(shape("qwen3-30b-a3b"), "mi300x", Layout(), Precision("fp8", "fp8"))
FOUR_STAGES = configuration(shape("llama-3.1-70b"), "h200-sxm", Layout(1, 4))
MANY_SEATS = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=1_024))
SLOW = configuration(shape("llama-3.1-8b"), "l40s")

CASES = {
    "equal replies of a mixture of experts": (MIXTURE, EQUAL),
    "equal replies in a pipeline": (FOUR_STAGES, EQUAL),
    "a pipeline": (FOUR_STAGES, SPREAD),
    "prompts alone before many seats": (MANY_SEATS, PROMPTS_ALONE),
    "prompts alone on a slow device": (SLOW, PROMPTS_ALONE),
    "a queue that takes long to fill its seats": (MANY_SEATS, SPREAD),
}


def lane_capacity(of: Configuration, traffic: Traffic, waiting: int) -> float:
    """What one lane completes of an endless queue: requests that are all there at once, so many times its seats."""
    schedule = replace(of.schedule(0.0), contending_lanes=of.batches - 1)
    count = waiting * lane_seats(schedule, traffic)
    rng = np.random.default_rng(11)
    prompts, outputs = (spread_lengths(one, count, rng) for one in (traffic.prompt, traffic.output))
    trace = simulate(of.tables(), schedule, prompts, outputs, arrivals_s=np.zeros(count), notes_gaps=False)
    return steady_rate(trace)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ttft_s", [None, 30.0])
def test_a_rate_said_to_be_sustained_holds_on(name: str, ttft_s: float | None) -> None:
    of, traffic = CASES[name]
    crowd = capacity_requests_per_s(of, of.tables(), traffic)
    goal = Goal(Targets() if ttft_s is None else Targets(time_to_first_token_s={"p95": ttft_s}))
    runs = Runs((0, True), of, traffic, TableMemo())
    found = CandidateReplica(runs, goal, ANCHOR * crowd, ANCHOR * crowd).bracket(is_settled).holds
    assert found > 0.7 * crowd
    assert holds_on(of, traffic, EASE * found, LONG_RUN)


@pytest.mark.parametrize("name", CASES)
def test_a_load_beyond_capacity_is_called_saturated_however_many_seats_are_free(name: str) -> None:
    of, traffic = CASES[name]
    crowd = capacity_requests_per_s(of, of.tables(), traffic)
    assert not holds_on(of, traffic, 1.15 * crowd, LONG_RUN), "nothing is said of a load that is served"
    with pytest.raises(SaturatedError) as refused:
        long_run(of, of.tables(), traffic, 1.15 * crowd)
    assert refused.value.capacity_requests_per_s == pytest.approx(crowd)
    halves = [RequestStream(traffic, 0.6 * crowd), RequestStream(traffic, 0.6 * crowd)]
    with pytest.raises(SaturatedError):
        long_run_mixed(of, of.tables(), halves)


@pytest.mark.parametrize("lengths", [lognormal_lengths(300, 900), lognormal_lengths(300, 600)])
def test_lanes_of_a_pipeline_wait_for_each_others_prompts_in_a_crowd_too(lengths: Lengths) -> None:
    """Replies that differ forget how a crowd began, so an endless queue completes what a crowd does."""
    traffic = Traffic(lognormal_lengths(800, 2_400), lengths)
    found = capacity_requests_per_s(FOUR_STAGES, FOUR_STAGES.tables(), traffic)
    assert found == pytest.approx(lane_capacity(FOUR_STAGES, traffic, 40) * FOUR_STAGES.lanes, rel=0.03)


def test_a_crowd_of_equal_requests_is_spread_out() -> None:
    """In step the same crowd completes half as much again: all prompts first, and no prompt later."""
    schedule = MIXTURE.schedule(0.0)
    seats = lane_seats(schedule, EQUAL)
    prompts, outputs = np.full(24 * seats, 800), np.full(24 * seats, 300)
    in_step = simulate(MIXTURE.tables(), schedule, prompts, outputs, concurrency=crowd_for(seats), notes_gaps=False)
    assert steady_rate(in_step) > 1.3 * capacity_requests_per_s(MIXTURE, MIXTURE.tables(), EQUAL)


class TestMayBeAboveCapacity:
    STEADY = np.ones((1, 1_000))

    def test_nearly_all_seats(self) -> None:
        assert may_be_above_capacity(self.STEADY, 95.0, 100)
        assert not may_be_above_capacity(self.STEADY, 85.0, 100)

    def test_a_queue_that_grows_with_most_seats_free(self) -> None:
        growing = np.linspace(1.0, 2.0, 1_000)[None, :]
        assert may_be_above_capacity(growing, 10.0, 1_000)
        assert may_be_above_capacity(np.concatenate([self.STEADY, growing]), 10.0, 1_000), "in one draw of two"
        assert not may_be_above_capacity(self.STEADY, 10.0, 1_000)

    def test_a_replica_that_still_fills_says_nothing(self) -> None:
        """Fewer requests than are in flight: none has been followed by another yet."""
        filling = np.linspace(1.0, 2.0, 1_000)[None, :]
        assert not may_be_above_capacity(filling, 400.0, 10_000)

    def test_no_quarter_of_three_requests(self) -> None:
        assert not may_be_above_capacity(np.array([[1.0, 2.0, 9.0]]), 0.01, 10)
