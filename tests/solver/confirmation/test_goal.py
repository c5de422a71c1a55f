"""The largest value over its target: which values, corrected by what, and what draws that differ add."""

import math
import random

import numpy as np
import pytest

from solver.capacity.factors import factor_of
from solver.capacity.goal import Goal
from solver.capacity.runs import Runs, TableMemo
from solver.lengths import lognormal_lengths
from solver.prediction.intervals import percentile_intervals
from solver.replay.latencies import Latencies, SteadyLane
from solver.replay.long_run import (
    DRAW_SEEDS,
    FURTHER_SEEDS,
    SURE_FRACTION,
    LongRun,
    Metric,
    draw_requests,
    is_sure,
    long_run,
)
from solver.replay.one_stream import capacity_requests_per_s
from solver.workload import PERCENTILES, Percentile, Targets, Traffic
from tests.llm_shapes import shape
from tests.solver.planning_cases import CHAT
from tests.solver.samples import configuration

METRICS: tuple[Metric, ...] = (
    "time_to_first_token_s",
    "time_per_output_token_s",
    "end_to_end_s",
    "time_to_first_answer_s",
)


def latencies(*draws: float) -> Latencies:
    """First token, and first of the answer, after d seconds in every percentile, a token every d/10, the end after 5 d; one d a draw."""
    each = np.array(draws)[:, None] * np.ones(len(PERCENTILES))
    return Latencies(each, each / 10.0, each * 5.0, each)


class TestRatio:
    def test_nothing_asked_is_kept(self) -> None:
        assert Goal(Targets()).ratio_of(latencies(1e9)) == 0.0

    def test_the_worst_target_counts(self) -> None:
        goal = Goal(Targets({"p95": 2.0, "p99": 4.0}, {"mean": 0.125}, {"p50": 50.0}))
        assert goal.ratio_of(latencies(1.0)) == pytest.approx(0.8)
        assert Goal(Targets({"p95": 2.0}, {}, {"p50": 4.0})).ratio_of(latencies(1.0)) == pytest.approx(1.25)

    def test_distance_is_waited_for_the_first_and_the_last_token_only(self) -> None:
        far = {"network_s": 0.5}
        assert Goal(Targets({"p95": 2.0}), **far).ratio_of(latencies(1.0)) == pytest.approx(0.75)
        assert Goal(Targets({}, {"p95": 0.2}), **far).ratio_of(latencies(1.0)) == pytest.approx(0.5)
        assert Goal(Targets({}, {}, {"p95": 10.0}), **far).ratio_of(latencies(1.0)) == pytest.approx(0.55)

    def test_measurements_and_confidence_move_the_replica_not_the_distance(self) -> None:
        goal = Goal(Targets({"p95": 2.0}), {"time_to_first_token": 1.2}, margin=1.1, network_s=0.5)
        assert goal.ratio_of(latencies(1.0)) == pytest.approx((1.2 * 1.1 + 0.5) / 2.0)

    def test_a_percentiles_own_factor_goes_before_that_of_its_metric(self) -> None:
        factors = {"end_to_end": 2.0, "end_to_end.p99": 3.0}
        assert [factor_of(f"end_to_end.{p}", factors) for p in ("p50", "p99")] == [2.0, 3.0]
        assert factor_of("time_to_first_token.p99", factors) == 1.0
        assert Goal(Targets({}, {}, {"p95": 5.0, "p99": 5.0}), factors).ratio_of(latencies(1.0)) == pytest.approx(3.0)

    def test_a_percentile_below_the_tail_is_corrected_as_it_is_stated(self) -> None:
        """An estimate states the 95th between the factors of mean and 99th; a target is held to that and not to the mean's."""
        factors = {"time_to_first_token": 1.0, "time_to_first_token.p99": 1.5}
        ratio = Goal(Targets({"p95": 1.0}), factors).ratio_of(latencies(1.0))
        stated = percentile_intervals("time_to_first_token", dict.fromkeys(PERCENTILES, 1.0), {}, factors)
        assert ratio == pytest.approx(stated["p95"].expected)
        assert ratio > 1.3

    def test_a_request_ends_no_earlier_than_its_first_token_comes(self) -> None:
        factors = {"time_to_first_token": 8.0, "end_to_end": 0.5}
        goal = Goal(Targets({}, {}, {"p95": 1.0}, {"p95": 1.0}), factors)
        assert goal.ratio_of(latencies(1.0)) == pytest.approx(8.0)

    def test_replies_of_one_token_end_with_it(self) -> None:
        """What whole requests of other lengths were measured at says nothing of them."""
        factors = {"time_to_first_token": 0.9, "end_to_end": 1.4}
        alone = Goal(Targets({}, {}, {"p95": 1.0}), factors, first_tokens_only=True)
        each = np.ones((1, len(PERCENTILES)))
        assert alone.ratio_of(Latencies(each, 0.0 * each, each, each)) == pytest.approx(0.9)

    def test_a_target_of_nothing_cannot_be_met(self) -> None:
        assert Goal(Targets({"mean": 0.0})).ratio_of(latencies(1e-9)) == math.inf

    def test_draws_that_differ_are_counted(self) -> None:
        goal = Goal(Targets({"p95": 2.0}))
        assert goal.ratio_of(latencies(1.0, 1.0, 1.0, 1.0)) == pytest.approx(0.5)
        near, far = goal.ratio_of(latencies(0.98, 1.02, 0.98, 1.02)), goal.ratio_of(latencies(0.94, 1.06, 0.94, 1.06))
        assert 0.5 < near < far < 1.06 / 2.0
        assert far - 0.5 == pytest.approx(3.0 * (near - 0.5))

    def test_their_difference_counts_up_to_a_bound(self) -> None:
        """So a deployment whose estimate keeps a target with that much to spare is one that plans may use."""
        goal = Goal(Targets({"p95": 2.0}))
        assert goal.ratio_of(latencies(0.1, 1.9, 0.1, 1.9)) == pytest.approx(0.5 * (1.0 + SURE_FRACTION))

    @pytest.mark.parametrize("seed", range(20))
    def test_is_the_largest_of_its_parts_and_never_grows_as_one_is_loosened(self, seed: int) -> None:
        rng = random.Random(seed)
        run = Latencies(*(np.array([[rng.uniform(0.1, 3.0) for _ in PERCENTILES] for _ in range(4)]) for _ in METRICS))
        parts = [(metric, p, rng.uniform(0.1, 3.0)) for metric in METRICS for p in PERCENTILES if rng.random() < 0.5]

        def goal(of: list[tuple[Metric, Percentile, float]]) -> Goal:
            return Goal(Targets(*({p: s for m, p, s in of if m == metric} for metric in METRICS)))

        whole = goal(parts).ratio_of(run)
        assert whole == max((goal([part]).ratio_of(run) for part in parts), default=0.0)
        for i, (metric, p, limit) in enumerate(parts):
            assert goal([*parts[:i], (metric, p, limit * 1.5), *parts[i + 1 :]]).ratio_of(run) <= whole


def test_where_draws_differ_there_are_more_of_them() -> None:
    """Crowds in a small cache come and go so slowly that one draw is nothing like the next. The further draws are the same
    for whoever asks: estimates, plan lines, and what decides about a rate."""
    traffic = Traffic(lognormal_lengths(3000.0, 9000.0), lognormal_lengths(500.0, 1500.0))
    on = configuration(shape("llama-3.1-8b"), kv_cache_tokens=2e5)
    rate = 0.8 * capacity_requests_per_s(on, on.tables(), traffic)
    full = long_run(on, on.tables(), traffic, rate)
    assert not is_sure(LongRun(full.draws[: len(DRAW_SEEDS)]))
    assert len(full.draws) == len(DRAW_SEEDS) + len(FURTHER_SEEDS)
    runs = Runs((0, False), on, traffic, TableMemo())
    decided = runs.long_run(rate)
    assert decided is not None
    for metric in METRICS:
        assert decided.value_s(metric, "p95") == pytest.approx(full.value_s(metric, "p95"), rel=1e-9)


def test_a_plan_is_held_to_what_its_line_states() -> None:
    """The quick replay that decides about a rate and the full one that is reported are of the same draws."""
    on = configuration(shape("llama-3.1-8b"))
    tables, rate = on.tables(), 8.0
    goal = Goal(Targets({"p95": 0.1}, {"p99": 0.01}, {"mean": 2.0}))
    quick = SteadyLane(on, tables, CHAT).latencies(rate, DRAW_SEEDS, draw_requests(on))
    full = long_run(on, tables, CHAT, rate)
    assert len(full.draws) == 4
    assert goal.ratio_of(quick) == pytest.approx(goal.ratio_of(full), rel=1e-9)
    for metric in METRICS:
        for percentile in PERCENTILES:
            assert quick.value_s(metric, percentile) == pytest.approx(full.value_s(metric, percentile), rel=1e-9)
    assert goal.ratio_of(LongRun(full.draws[:1])) != goal.ratio_of(full)
