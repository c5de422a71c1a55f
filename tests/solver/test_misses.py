"""Ranges of what public runs lie off, and which levels have their own."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.corrections.miss_levels import EVERYTHING, Level, ranges
from solver.corrections.misses import (
    EXACT,
    TOKEN,
    PublicMiss,
    by_source,
    calibrated,
    ends,
    held,
    interval_score,
    shortest,
)
from solver.prediction.spreads import joined, with_misses
from solver.step.constants import ConstantPrior, resolve_constants

LOGS = st.lists(st.tuples(st.integers(0, 9), st.floats(-2.0, 2.0)), min_size=1, max_size=60)


def miss(ratio: float, source: int = 0, *, device: str = "d", engine: str = "e", width: float = 0.0) -> PublicMiss:
    group = (f"m{source}", "bf16", "1")
    return PublicMiss(TOKEN, f"s{source}", device, "f", engine, True, group, (1,), "analytical", ratio, -width, width)


@given(LOGS, st.floats(0.0, 0.5))
def test_a_range_holds_its_share_and_no_cluster_counts_more_than_another(
    found: list[tuple[int, float]], width: float
) -> None:
    runs = [miss(ratio, source, width=width) for source, ratio in found]
    low, high = shortest(runs, by_source)
    assert low <= 1.0 <= high
    assert held(runs, (low * (1 - 1e-9), high * (1 + 1e-9)), by_source) >= 0.9 - 1e-9
    # More runs of one source on a device change nothing.
    assert shortest([*runs, *(run for run in runs if run.source == runs[0].source)], by_source) == (low, high)


@given(LOGS)
def test_the_range_is_the_shortest_of_those_that_end_at_runs(found: list[tuple[int, float]]) -> None:
    runs = [miss(ratio, number) for number, (_, ratio) in enumerate(found)]
    width = math.log(shortest(runs, by_source)[1] / shortest(runs, by_source)[0])
    lows = [0.0, *(max(-run.ratio, 0.0) for run in runs)]
    highs = [0.0, *(max(run.ratio, 0.0) for run in runs)]
    enough = [
        a + b for a in lows for b in highs
        if held(runs, (math.exp(-a) * (1 - 1e-9), math.exp(b) * (1 + 1e-9)), by_source) >= 0.91
    ]  # fmt: skip
    assert width <= min(enough, default=width) + 1e-6


def test_the_score_is_the_width_plus_twenty_times_what_passes_an_end() -> None:
    runs = [miss(0.5), miss(0.0)]
    assert interval_score(runs, (0.8, math.exp(0.3)), by_source) == pytest.approx(
        0.3 - math.log(0.8) + 0.5 * 20.0 * 0.2
    )
    low, high = ends(miss(0.0, width=0.3), (math.exp(-0.4), 1.0))
    assert low == pytest.approx(-0.5)
    assert high == pytest.approx(0.3)


def test_left_out_groups_widen_what_their_own_evidence_says() -> None:
    runs = [miss(0.1 * number, number) for number in range(10)]
    wide, reached = calibrated(runs, by_source)
    assert wide[1] >= shortest(runs, by_source)[1]
    assert 0.0 < reached < 1.0


def test_a_level_has_its_own_range_only_where_left_out_groups_are_better_with_it() -> None:
    everything = [miss((-1) ** number * 0.1 * number, number) for number in range(8)]
    alike = [miss(1.5 + 0.01 * number, number, engine="slow") for number in range(5)]
    unlike = [miss((-1) ** number * 0.2 * number, number, engine="wild") for number in range(4)]
    levels = [Level((), "slow"), Level((), "wild"), Level((), "unknown")]
    found = {one.level: one for one in ranges([*everything, *alike, *unlike], levels)}
    assert set(found) == {EVERYTHING, levels[0], levels[1]}
    assert found[levels[0]].taken
    assert found[levels[0]].range[1] == pytest.approx(math.exp(1.54), rel=0.02)
    # What is not taken is part of everything else.
    assert found[EVERYTHING].runs == len(everything) + (0 if found[levels[1]].taken else len(unlike))
    assert found[EVERYTHING].range != EXACT


def test_a_release_that_is_not_stated_has_ranges_of_its_own() -> None:
    def prior(name: str, low: float, high: float) -> ConstantPrior:
        return ConstantPrior(name, "*", "*", "*", 1.0, low, high, "analytical")

    rows = [
        prior("interval_token_miss", 0.9, 1.1), prior("interval_first_token_miss", 0.8, 1.2),
        prior("interval_token_miss_any_release", 0.5, 2.0), prior("interval_first_token_miss_any_release", 0.4, 3.0),
    ]  # fmt: skip
    constants = resolve_constants(rows, device="d", family="f", engine="e")
    exact = {"time_per_output_token.mean": (1.0, 1.0), "time_to_first_token.p95": (1.0, 1.0), "output_rate": (1.0, 1.0)}
    assert with_misses(exact, constants) == joined(exact, (0.9, 1.1), (0.8, 1.2))
    assert with_misses(exact, constants, any_release=True) == joined(exact, (0.5, 2.0), (0.4, 3.0))
    with pytest.raises(Exception, match="interval_token_miss_any_release"):
        with_misses(exact, replace(constants, priors={p.name: p for p in rows[:2]}), any_release=True)
