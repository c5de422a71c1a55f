"""Releases that compose a step when the one before is done: their host's work is waited for, and prompts join the next step."""

from dataclasses import replace

import pytest

from solver.deployment.configuration import Configuration
from solver.engine.releases import has_first_loop, waits_for_steps
from solver.lengths import fixed_lengths
from solver.prediction.estimate import estimate
from solver.workload import EngineSettings, Load, Traffic
from tests.solver.samples import configuration, dense_shape

TRAFFIC = Traffic(fixed_lengths(500), fixed_lengths(200))
CLIENTS = 16


def of_release(version: str | None) -> Configuration:
    return configuration(dense_shape(layers=32, hidden=4096), engine=EngineSettings("vllm", version))


def test_the_wait_is_added_to_every_decode_step() -> None:
    load = Load("closed", concurrency=CLIENTS, requests=4 * CLIENTS)
    waiting, ahead = of_release("0.12.0"), of_release("0.14.0")
    told = [estimate(one, TRAFFIC, load, None).time_per_output_token_s["mean"].expected for one in (waiting, ahead)]
    c = waiting.constants.si
    added = c("waited_step_us") + CLIENTS * c("waited_sequence_us")
    assert told[0] - told[1] == pytest.approx(added, rel=0.1)


def test_a_first_loop_is_waited_for_longer() -> None:
    first, anew = of_release("0.7.3"), of_release("0.8.0")
    more = first.constants.si("first_loop_step_us") - first.constants.si("waited_step_us")
    assert first.rates().step_overhead_s - anew.rates().step_overhead_s == pytest.approx(more)
    assert first.rates().sequence_overhead_s == anew.rates().sequence_overhead_s
    assert not has_first_loop("sglang", "0.4.6.post1")


def test_prompts_join_the_next_step() -> None:
    assert of_release("0.13.3").schedule().lag_fraction == 0.0
    assert of_release("0.14.0").schedule().lag_fraction > 0.5


@pytest.mark.parametrize("version", [None, "0.24.0", "nightly-5b8c30d"])
def test_a_release_that_is_not_stated_is_one_of_today(version: str | None) -> None:
    here = of_release(version)
    assert here.rates() == replace(here, engine=EngineSettings("vllm", "0.14.0")).rates()


def test_other_engines_with_small_numbers_do_not_wait() -> None:
    assert not waits_for_steps("sglang", "0.4.6.post1")
    assert not waits_for_steps("jetstream", "0.2.0")
