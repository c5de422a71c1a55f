"""Everything that is said of a trace, in one pass over its arrays."""

from dataclasses import dataclass

import numpy as np

from solver.lengths import Lengths
from solver.traces.arrivals import (
    DAY_S,
    HOUR_S,
    WEEK_S,
    WINDOWS_S,
    cyclic_shape,
    interarrival_variation,
    longest_gap_s,
    mean_rate_per_s,
    peak_to_mean,
)
from solver.traces.che import che_hits
from solver.traces.fitted_sessions import ChatsFitted, fitted_chats
from solver.traces.lengths import LognormalFit, binned_lengths, binning_distance, fitted_lognormal, rank_correlation
from solver.traces.reuse import Reuse, measured_reuse
from solver.traces.sessions import SessionsFound, described_sessions
from solver.traces.trace import Counts, Floats, Trace

SIZES_AN_OCTAVE = 4
"""Sizes of cache on the curve, for each doubling."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """peaks: windows in seconds, and most arrivals in one over the mean. by_hour, by_weekday: rate over the mean rate, from
    the trace's own zero. gap_after: place of the request before the longest time without one.
    """

    span_s: float
    rate_per_s: float | None
    variation: float | None
    peaks: tuple[tuple[float, float], ...]
    by_hour: tuple[float, ...] | None
    by_weekday: tuple[float, ...] | None
    gap_s: float
    gap_after: int


@dataclass(frozen=True, slots=True)
class LengthsFound:
    """quantiles: of 0.5, 0.9, 0.95 and 0.99. binned: what a plan takes; binned_distance: how far it is from the record."""

    mean: float
    least: int
    most: int
    quantiles: tuple[float, float, float, float]
    lognormal: LognormalFit | None
    binned: Lengths
    binned_distance: float


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Shares found by a cache of this size: of blocks, exactly and by Che; of all tokens of prompts."""

    blocks: int
    block_share: float
    che_block_share: float
    prompt_share: float


@dataclass(frozen=True, slots=True)
class ReuseFound:
    block_tokens: int
    blocks: int
    distinct_blocks: int
    sizes: tuple[CacheSize, ...]


@dataclass(frozen=True, slots=True)
class Description:
    requests: int
    prompt: LengthsFound
    output: LengthsFound
    longest_request_tokens: int
    rank_correlation: float | None
    arrivals: Arrivals | None
    sessions: SessionsFound | None
    reuse: ReuseFound | None
    chats: ChatsFitted | None = None


def described(trace: Trace, cache_blocks: int | None = None) -> Description:
    """cache_blocks: a size that the curve states exactly, besides its own."""
    return Description(
        requests=trace.requests,
        prompt=_lengths(trace.prompt_tokens),
        output=_lengths(trace.output_tokens),
        longest_request_tokens=int((trace.prompt_tokens + trace.output_tokens).max()),
        rank_correlation=rank_correlation(trace.prompt_tokens, trace.output_tokens),
        arrivals=None if trace.arrival_s is None else _arrivals(trace.arrival_s),
        sessions=described_sessions(trace),
        reuse=_reuse(trace, cache_blocks),
        chats=fitted_chats(trace),
    )


def _arrivals(arrival_s: Floats) -> Arrivals:
    gap_s, gap_after = longest_gap_s(arrival_s)
    peaks = ((window, peak_to_mean(arrival_s, window)) for window in WINDOWS_S)
    return Arrivals(
        span_s=float(arrival_s[-1] - arrival_s[0]),
        rate_per_s=mean_rate_per_s(arrival_s),
        variation=interarrival_variation(arrival_s),
        peaks=tuple((window, peak) for window, peak in peaks if peak is not None),
        by_hour=cyclic_shape(arrival_s, DAY_S, round(DAY_S / HOUR_S)),
        by_weekday=cyclic_shape(arrival_s, WEEK_S, round(WEEK_S / DAY_S)),
        gap_s=gap_s,
        gap_after=gap_after,
    )


def _lengths(tokens: Counts) -> LengthsFound:
    binned = binned_lengths(tokens)
    p50, p90, p95, p99 = (float(q) for q in np.quantile(tokens, (0.5, 0.9, 0.95, 0.99), method="inverted_cdf"))
    return LengthsFound(
        mean=float(tokens.mean()),
        least=int(tokens.min()),
        most=int(tokens.max()),
        quantiles=(p50, p90, p95, p99),
        lognormal=fitted_lognormal(tokens),
        binned=binned,
        binned_distance=binning_distance(tokens, binned),
    )


def _reuse(trace: Trace, cache_blocks: int | None) -> ReuseFound | None:
    if trace.blocks is None or len(trace.blocks.ids) == 0:
        return None
    reuse = measured_reuse(trace.blocks)
    uses = np.unique(trace.blocks.ids, return_counts=True)[1]
    prompt_tokens = float(trace.prompt_tokens.sum())
    sizes = set(curve_sizes(reuse.distinct_blocks)) | ({cache_blocks} if cache_blocks is not None else set())
    curve = tuple(_at(reuse, uses, size, prompt_tokens) for size in sorted(sizes))
    return ReuseFound(reuse.block_tokens, reuse.blocks, reuse.distinct_blocks, curve)


def _at(reuse: Reuse, uses: Counts, size: int, prompt_tokens: float) -> CacheSize:
    hits = reuse.hits(size)
    return CacheSize(
        size, hits / reuse.blocks, che_hits(uses, size) / reuse.blocks, hits * reuse.block_tokens / prompt_tokens
    )


def curve_sizes(distinct: int) -> list[int]:
    """Sizes up to one that forgets nothing, each a quarter of an octave above the one before.

    >>> curve_sizes(9)
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    steps = range(SIZES_AN_OCTAVE * distinct.bit_length())
    return sorted({min(distinct, round(2 ** (step / SIZES_AN_OCTAVE))) for step in steps} | {distinct})
