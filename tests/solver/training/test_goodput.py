"""What interruptions leave of the time, against runs in which they are drawn."""

import random

import pytest

from solver.training.goodput import Reliability, checkpoint_interval_s, goodput_fraction, interruption_mean_s

DRAWN_INTERRUPTIONS = 20_000


def drawn_goodput(mean_s: float, interval_s: float, checkpoint_s: float, restart_s: float, seed: int) -> float:
    """Event by event: work, checkpoint, interruption, restart, again; the share of the time whose work was kept."""
    draw = random.Random(seed)
    now = kept = 0.0
    interrupted_at = draw.expovariate(1.0 / mean_s)
    left, saved = DRAWN_INTERRUPTIONS, 0.0
    resumes_at = 0.0  # restarting until then
    while left:
        done_at = max(now, resumes_at) + interval_s + checkpoint_s
        if done_at <= interrupted_at:
            now, saved = done_at, saved + interval_s
            continue
        now, left = interrupted_at, left - 1
        resumes_at = now + restart_s
        interrupted_at = now + draw.expovariate(1.0 / mean_s)
        kept = saved
    return kept / now


@pytest.mark.parametrize(
    ("devices", "preemptions", "checkpoint_s", "restart_s"),
    [
        (8, 0.0, 60.0, 900.0),
        (4096, 0.0, 60.0, 900.0),
        (16_384, 0.0, 30.0, 900.0),
        (16_384, 0.0, 300.0, 900.0),
        (64, 0.02, 45.0, 900.0),
        (256, 0.05, 120.0, 600.0),
        (512, 0.1, 120.0, 900.0),
        (64, 0.3, 10.0, 300.0),
    ],
)
def test_the_share_that_counts_is_what_drawn_interruptions_leave(
    devices: int, preemptions: float, checkpoint_s: float, restart_s: float
) -> None:
    reliability = Reliability(50_677.0, checkpoint_s, restart_s, preemptions)
    mean_s = interruption_mean_s(reliability, devices, devices // 8)
    interval_s = min(checkpoint_interval_s(checkpoint_s, mean_s), mean_s)
    found = goodput_fraction(reliability, devices, devices // 8)
    assert found == pytest.approx(drawn_goodput(mean_s, interval_s, checkpoint_s, restart_s, seed=devices), abs=0.01)
    assert 0.0 < found < 1.0


def test_checkpoints_that_cost_nothing_lose_restarts_alone() -> None:
    free, nearly = (goodput_fraction(Reliability(50_677.0, cost, 900.0), 4096, 512) for cost in (0.0, 1e-6))
    assert free == pytest.approx(nearly, abs=1e-3)
