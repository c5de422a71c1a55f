"""Copies of attention that share experts step together: replies of one wait for prompts of the others."""

import json
import math
import random
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import read_catalog
from service.corrections.snapshot import correction_set
from solver.candidates.confidence import margins
from solver.deployment.configuration import Configuration
from solver.engine.kernel.timing import steps_beside
from solver.engine.steady import steps_beside as in_closed_form
from solver.layout import Layout
from solver.lengths import fixed_lengths, uniform_lengths
from solver.recommend.recommend import space_of
from solver.replay.one_stream import Replay, replay
from solver.traffic_classes import with_confidence
from solver.workload import Load, Targets, Traffic
from tests.solver.planning_cases import MEMO, node, planning, workload
from tests.solver.samples import configuration, device, sparse_shape

STEPS = DEFAULT_ROOT / "steps" / "h200-sxm_vllm-0.24.0_w.json"
PROMPTS = ("1 to 512", "513 to 1024", "1025 to 2048", "2049 to 4096")
SHARED = configuration(
    sparse_shape(layers=24, hidden=2048, experts=64, top_k=6, width=1408),
    layout=Layout(data_parallel=2, expert_parallel=2),
)
AT_FOUR_OF_FIVE = NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.95)
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


def test_plans_leave_the_room_that_intervals_of_shared_experts_do() -> None:
    """Where a device and engine were measured, times of a mixture's layouts are taken at an upper quantile, wider by what copies that
    share experts were seen to miss. What physics alone says has the range of public runs, such copies among them."""
    sure = Targets({"p95": 1.0}, {"p95": 0.05}, confidence_fraction=0.8)
    asked = workload(llm="qwen3-30b-a3b", targets=sure)
    nodes = node("h100x4", device("h100-sxm"), 4), node("mi355x8", device("mi355x"), 8)
    space = space_of(planning(asked, nodes=nodes), asked, MEMO)
    shared, of_measured = space.grid.lockstep_copies[space.grid_row, 0] > 0.0, 0
    corrections = correction_set(read_catalog().corrections[-1])
    found = margins(asked, space, corrections)
    assert found is not None
    for row in np.flatnonzero(shared).tolist():
        platform = space.platforms[space.platform_index[row]]
        own = float(found[~shared & (space.platform_index == space.platform_index[row])][0])
        missed = platform.constants.range_si("interval_shared_experts_token_miss")[1]
        is_measured = platform.device.id == "h100-sxm" and platform.engine == "vllm"
        expected = math.hypot(math.log(own), AT_FOUR_OF_FIVE * math.log(missed)) if is_measured else math.log(own)
        if is_measured or platform.device.id == "mi355x":
            assert math.log(found[row]) == pytest.approx(expected)
        of_measured += is_measured
    assert of_measured
    assert not shared.all()
    assert margins(with_confidence(asked, 0.5), space, corrections) is None
