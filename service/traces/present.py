"""A read trace as it is answered, and the traffic that a plan takes from it."""

from service.traces.reading import RecordedTrace
from service.wire.traces import (
    ArrivalPeak,
    CacheSizeOut,
    LeftOutLines,
    LognormalFitted,
    TraceArrivals,
    TraceDescription,
    TraceLengths,
    TracePrefixes,
    TraceSessions,
)
from service.wire.traffic import MOST_THINK_S, MOST_TURNS, HistogramBin, HistogramLength, SessionsIn, TrafficIn
from solver.lengths import Lengths
from solver.traces.description import Arrivals, Description, LengthsFound, ReuseFound, described
from solver.traces.sessions import SessionsFound

SESSIONS_SAID = "sessions"


def describe(recorded: RecordedTrace, cache_tokens: int | None = None) -> TraceDescription:
    """cache_tokens: of the cache whose hits are the traffic's shared prefix; without one nothing is shared."""
    trace = recorded.trace
    blocks = None
    if cache_tokens is not None and trace.blocks is not None:
        blocks = cache_tokens // trace.blocks.tokens
    found = described(trace, blocks)
    longest = int((trace.prompt_tokens + trace.output_tokens).argmax())
    answer = TraceDescription(
        shape=recorded.shape.name,
        requests=found.requests,
        left_out=[
            LeftOutLines(reason=left.why, lines=left.lines, first_line=left.first_line) for left in recorded.left
        ],
        arrivals=None if found.arrivals is None else _arrivals(found.arrivals, recorded),
        prompt_tokens=_lengths(found.prompt),
        output_tokens=_lengths(found.output),
        length_rank_correlation=found.rank_correlation,
        longest_request_tokens=found.longest_request_tokens,
        longest_request_line=int(recorded.lines[longest]),
        sessions=None if found.sessions is None else _sessions(found.sessions),
        prefixes=None if found.reuse is None else _prefixes(found.reuse),
        traffic=_traffic(found),
        session_traffic=_session_traffic(found),
        fitted=[],
    )
    answer = answer.model_copy(update={"fitted": _of_sessions(found)})
    return with_cache(answer, cache_tokens)


def with_cache(described: TraceDescription, cache_tokens: int | None) -> TraceDescription:
    """The description with the traffic of a cache of this size: the largest size on its curve that is not above it."""
    found = _cache_at(described.prefixes, cache_tokens)
    traffic = described.traffic.model_copy(
        update={"shared_prefix_fraction": found.shared_prefix_fraction if found else 0.0}
    )
    said = [line for line in described.fitted if line.startswith(SESSIONS_SAID)]
    fitted = [*_fits(described), _about_prefixes(described.prefixes, cache_tokens, found), *said]
    return described.model_copy(update={"traffic": traffic, "fitted": fitted})


def _cache_at(prefixes: TracePrefixes | None, cache_tokens: int | None) -> CacheSizeOut | None:
    if prefixes is None or cache_tokens is None:
        return None
    return next((size for size in reversed(prefixes.cache_sizes) if size.tokens <= cache_tokens), None)


def _fits(found: TraceDescription) -> list[str]:
    said = []
    for what, lengths in (("prompts", found.prompt_tokens), ("replies", found.output_tokens)):
        fit = lengths.lognormal
        beside = f"; a lognormal would be {fit.distance:.3f} away" if fit else ""
        said.append(
            f"{what}: a histogram that is {lengths.histogram_distance:.3f} from the record (Kolmogorov){beside}"
        )
    arrivals = found.arrivals
    if arrivals is None or arrivals.requests_per_s is None:
        said.append("arrivals: not recorded; state requests_per_s")
    else:
        said.append(
            f"arrivals: the mean rate over {arrivals.span_s:,.0f} s, as Poisson arrivals; recorded times between arrivals vary"
            f" {_figure(arrivals.variation)} times their mean, Poisson's once"
            + "".join(
                f"; the busiest {p.window_s:g} s had {p.peak_to_mean:.2f} times the mean" for p in arrivals.peaks[-1:]
            )
        )
    if found.length_rank_correlation is not None:
        said.append(
            f"prompts and replies: taken as independent; the correlation of their ranks is {found.length_rank_correlation:.2f}"
        )
    return said


def _about_prefixes(prefixes: TracePrefixes | None, cache_tokens: int | None, found: CacheSizeOut | None) -> str:
    if prefixes is None:
        return "prefixes: no hashes of full blocks are recorded; none is taken as shared"
    if cache_tokens is None:
        all_of_it = prefixes.cache_sizes[-1]
        return (
            "prefixes: none is taken as shared, since no size of cache was stated; at most"
            f" {all_of_it.shared_prefix_fraction:.3f} of prompts can be found, with {all_of_it.tokens:,} tokens"
        )
    if found is None:
        return f"prefixes: {cache_tokens:,} tokens hold no block of {prefixes.block_tokens}; none is taken as shared"
    return (
        f"prefixes: {found.shared_prefix_fraction:.3f} of prompts are found by one cache of {found.tokens:,} tokens that forgets"
        " the least recently used block; each replica has its own, so more of them find less unless sessions stay"
    )


def _figure(value: float | None) -> str:
    return "an unknown number of" if value is None else f"{value:.2f}"


def _traffic(found: Description) -> TrafficIn:
    rate = found.arrivals.rate_per_s if found.arrivals else None
    return TrafficIn(
        requests_per_s=rate, prompt_tokens=_histogram(found.prompt.binned), output_tokens=_histogram(found.output.binned)
    )  # fmt: skip


def _of_sessions(found: Description) -> list[str]:
    """What ``session_traffic`` is made of."""
    chats = found.chats
    if chats is None or chats.gap_s is None:
        return []
    return [
        f"{SESSIONS_SAID} by {chats.linked_by}: {100 * chats.continued_fraction:.0f} % of the requests continue another, in"
        f" {chats.sessions:,} sessions of {chats.turns.mean:.1f} turns; {chats.opening_tokens:,} tokens of opening, as of"
        f" {chats.openings:,} equally common ones; {chats.gap_s:,.1f} s between arrivals of turns on average, of which replies"
        " are a part that the trace does not tell"
    ]


def _session_traffic(found: Description) -> TrafficIn | None:
    """Null where sessions are longer than a request may state too."""
    chats = found.chats
    if chats is None or chats.gap_s is None or chats.turns.maximum > MOST_TURNS or chats.gap_s > MOST_THINK_S:
        return None
    return TrafficIn(
        requests_per_s=found.arrivals.rate_per_s if found.arrivals else None,
        output_tokens=_histogram(found.output.binned),
        sessions=SessionsIn(
            turns=_histogram(chats.turns),
            user_tokens=_histogram(chats.user),
            think_time_s=chats.gap_s,
            system_prompt_tokens=chats.opening_tokens,
            system_prompts=chats.openings,
        ),
    )


def _histogram(binned: Lengths) -> HistogramLength:
    bins = zip(binned.tokens, binned.shares, strict=True)
    return HistogramLength(
        distribution="histogram", histogram=tuple(HistogramBin(tokens=tokens, share=share) for tokens, share in bins)
    )


def _arrivals(found: Arrivals, recorded: RecordedTrace) -> TraceArrivals:
    return TraceArrivals(
        span_s=found.span_s,
        requests_per_s=found.rate_per_s,
        variation=found.variation,
        peaks=[ArrivalPeak(window_s=window, peak_to_mean=peak) for window, peak in found.peaks],
        by_hour=None if found.by_hour is None else list(found.by_hour),
        by_weekday=None if found.by_weekday is None else list(found.by_weekday),
        longest_gap_s=found.gap_s,
        longest_gap_after_line=int(recorded.lines[found.gap_after]),
    )


def _lengths(found: LengthsFound) -> TraceLengths:
    p50, p90, p95, p99 = found.quantiles
    fit = found.lognormal
    return TraceLengths(
        mean=found.mean, least=found.least, p50=p50, p90=p90, p95=p95, p99=p99, most=found.most,
        lognormal=None if fit is None else LognormalFitted(mean=fit.mean_tokens, p95=fit.p95_tokens, distance=fit.distance),
        histogram_distance=found.binned_distance,
    )  # fmt: skip


def _sessions(found: SessionsFound) -> TraceSessions:
    return TraceSessions(
        sessions=found.sessions,
        requests_without=found.requests_without,
        turns_mean=found.turns_mean,
        turns_p95=found.turns_p95,
        turns_most=found.turns_most,
        median_gap_s=found.median_gap_s,
    )


def _prefixes(found: ReuseFound) -> TracePrefixes:
    return TracePrefixes(
        block_tokens=found.block_tokens,
        blocks=found.blocks,
        distinct_blocks=found.distinct_blocks,
        cache_sizes=[
            CacheSizeOut(
                tokens=size.blocks * found.block_tokens,
                block_hit_share=size.block_share,
                che_block_hit_share=size.che_block_share,
                shared_prefix_fraction=size.prompt_share,
            )
            for size in found.sizes
        ],
    )
