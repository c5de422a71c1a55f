"""A closed loop of equal requests lies between prompts all at once and prompts spread; any other load is what it was."""

import math
from dataclasses import replace

import pytest

from solver.deployment.configuration import Configuration
from solver.lengths import Lengths, fixed_lengths, uniform_lengths
from solver.prediction.estimate import Correction, estimate
from solver.prediction.spreads import moved_spreads
from solver.replay.one_stream import Replay, replay
from solver.step.rates import rates
from solver.workload import Load, Traffic
from tests.solver.samples import catalog, configuration, constants, dense_shape, device

HERE = configuration(dense_shape(layers=32, hidden=4096))
EQUAL = Traffic(fixed_lengths(1000), fixed_lengths(200))
CLIENTS = 32


def told(traffic: Traffic, requests: int | None = None, here: Configuration = HERE) -> Replay:
    return replay(here, here.tables(), traffic, Load("closed", concurrency=CLIENTS, requests=requests))


def test_first_tokens_come_sooner_than_all_at_once_and_later_than_of_unequal_requests() -> None:
    """Replies that differ by a little pull clients apart: what a loop of equal ones is between."""
    between, at_once = told(EQUAL), told(EQUAL, requests=CLIENTS)
    apart = told(Traffic(fixed_lengths(1000), uniform_lengths(100, 300)))
    assert apart.time_to_first_token_s["mean"] < between.time_to_first_token_s["mean"]
    assert between.time_to_first_token_s["mean"] < at_once.time_to_first_token_s["mean"]
    assert between.at_once_ratio > 1.2


def test_tokens_take_as_long_as_of_unequal_requests_of_the_same_mean() -> None:
    apart = told(Traffic(fixed_lengths(1000), uniform_lengths(100, 300)))
    found = told(EQUAL).time_per_output_token_s["mean"] / apart.time_per_output_token_s["mean"]
    assert found == pytest.approx(1.0, abs=0.05)


def test_whole_requests_are_their_first_token_and_the_rest() -> None:
    found = told(EQUAL)
    rest = 199 * found.time_per_output_token_s["mean"]
    assert found.end_to_end_s["mean"] == pytest.approx(found.time_to_first_token_s["mean"] + rest, rel=0.1)


@pytest.mark.parametrize("output", [uniform_lengths(199, 200), fixed_lengths(1)])
def test_no_other_loop_has_two_regimes(output: Lengths) -> None:
    assert told(Traffic(fixed_lengths(1000), output)).at_once_ratio == pytest.approx(1.0)
    assert told(EQUAL, requests=64).at_once_ratio == 1.0


def test_an_interval_of_first_tokens_reaches_its_share_of_the_way_to_either_end() -> None:
    sure = Correction(
        "measured", spreads={"time_to_first_token": (0.999, 1.001), "time_per_output_token": (0.999, 1.001)}
    )
    found = estimate(HERE, EQUAL, Load("closed", concurrency=CLIENTS), sure)
    half = HERE.constants.si("interval_regimes_share") * 0.5 * math.log(told(EQUAL).at_once_ratio)
    first, token = found.time_to_first_token_s["mean"], found.time_per_output_token_s["mean"]
    assert math.log(first.high / first.expected) == pytest.approx(half, rel=0.01)
    assert math.log(first.expected / first.low) == pytest.approx(half, rel=0.01)
    assert token.high / token.expected == pytest.approx(1.001)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_where_runs_say_what_else_an_interval_holds_it_reaches_less_of_the_way(engine: str) -> None:
    """The wider share is that of loops whose middle itself is not known."""
    known, elsewhere = (constants(device, engine) for device in ("h100-sxm", "l4"))
    assert 0.0 < known.si("interval_regimes_share") < elsewhere.si("interval_regimes_share")


def test_a_checkpoint_of_quantised_experts_multiplies_the_rest_in_16_bits() -> None:
    here, told_by = device("b200-sxm"), constants("b200-sxm", "tensorrt-llm")
    quantised = replace(HERE.precision, weights="mxfp4")

    def of(beside: float) -> tuple[float, float, float, float]:
        found = rates(here, told_by, quantised, HERE.layout, link_domain_devices=8, beside_experts_bytes=beside)
        return (
            float(found.gemm_flop_per_s), float(found.expert_flop_per_s), float(found.quantised_layer_overhead_s),
            float(found.quantised_activations),
        )  # fmt: skip

    wide, narrow = of(2.0), of(0.53)
    assert wide[0] < narrow[0]
    assert wide[1] == narrow[1]
    assert narrow[2] - wide[2] == pytest.approx(told_by.si("quantised_layer_overhead_us"))
    assert (wide[3], narrow[3]) == (0.0, 1.0)


def test_intervals_hold_what_public_runs_were_off_beyond_the_ranges_of_constants() -> None:
    here = constants("l4", "vllm")
    low, high = here.range_si("interval_token_miss")
    calm = Replay(*({"mean": 0.2} for _ in range(4)), 100.0, 1.0, 0.5, 0.5, 4.0, 0)
    found = moved_spreads(calm, calm, calm, here)
    assert found["time_per_output_token.mean"] == pytest.approx((low, high))
    assert found["output_rate"] == pytest.approx((1.0 / high, 1.0 / low))
    assert low < 1.0 < high


def test_every_range_of_what_is_missed_holds_no_miss_at_all() -> None:
    rows = [row for row in catalog().constants if row.name in ("interval_token_miss", "interval_first_token_miss")]
    assert rows
    assert all(row.low <= 1.0 <= row.high for row in rows)
