"""Copies of attention that share experts step together: replies of one wait for prompts of the others."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.deployment.configuration import Configuration
from solver.engine.kernel.timing import steps_beside
from solver.engine.steady import steps_beside as in_closed_form
from solver.layout import Layout
from solver.lengths import fixed_lengths, uniform_lengths
from solver.replay.one_stream import Replay, replay
from solver.workload import Load, Traffic
from tests.solver.samples import configuration, sparse_shape

STEPS = DEFAULT_ROOT / "steps" / "h200-sxm_vllm-0.24.0_w.json"
PROMPTS = ("1 to 512", "513 to 1024", "1025 to 2048", "2049 to 4096")
SHARED = configuration(
    sparse_shape(layers=24, hidden=2048, experts=64, top_k=6, width=1408),
    layout=Layout(data_parallel=2, expert_parallel=2),
)
TRAFFIC = Traffic(uniform_lengths(400, 1200), fixed_lengths(150))


def told(here: Configuration, others: int, load: Load) -> Replay:
    """A replay with so many other copies in step."""
    object.__setattr__(here, "_schedules_found", {0.0: replace(here.schedule(), lockstep_copies=others)})
    return replay(here, here.tables(), TRAFFIC, load)


@pytest.mark.parametrize(
    ("layout", "others"),
    [
        (Layout(), 0),
        (Layout(tensor_parallel=2, expert_parallel=2), 0),
        (Layout(data_parallel=2), 0),
        (Layout(data_parallel=2, expert_parallel=2), 1),
        (Layout(tensor_parallel=2, data_parallel=2, expert_parallel=4), 1),
        (Layout(data_parallel=8, expert_parallel=8), 7),
    ],
)
def test_copies_step_together_where_they_share_experts(layout: Layout, others: int) -> None:
    assert replace(SHARED, layout=layout).schedule().lockstep_copies == others


@pytest.mark.parametrize(("share", "others"), [(0.05, 1), (0.3, 1), (0.3, 7), (0.9, 3)])
def test_steps_beside_as_drawn(share: float, others: int) -> None:
    """Copies that have prompts in a step or not, each for itself."""
    rng, own, beside = random.Random(others), 0, 0
    for _ in range(100_000):
        if rng.random() < share:
            own += 1
        else:
            beside += any(rng.random() < share for _ in range(others))
    assert steps_beside(share, others) == pytest.approx(beside / own, rel=0.04)
    closed = in_closed_form(np.array([[share]]), np.array([[float(others)]]))
    assert closed[0, 0] == pytest.approx(steps_beside(share, others))


def test_of_one_copy_nothing_waits() -> None:
    assert in_closed_form(np.array([[0.0, 0.3]]), np.zeros((1, 1))).tolist() == [[0.0, 0.0]]
    assert steps_beside(0.0, 3) == 3.0


def test_replies_wait_for_prompts_of_the_other_copy() -> None:
    load = Load("open", requests_per_s=20.0, requests=600)
    alone, together = told(SHARED, 0, load), told(SHARED, 1, load)
    assert together.time_per_output_token_s["mean"] > 1.05 * alone.time_per_output_token_s["mean"]
    assert together.inter_token_s["p99"] > alone.inter_token_s["p99"]


def test_one_client_waits_for_nobody() -> None:
    load = Load("closed", concurrency=1, requests=10)
    alone, together = told(SHARED, 0, load), told(SHARED, 1, load)
    assert together.time_per_output_token_s == alone.time_per_output_token_s


def test_the_longest_step_is_everybodys_as_measured() -> None:
    """Two copies of DeepSeek-V2-Lite on H200: a step without prompts lasts as long as the prompts of the other copy take it."""
    found = json.loads(STEPS.read_text())["servers"]["DeepSeek-V2-Lite, two copies of attention that share experts"]
    steps = {name: step["median_ms"] for name, step in found["steps"].items()}
    free = steps["no prompts; the other copy: no prompts"]
    for prompts in PROMPTS:
        has, waits = (
            steps[f"{prompts} tokens of prompts; the other copy: no prompts"],
            steps[f"no prompts; the other copy: {prompts} tokens of prompts"],
        )
        assert has > 2.5 * free
        assert waits == pytest.approx(has, rel=0.05)
