"""The closed form of the search against the simulation, and statistics of replays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.deployment.bound import roofline_bound
from solver.deployment.configuration import Configuration, front_end
from solver.engine.simulate import simulate
from solver.engine.steady import OperatingPoints, operating_points, step_grid
from solver.errors import InvalidInputError, SaturatedError
from solver.layout import Layout
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, uniform_lengths
from solver.precision import Precision
from solver.replay.crowds import lane_seats, steady_rate
from solver.replay.long_run import long_run
from solver.replay.one_stream import (
    Replay,
    capacity_requests_per_s,
    poisson_arrivals_s,
    replay,
    statistics,
    weighted_statistics,
)
from solver.sessions import spread_lengths
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

DEPLOYED = {
    "8b on H100": configuration(shape("llama-3.1-8b")),
    "70b on four H200": configuration(shape("llama-3.1-70b"), "h200-sxm", Layout(4)),
    "70b fp8 on two H200": configuration(shape("llama-3.1-70b"), "h200-sxm", Layout(2), Precision("fp8", "bf16")),
    "8b on L40S": configuration(shape("llama-3.1-8b"), "l40s"),
    "30b MoE on H100": configuration(shape("qwen3-30b-a3b")),
}
TRAFFIC = Traffic(fixed_lengths(800), fixed_lengths(300))
PERCENTILES = ("p50", "p90", "p95", "p99")


def points(found: Configuration, traffic: Traffic, clients: list[float]) -> OperatingPoints:
    ones = np.array([[1.0]])
    grid = step_grid(found.shape, found.rates(), ones, ones, found.profile.graphs)
    return operating_points(
        grid, traffic, front_end(found.constants, found.shape), in_flight=np.array(clients),
        kv_cache_tokens=np.array([[found.kv_cache_tokens]]), max_batched_tokens=8192.0, max_sequences=512.0,
    )  # fmt: skip


def replayed(found: Configuration, traffic: Traffic, load: Load, **asked: int) -> Replay:
    return replay(found, found.tables(), traffic, load, **asked)


class TestClosedForm:
    @pytest.mark.parametrize("name", DEPLOYED)
    @pytest.mark.parametrize("clients", [1, 4, 16, 64])
    def test_agrees_with_the_simulation_in_a_closed_loop(self, name: str, clients: int) -> None:
        """Cache large: token time and rate within 6 %, 9 % at the launch floor of experts. It screens, no more."""
        found, tolerance = DEPLOYED[name], 0.09 if "MoE" in name else 0.06
        traffic = Traffic(uniform_lengths(400, 1200), uniform_lengths(150, 450))
        closed = points(found, traffic, [float(clients)])
        simulated = replayed(found, traffic, Load("closed", concurrency=clients))
        mean = simulated.time_per_output_token_s["mean"]
        assert float(closed.time_per_output_token_s[0, 0]) == pytest.approx(mean, rel=tolerance)
        assert float(closed.requests_per_s[0, 0]) == pytest.approx(simulated.requests_per_s, rel=tolerance)

    @pytest.mark.parametrize("name", DEPLOYED)
    def test_more_in_flight_is_slower_each_and_faster_together(self, name: str) -> None:
        found = points(DEPLOYED[name], TRAFFIC, [1, 2, 4, 8, 16, 32, 64, 128, 256])
        assert (np.diff(found.time_per_output_token_s[0]) > 0).all()
        assert (np.diff(found.requests_per_s[0]) > 0).all()

    def test_the_cache_says_what_is_feasible(self) -> None:
        found = points(DEPLOYED["8b on H100"], TRAFFIC, [1, 512, 1000])
        assert found.feasible[0].tolist() == [True, True, False]  # seats
        few = configuration(shape("llama-3.1-8b"), kv_cache_tokens=10_000.0)
        assert points(few, TRAFFIC, [8, 16]).feasible[0].tolist() == [True, False]

    @settings(deadline=None, max_examples=30)
    @given(st.sampled_from(sorted(DEPLOYED)), st.integers(1, 4000), st.integers(2, 1000), st.floats(0.1, 0.99))
    def test_shorter_prompts_and_shared_prefixes_are_never_slower(
        self, name: str, prompt: int, output: int, share: float
    ) -> None:
        """Partly empty row tiles aside, which cost 8-bit kernels more than full ones."""
        full = dict.fromkeys(("partial_tile_slowdown_8bit", "partial_tile_read_slowdown_8bit"), 0.0)
        found = DEPLOYED[name].with_constants(DEPLOYED[name].constants.replaced(full, "analytical"))
        clients = [1.0, 8.0, 64.0]
        long = points(found, Traffic(fixed_lengths(prompt), fixed_lengths(output)), clients)
        short = points(found, Traffic(fixed_lengths(max(1, int(prompt * share))), fixed_lengths(output)), clients)
        shared = points(found, Traffic(fixed_lengths(prompt), fixed_lengths(output), share), clients)
        for better in (short, shared):
            assert (better.requests_per_s >= long.requests_per_s * (1 - 5e-3)).all()
            assert (better.time_to_first_token_s <= long.time_to_first_token_s * (1 + 5e-3)).all()


class TestReplays:
    @settings(deadline=None, max_examples=25)
    @given(
        st.sampled_from(sorted(DEPLOYED)), st.integers(1, 3000), st.integers(1, 200), st.integers(1, 200),
        st.sampled_from(["closed", "open"]), st.floats(0.05, 0.9),
    )  # fmt: skip
    def test_no_prediction_beats_the_roofline_and_percentiles_rise(
        self, name: str, prompt: int, output: int, clients: int, kind: str, share: float
    ) -> None:
        """The replay itself, before an estimate would clamp it."""
        found, traffic = DEPLOYED[name], Traffic(fixed_lengths(prompt), fixed_lengths(output))
        if kind == "closed":
            load = Load("closed", concurrency=clients, requests=3 * clients)
        else:
            rate = share * capacity_requests_per_s(found, found.tables(), traffic)
            load = Load("open", requests_per_s=rate, requests=100)
        result = replayed(found, traffic, load)
        bound = roofline_bound(found, traffic, load)
        assert result.output_tokens_per_s <= bound.output_tokens_per_s
        if output > 1:
            assert result.time_per_output_token_s["p50"] >= bound.time_per_output_token_s
        assert 0 <= result.memory_utilisation <= 1
        assert 0 <= result.compute_utilisation <= 1
        for values in (result.time_to_first_token_s, result.time_per_output_token_s, result.end_to_end_s):
            found_values = [values[p] for p in PERCENTILES]
            assert found_values == sorted(found_values)
        assert result.time_to_first_token_s["mean"] <= result.end_to_end_s["mean"]

    def test_a_lower_rate_is_answered_sooner(self) -> None:
        found = DEPLOYED["8b on H100"]
        limit = capacity_requests_per_s(found, found.tables(), TRAFFIC)
        results = [replayed(found, TRAFFIC, Load("open", requests_per_s=limit * f)) for f in (0.1, 0.4, 0.8)]
        for first, second in ((0, 1), (1, 2)):
            assert results[first].end_to_end_s["mean"] < results[second].end_to_end_s["mean"]
            assert results[first].time_to_first_token_s["p95"] < results[second].time_to_first_token_s["p95"]

    def test_saturation_is_named_with_the_capacity(self) -> None:
        found = DEPLOYED["8b on L40S"]
        limit = capacity_requests_per_s(found, found.tables(), TRAFFIC)
        with pytest.raises(SaturatedError) as refused:
            replayed(found, TRAFFIC, Load("open", requests_per_s=1.3 * limit))
        assert refused.value.capacity_requests_per_s == pytest.approx(limit)
        assert replayed(found, TRAFFIC, Load("open", requests_per_s=0.8 * limit)).requests_per_s > 0
        slightly = Load("open", requests_per_s=1.05 * limit, requests=200)  # a finite run just ends later
        assert replayed(found, TRAFFIC, slightly).requests_per_s <= 1.1 * limit

    def test_a_load_under_which_a_queue_never_goes_away_is_above_capacity(self) -> None:
        """Where a step with prompts takes several times one without, clients that just fill the seats complete more than any queue."""
        found = configuration(shape("qwen3-30b-a3b"), "mi300x", Layout(1), Precision("fp8", "fp8"))
        traffic = Traffic(lognormal_lengths(800, 2400), lognormal_lengths(250, 750))
        tables, schedule = found.tables(), found.schedule(0.0)
        seats = lane_seats(schedule, traffic)
        rng = np.random.default_rng(3)
        prompts, outputs = (spread_lengths(one, 40 * seats, rng) for one in (traffic.prompt, traffic.output))
        by_clients = {
            clients: steady_rate(simulate(tables, schedule, prompts, outputs, concurrency=clients))
            for clients in (seats, 2 * seats)
        }
        limit = capacity_requests_per_s(found, tables, traffic)
        assert limit == pytest.approx(by_clients[2 * seats], rel=0.03)
        assert by_clients[seats] > 1.05 * limit, "a mixture whose prompts cost nothing shows nothing"
        with pytest.raises(SaturatedError):
            long_run(found, tables, traffic, 1.03 * limit)

    def test_a_crowd_of_clients_is_served_at_the_capacity(self) -> None:
        found = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=32))
        limit = capacity_requests_per_s(found, found.tables(), TRAFFIC)
        crowd = replayed(found, TRAFFIC, Load("closed", concurrency=200))
        assert crowd.requests_per_s == pytest.approx(limit, rel=0.08)

    def test_copies_multiply_what_one_serves(self) -> None:
        """Data-parallel copies of a dense model share nothing: twice the clients, twice the tokens, no slower."""
        one = DEPLOYED["8b on H100"]
        two = configuration(shape("llama-3.1-8b"), layout=Layout(data_parallel=2))
        alone = replayed(one, TRAFFIC, Load("closed", concurrency=16))
        both = replayed(two, TRAFFIC, Load("closed", concurrency=32))
        assert both.output_tokens_per_s == pytest.approx(2 * alone.output_tokens_per_s)
        assert both.time_per_output_token_s == alone.time_per_output_token_s

    def test_littles_law(self) -> None:
        found = replayed(DEPLOYED["8b on H100"], TRAFFIC, Load("closed", concurrency=24))
        assert found.mean_in_flight == pytest.approx(24, rel=0.05)

    @pytest.mark.parametrize(
        "load",
        [
            Load("closed", concurrency=0),
            Load("open", requests_per_s=0.0),
            Load("open", requests_per_s=-1.0),
            Load("open", requests_per_s=math.nan),
            Load("open", requests_per_s=math.inf),
            Load("open", requests_per_s=1.0, requests=1_000_000),
        ],
    )
    def test_impossible_loads(self, load: Load) -> None:
        with pytest.raises(InvalidInputError):
            replayed(DEPLOYED["8b on H100"], TRAFFIC, load)


class TestSamples:
    @given(st.integers(1, 400), st.integers(0, 2**32))
    def test_lengths_have_their_mean_whatever_the_order(self, count: int, seed: int) -> None:
        lengths = uniform_lengths(10, 70)
        drawn = spread_lengths(lengths, count, np.random.default_rng(seed))
        assert len(drawn) == count
        assert sum(drawn) / count == pytest.approx(lengths.mean, abs=60 / count)

    def test_long_tails_are_drawn(self) -> None:
        lengths = lognormal_lengths(500.0, 1500.0)
        drawn = sorted(spread_lengths(lengths, 1000, np.random.default_rng(1)))
        assert sum(drawn) / 1000 == pytest.approx(500.0, rel=0.01)
        assert drawn[950] == pytest.approx(1500.0, rel=0.1)

    def test_arrivals_are_poisson(self) -> None:
        """Mean gap 1/λ, deviation 1/λ, and hardly any correlation of neighbours."""
        arrivals = np.array(poisson_arrivals_s(5.0, 4000, np.random.default_rng(3)))
        gaps = np.diff(arrivals)
        assert gaps.min() >= 0
        assert gaps.mean() == pytest.approx(0.2, rel=0.02)
        assert gaps.std() == pytest.approx(0.2, rel=0.03)
        assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.05

    def test_percentiles_by_hand(self) -> None:
        found = statistics([1.0, 2.0, 3.0, 4.0])
        assert (found["mean"], found["p50"]) == (2.5, 2.5)
        assert found["p90"] == pytest.approx(3.7)
        weighted = weighted_statistics([(1.0, 98.0), (10.0, 2.0)])
        assert (weighted["p50"], weighted["p95"], weighted["p99"]) == (1.0, 1.0, 10.0)
        assert weighted["mean"] == pytest.approx(1.18)

    def test_histograms_have_to_sum_to_one(self) -> None:
        for tokens, shares in (((1, 2), (0.5, 0.4)), ((), ()), ((1,), (math.nan,)), ((-1,), (1.0,)), ((1, 2), (1.0,))):
            with pytest.raises(InvalidInputError):
                Lengths(tokens, shares)
