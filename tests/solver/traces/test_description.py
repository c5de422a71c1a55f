"""What is said of a trace, held against traces made with known rates, bursts, lengths and sessions."""

import numpy as np
import pytest

from solver.errors import InvalidInputError
from solver.lengths import lognormal_lengths
from solver.traces.arrivals import DAY_S, HOUR_S, WEEK_S
from solver.traces.description import described
from solver.traces.trace import Blocks, Trace


def made(arrival_s: np.ndarray | None = None, count: int = 20_000, **arrays: object) -> Trace:
    draw = np.random.default_rng(1)
    prompts = np.maximum(1, draw.lognormal(6.5, 0.9, count).round().astype(np.int64))
    outputs = np.maximum(1, draw.lognormal(5.0, 0.5, count).round().astype(np.int64))
    return Trace(prompts, outputs, arrival_s, **arrays)


def test_a_poisson_stream_is_found_to_be_one() -> None:
    draw = np.random.default_rng(2)
    arrivals = described(made(np.cumsum(draw.exponential(0.25, 20_000)))).arrivals
    assert arrivals.rate_per_s == pytest.approx(4.0, rel=0.02)
    assert arrivals.variation == pytest.approx(1.0, abs=0.03)
    assert dict(arrivals.peaks)[60.0] < 1.3
    assert arrivals.by_hour is None


def test_bursts_and_a_hole_show() -> None:
    draw = np.random.default_rng(2)
    gaps = draw.gamma(0.25, 4.0, 20_000)
    gaps[11] = 7_200.0
    arrivals = described(made(np.cumsum(gaps))).arrivals
    assert arrivals.variation > 1.9
    assert (arrivals.gap_s, arrivals.gap_after) == (pytest.approx(7_200.0), 10)


def test_days_and_weeks() -> None:
    """Twice as many at noon as at other hours, none on the seventh day."""
    hours = [h for h in range(14 * 24) for _ in range(2 if h % 24 == 12 else 1) if (h // 24) % 7 != 6]
    arrivals = described(made(np.array([0.0, *hours, 14 * 24]) * HOUR_S, len(hours) + 2)).arrivals
    assert arrivals.span_s == 14 * DAY_S == 2 * WEEK_S
    assert arrivals.by_hour[12] == pytest.approx(2 * arrivals.by_hour[13])
    assert arrivals.by_weekday[6] == 0.0
    assert sum(arrivals.by_weekday) == pytest.approx(7.0)


def test_a_lognormal_is_found_and_planned_alike() -> None:
    found = described(made()).prompt
    assert found.lognormal.distance < 0.02
    again = lognormal_lengths(found.lognormal.mean_tokens, found.lognormal.p95_tokens)
    assert again.quantile(0.5) == pytest.approx(found.quantiles[0], rel=0.05)
    assert len(found.binned.tokens) <= 64
    assert found.binned.mean == pytest.approx(found.mean, rel=0.002)
    assert found.binned.maximum == found.most
    assert found.binned_distance < 0.02


def test_two_kinds_of_prompts_are_no_lognormal() -> None:
    found = described(Trace(np.array([100] * 500 + [2_000] * 500), np.full(1_000, 20))).prompt
    assert found.lognormal.distance > 0.2
    assert (found.binned.tokens, found.binned_distance) == ((100, 2_000), 0.0)


def test_reuse_counts_tokens_of_full_blocks() -> None:
    """The second prompt has 40 tokens, 32 of them in full blocks, 16 of them used before."""
    blocks = Blocks(16, np.array([1, 1, 2]), np.array([0, 1, 3]))
    found = described(Trace(np.array([20, 40]), np.array([1, 1]), blocks=blocks), cache_blocks=700).reuse
    assert (found.blocks, found.distinct_blocks) == (3, 2)
    assert [size.blocks for size in found.sizes] == [1, 2, 700]
    assert [size.prompt_share for size in found.sizes] == [16 / 60] * 3
    assert found.sizes[-1].block_share == found.sizes[-1].che_block_share == 1 / 3


def test_sessions_and_correlation() -> None:
    count = np.arange(1, 13)
    found = described(Trace(count * 10, count * 3, count * 5.0, np.repeat([0, 1, 2, -1], 3)))
    assert found.rank_correlation == pytest.approx(1.0)
    assert (found.sessions.sessions, found.sessions.requests_without, found.sessions.turns_mean) == (3, 3, 3.0)
    assert found.sessions.median_gap_s == 5.0
    assert described(Trace(count, count)).sessions is None


@pytest.mark.parametrize(
    "arrays",
    [
        (np.array([]), np.array([])),
        (np.array([1]), np.array([1, 2])),
        (np.array([1, 1]), np.array([1, 1]), np.array([2.0, 1.0])),
    ],
)
def test_what_no_trace_is(arrays: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(InvalidInputError):
        Trace(*arrays)


def test_one_request_alone() -> None:
    found = described(Trace(np.array([10]), np.array([1]), np.array([0.0])))
    assert found.arrivals.rate_per_s is None
    assert (found.arrivals.peaks, found.rank_correlation, found.prompt.lognormal) == ((), None, None)
