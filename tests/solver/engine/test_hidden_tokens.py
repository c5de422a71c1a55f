"""Replies that begin with hidden tokens: when the first one that is shown comes."""

import numpy as np
import pytest

from solver.engine.simulate import simulate
from solver.lengths import fixed_lengths, lognormal_lengths, summed_lengths, uniform_lengths
from solver.replay.latencies import SteadyLane
from solver.replay.long_run import draw
from solver.replay.one_stream import hidden_tokens, replay, sampled_requests, to_first_answer_s
from solver.workload import EngineSettings, Load, Thinking, Traffic
from tests.llm_shapes import shape
from tests.solver.engine.test_kernel import MODELS, tables_of
from tests.solver.naive_engine import Job, NaiveEngine
from tests.solver.samples import configuration

HIDDEN, ANSWER = lognormal_lengths(120, 400), uniform_lengths(1, 80)
TRAFFIC = Traffic(lognormal_lengths(200, 600), summed_lengths(HIDDEN, ANSWER), thinking=Thinking(HIDDEN, ANSWER))


class TimedEngine(NaiveEngine):
    """Notes when each request's ``shown``-th token leaves."""

    shown: np.ndarray
    answered: dict[int, float]

    def execute(self, decoding: list[Job], chunks: list[tuple[Job, int]]) -> int:
        done = super().execute(decoding, chunks)
        for job in self.jobs:
            if job.produced >= self.shown[job.number] and job.number not in self.answered:
                self.answered[job.number] = self.front + self.s.request_overhead_s / 2 - job.sent
        return done


class TestFirstAnswer:
    @pytest.mark.parametrize("seed", range(6))
    def test_is_when_an_engine_that_goes_token_by_token_has_it(self, seed: int) -> None:
        tables, schedule = tables_of(MODELS[seed % 2], 512)
        prompts, outputs, unit = sampled_requests(TRAFFIC, 50, seed)
        hidden = hidden_tokens(TRAFFIC, 50, seed)
        rate = (2.0, 12.0)[seed % 2]
        fast = simulate(tables, schedule, prompts, outputs, arrivals_s=unit / rate)
        found = to_first_answer_s(fast.time_to_first_token_s, fast.time_per_output_token_s, outputs, hidden)
        naive = TimedEngine(tables, schedule, prompts.tolist(), outputs.tolist(), arrivals_s=(unit / rate).tolist())
        naive.shown, naive.answered = np.minimum(hidden + 1, outputs), {}
        naive.run()
        plain = np.array([naive.answered[number] for number in range(50)])
        assert found.mean() == pytest.approx(plain.mean(), rel=0.03)
        assert np.percentile(found, 95) == pytest.approx(np.percentile(plain, 95), rel=0.05)

    def test_search_and_estimate_say_the_same(self) -> None:
        deployed = configuration(shape("llama-3.1-8b"), "h100-sxm", engine=EngineSettings(max_sequences=128))
        tables = deployed.tables()
        lane = SteadyLane(deployed, tables, TRAFFIC).latencies(5.0, (1,), 6000)
        told = draw(deployed, tables, TRAFFIC, 5.0).time_to_first_answer_s
        assert told is not None
        assert lane.value_s("time_to_first_answer_s", "p95") == pytest.approx(told["p95"], rel=1e-9)
        assert told["p95"] > lane.value_s("time_to_first_token_s", "p95")

    def test_replies_that_hide_nothing_are_drawn_as_before(self) -> None:
        plain = Traffic(TRAFFIC.prompt, ANSWER)
        deployed = configuration(shape("llama-3.1-8b"), "h100-sxm")
        found = replay(deployed, deployed.tables(), plain, Load("open", requests_per_s=1.0), requests=500)
        assert found.time_to_first_answer_s is None


def test_a_sum_has_the_mean_and_the_spread_of_both() -> None:
    both = summed_lengths(HIDDEN, ANSWER)
    assert len(both.tokens) <= 257
    assert both.mean == pytest.approx(HIDDEN.mean + ANSWER.mean, rel=1e-3)
    assert both.maximum == HIDDEN.maximum + ANSWER.maximum
    rng = np.random.default_rng(1)
    drawn = rng.choice(HIDDEN.tokens, 40_000, p=HIDDEN.shares) + rng.choice(ANSWER.tokens, 40_000, p=ANSWER.shares)
    assert both.quantile(0.95) == pytest.approx(np.percentile(drawn, 95), rel=0.02)
    assert summed_lengths(fixed_lengths(3), fixed_lengths(4)) == fixed_lengths(7)
