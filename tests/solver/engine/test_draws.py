"""Draws replayed in one call, and the samples they are made of."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.engine.simulate import simulate
from solver.errors import InvalidInputError
from solver.lengths import Lengths, lognormal_lengths
from solver.replay.draws import Draws, LoadedLane, drawn, replay_draws
from solver.replay.one_stream import QUANTILES, poisson_arrivals_s, statistics, weighted_statistics
from solver.sessions import spread_lengths
from solver.workload import EngineSettings, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

TRAFFIC = Traffic(lognormal_lengths(600.0, 1500.0), lognormal_lengths(120.0, 300.0), 0.25)
SEEDS = (1, 2, 3)


def lanes() -> list[LoadedLane]:
    found = []
    for llm, seats, rate in (("llama-3.1-8b", 64, 10.0), ("gpt-oss-20b", 256, 30.0)):
        on = configuration(shape(llm), "h100-sxm", engine=EngineSettings(max_batched_tokens=2048, max_sequences=seats))
        found.append(LoadedLane(on.tables(), on.schedule(TRAFFIC.shared_prefix_fraction), rate))
    return found


class TestReplayDraws:
    def test_are_single_simulations_whatever_the_threads(self) -> None:
        draws, on = drawn(TRAFFIC, 500, SEEDS), lanes()
        one, three = (replay_draws(on, draws, threads=n) for n in (1, 3))
        assert one.time_to_first_token_s.shape == (2, 3, 500)
        for number, lane in enumerate(on):
            for draw in range(len(SEEDS)):
                arrivals = draws.unit_arrivals_s[draw] / lane.requests_per_s
                trace = simulate(
                    lane.tables, lane.schedule, draws.prompts[draw], draws.outputs[draw], arrivals_s=arrivals
                )
                for times in (one, three):
                    at = number, draw
                    assert times.time_to_first_token_s[at].tolist() == trace.time_to_first_token_s.tolist()
                    assert times.time_per_output_token_s[at].tolist() == trace.time_per_output_token_s.tolist()
                    assert times.end_to_end_s[at].tolist() == trace.end_to_end_s.tolist()
                    assert times.preemptions[at] == trace.preemptions

    def test_draws_of_several_seeds_differ(self) -> None:
        draws = drawn(TRAFFIC, 50, SEEDS)
        assert len({tuple(row) for row in draws.prompts.tolist()}) == len(SEEDS)

    @pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
    def test_a_rate_that_is_none_is_refused(self, rate: float) -> None:
        lane = lanes()[0]
        with pytest.raises(InvalidInputError, match="positive rate"):
            replay_draws([LoadedLane(lane.tables, lane.schedule, rate)], drawn(TRAFFIC, 50, SEEDS))

    @pytest.mark.parametrize("threads", [1, 2])
    def test_what_does_not_fit_is_refused_on_every_thread(self, threads: int) -> None:
        draws = drawn(TRAFFIC, 50, SEEDS)
        long = Draws(draws.prompts * 10_000, draws.outputs, draws.unit_arrivals_s)
        with pytest.raises(InvalidInputError, match="does not fit"):
            replay_draws(lanes(), long, threads=threads)
        with pytest.raises(InvalidInputError, match="one shape"):
            replay_draws(lanes(), Draws(draws.prompts[:, 1:], draws.outputs, draws.unit_arrivals_s), threads=threads)


def plainly_spread(lengths: Lengths, count: int, rng: np.random.Generator) -> list[int]:
    """One quantile after the other."""
    values: list[int] = []
    cumulative, index = lengths.shares[0], 0
    for i in range(count):
        at = (i + 0.5) / count
        while at > cumulative + 1e-12 and index + 1 < len(lengths.tokens):
            index += 1
            cumulative += lengths.shares[index]
        values.append(max(1, lengths.tokens[index]))
    return [values[i] for i in rng.permutation(count).tolist()]


def plain_arrivals_s(requests_per_s: float, count: int, rng: np.random.Generator) -> list[float]:
    """One gap after the other."""
    gaps = [-math.log(1.0 - (i + 0.5) / count) / requests_per_s for i in range(count)]
    now, arrivals = 0.0, []
    for i in rng.permutation(count).tolist():
        now += gaps[i]
        arrivals.append(now)
    return arrivals


class TestSamplesAreThoseOfPlainLoops:
    """To the last bit: a plan made before is made again from its stored request."""

    @settings(deadline=None)
    @given(st.floats(5.0, 5e4), st.floats(1.1, 3.8), st.integers(1, 3000), st.integers(0, 2**32))
    def test_lengths(self, mean: float, tail: float, count: int, seed: int) -> None:
        lengths = lognormal_lengths(mean, mean * tail)
        fast, plain = (draw(lengths, count, np.random.default_rng(seed)) for draw in (spread_lengths, plainly_spread))
        assert list(fast) == plain

    @settings(deadline=None)
    @given(st.floats(1e-3, 1e4), st.integers(1, 3000), st.integers(0, 2**32))
    def test_arrivals(self, rate: float, count: int, seed: int) -> None:
        fast = poisson_arrivals_s(rate, count, np.random.default_rng(seed))
        assert fast.tolist() == plain_arrivals_s(rate, count, np.random.default_rng(seed))

    @given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=300))
    def test_percentiles(self, values: list[float]) -> None:
        found = statistics(values)
        for name, percent in QUANTILES.items():
            assert found[name] == np.percentile(values, percent), name

    @given(st.lists(st.tuples(st.floats(0.0, 10.0), st.integers(1, 500)), min_size=1, max_size=200))
    def test_weighted_percentiles(self, pairs: list[tuple[float, int]]) -> None:
        found = weighted_statistics([(value, float(weight)) for value, weight in pairs])
        each = sorted(value for value, weight in pairs for _ in range(weight))
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            assert found[name] == each[max(0, math.ceil(len(each) * share - 1e-9) - 1)]
        assert found["mean"] == pytest.approx(sum(each) / len(each), rel=1e-9, abs=1e-300)
