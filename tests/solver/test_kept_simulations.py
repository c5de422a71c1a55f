"""What tests keep of simulations is what a fresh one says, and every figure of a question tells it from others."""

from dataclasses import replace

import numpy as np
import pytest

from solver.deployment.configuration import Configuration
from solver.errors import SaturatedError
from solver.lengths import uniform_lengths
from solver.replay.latencies import SteadyLane
from solver.replay.long_run import draw_mixed
from solver.replay.streams import RequestStream
from solver.workload import Traffic
from tests.llm_shapes import shape
from tests.simulations import KEPT, KeptLane, kept_draw
from tests.solver.samples import configuration

CHAT = Traffic(uniform_lengths(200, 1000), uniform_lengths(50, 350))
LONGER = Traffic(uniform_lengths(200, 1000), uniform_lengths(50, 360))
HERE = configuration(shape("llama-3.1-8b"))
SLOWER = replace(HERE, device=replace(HERE.device, memory_bytes_per_s=0.8 * HERE.device.memory_bytes_per_s))


@pytest.mark.parametrize(
    ("on", "traffic", "rate", "seeds", "requests"),
    [
        (HERE, CHAT, 2.0, (1, 2), 500),
        (SLOWER, CHAT, 2.0, (1, 2), 500),
        (HERE, LONGER, 2.0, (1, 2), 500),
        (HERE, CHAT, 2.5, (1, 2), 500),
        (HERE, CHAT, 2.0, (1, 3), 500),
        (HERE, CHAT, 2.0, (1, 2), 600),
    ],
)
def test_a_kept_answer_is_a_fresh_one(
    on: Configuration, traffic: Traffic, rate: float, seeds: tuple[int, ...], requests: int
) -> None:
    fresh = SteadyLane(on, on.tables(), traffic).latencies(rate, seeds, requests)
    for _ in range(2):
        kept = KeptLane(on, on.tables(), traffic).latencies(rate, seeds, requests)
        for one, other in (
            (kept.time_to_first_token_s, fresh.time_to_first_token_s),
            (kept.end_to_end_s, fresh.end_to_end_s),
        ):
            assert np.array_equal(one, other)


def test_a_refusal_is_kept_too() -> None:
    for _ in range(2):
        with pytest.raises(SaturatedError):
            KeptLane(HERE, HERE.tables(), CHAT).latencies(10_000.0, (1,), 500)


@pytest.mark.parametrize(("on", "rate", "seed"), [(HERE, 2.0, 1), (SLOWER, 2.0, 1), (HERE, 2.5, 1), (HERE, 2.0, 2)])
def test_a_kept_mix_is_a_fresh_one(on: Configuration, rate: float, seed: int) -> None:
    streams = [RequestStream(CHAT, rate), RequestStream(LONGER, 1.0)]
    fresh = draw_mixed(on, on.tables(), streams, seed)
    for _ in range(2):
        kept = kept_draw(on, on.tables(), streams, seed)
        assert [one.time_to_first_token_s for one in kept.streams] == [
            one.time_to_first_token_s for one in fresh.streams
        ]


def test_what_is_known_is_not_simulated_again() -> None:
    before = object()
    assert KEPT.of(("a question", 1), lambda: before) is before
    assert KEPT.of(("a question", 1), object) is before
    assert KEPT.of(("a question", 2), object) is not before
