"""Intervals of open loads hold what steps that are slower or faster than predicted make of the queue."""

from dataclasses import replace

import pytest

from solver.capacity.factors import factor_of
from solver.corrections.evidence import Measurement, predicted, predicted_with_steps
from solver.errors import SaturatedError
from solver.lengths import Lengths
from solver.prediction.estimate import Correction, Estimate, estimate
from solver.prediction.intervals import PredictedInterval, at_least
from solver.prediction.step_error import dilated, queued_spreads
from solver.prediction.streams import estimate_mixed
from solver.replay.long_run import draw
from solver.replay.one_stream import replay
from solver.replay.streams import RequestStream
from solver.step.constants import Constants
from solver.workload import Load, Traffic
from tests.solver.samples import configuration, dense_shape

HERE = configuration(dense_shape(layers=32, hidden=4096))
TRAFFIC = Traffic(Lengths((600,), (1.0,)), Lengths((120,), (1.0,)))
SPREADS = {"time_per_output_token": (0.9, 1.1), "time_to_first_token": (0.85, 1.2), "output_rate": (0.95, 1.05)}
MEASURED = Correction("measured", spreads=SPREADS)


def at(requests_per_s: float) -> Estimate:
    return estimate(HERE, TRAFFIC, Load("open", requests_per_s=requests_per_s), MEASURED)


def width(interval: PredictedInterval) -> float:
    return interval.high / interval.low


def test_steps_twice_as_long_are_the_load_at_twice_the_rate_on_a_clock_half_as_fast() -> None:
    """Every constant that is a time doubled, every rate halved: the replay itself agrees."""
    rates = HERE.constants
    slower = {
        name: 2.0 * prior.value if name.endswith(("_us", "_ms")) else prior.value / 2.0
        for name, prior in rates.priors.items()
        if name.endswith(("_us", "_ms")) or "efficiency" in name
    }
    values = {n: replace(p, value=slower.get(n, p.value)) for n, p in rates.priors.items()}
    slow = replace(HERE, constants=Constants(rates.subject, values))
    direct = draw(slow, slow.tables(), TRAFFIC, 2.0)
    scaled = dilated(draw(HERE, HERE.tables(), TRAFFIC, 4.0), 2.0)
    assert scaled.requests_per_s == pytest.approx(2.0, rel=0.02)
    assert scaled.time_per_output_token_s["mean"] == pytest.approx(direct.time_per_output_token_s["mean"], rel=0.02)
    assert scaled.time_to_first_token_s["p95"] == pytest.approx(direct.time_to_first_token_s["p95"], rel=0.05)


def test_a_queue_near_capacity_makes_more_of_an_error() -> None:
    calm, crowded = at(1.0), at(20.0)
    assert width(calm.time_per_output_token_s["p95"]) < width(crowded.time_per_output_token_s["p95"])
    assert width(crowded.time_per_output_token_s["p95"]) > 1.1 / 0.9


def test_a_measured_load_that_slower_steps_would_saturate_has_a_slow_end() -> None:
    """Runs near what a replica can do are evidence too: no fit ends with them."""
    load = Load("open", requests_per_s=24.0, requests=2_000)
    run = Measurement("run", "group", "dense", HERE, TRAFFIC, load, {})
    centre = predicted(run, HERE.constants)
    with pytest.raises(SaturatedError):
        replay(HERE, HERE.tables(), TRAFFIC, replace(load, requests_per_s=6.0 * load.requests_per_s))
    slow = predicted_with_steps(run, HERE.constants, 6.0)
    assert slow["time_per_output_token"] > 1.5 * centre["time_per_output_token"]
    assert slow["time_to_first_token"] > 1.5 * centre["time_to_first_token"]
    assert slow["output_rate"] < centre["output_rate"]


def test_intervals_are_never_narrower_than_what_was_measured() -> None:
    for rate in (1.0, 8.0, 20.0):
        found = at(rate)
        assert (
            found.time_per_output_token_s["mean"].high >= 1.1 * found.time_per_output_token_s["mean"].expected * 0.999
        )
        assert found.time_to_first_token_s["mean"].low <= 0.85 * found.time_to_first_token_s["mean"].expected * 1.001


def test_closed_loads_keep_the_measured_spread() -> None:
    found = estimate(HERE, TRAFFIC, Load("closed", concurrency=16), MEASURED).time_per_output_token_s["mean"]
    assert (found.low / found.expected, found.high / found.expected) == pytest.approx((0.9, 1.1))


def test_one_stream_alone_is_the_load_itself() -> None:
    alone = at(8.0)
    (stream,) = estimate_mixed(HERE, [RequestStream(TRAFFIC, 8.0)], MEASURED).streams
    assert stream.time_per_output_token_s["p95"] == alone.time_per_output_token_s["p95"]


def test_only_times_are_widened() -> None:
    one = draw(HERE, HERE.tables(), TRAFFIC, 4.0)
    spreads = {**SPREADS, "power": (0.9, 1.1)}
    wide = queued_spreads(spreads, one, dilated(one, 3.0), dilated(one, 0.5))
    assert wide["power"] == (0.9, 1.1)
    assert wide["time_per_output_token.p99"] == pytest.approx((0.5, 3.0))
    assert wide["output_rate"] == pytest.approx((1.0 / 3.0, 1.05))
    assert "end_to_end.mean" not in wide


def test_percentiles_never_fall_and_lie_between_the_factors_of_mean_and_tail() -> None:
    factors = {"time_to_first_token": 1.3, "time_to_first_token.p99": 0.8}
    tails = [factor_of(f"time_to_first_token.{p}", factors) for p in ("mean", "p50", "p90", "p95", "p99")]
    assert tails == sorted(tails, reverse=True)
    assert at_least(PredictedInterval(1.0, 0.5, 2.0), PredictedInterval(1.5, 0.4, 1.8)) == PredictedInterval(
        1.5, 0.5, 2.0
    )
    found = estimate(HERE, TRAFFIC, Load("open", requests_per_s=8.0), replace(MEASURED, factors=factors))
    values = [found.time_to_first_token_s[p].expected for p in ("p50", "p90", "p95", "p99")]
    assert values == sorted(values)
