"""POST /v1/traces: recorded requests, what they say, and the traffic to plan for."""

from typing import Annotated

from pydantic import Field

from service.wire.quantities import Answer, Instant, Request, TokenCount
from service.wire.traffic import TrafficIn


class TraceIn(Request):
    """A file of recorded requests, one a line."""

    payload: Annotated[str, Field(min_length=1)]
    """The file as text: JSONL, or CSV with a heading."""
    block_tokens: TokenCount | None = None
    """Tokens of a prompt that one of its `hash_ids` stands for; 512 in Mooncake's shape, stated for all others."""


class LeftOutLines(Answer):
    reason: str
    """Why the lines are no requests to plan for."""
    lines: int
    """How many they are."""
    first_line: int
    """The first of them, counted from 1."""


class ArrivalPeak(Answer):
    window_s: float
    """How long a window is, s."""
    peak_to_mean: float
    """Most arrivals of one window over the mean of all."""


class TraceArrivals(Answer):
    """How the requests arrive. Plans take Poisson arrivals, whose `variation` is 1, at a steady rate."""

    span_s: float
    """From the first arrival to the last, s."""
    requests_per_s: float | None
    """The mean rate; null where no time passes."""
    variation: float | None
    """Coefficient of variation of the times between arrivals: 1 for Poisson, above it for bursts."""
    peaks: list[ArrivalPeak]
    """Of windows of 1 s to 1 h, as far as ten of them fit."""
    by_hour: list[float] | None
    """Rate in each hour of a day over the mean rate, by the trace's own clock; null below a day."""
    by_weekday: list[float] | None
    """Rate on each day of a week over the mean rate, by the trace's own clock; null below a week."""
    longest_gap_s: float
    """The longest time without an arrival, s."""
    longest_gap_after_line: int
    """The line of the request before it."""


class LognormalFitted(Answer):
    """The lognormal of greatest likelihood, as `mean` and `p95` of a request state it."""

    mean: float
    """Tokens."""
    p95: float
    """Tokens."""
    distance: float
    """Largest difference between its cumulative share and the recorded one (Kolmogorov): 0 is perfect, 1 nothing in common."""


class TraceLengths(Answer):
    """Token counts of prompts or replies."""

    mean: float
    """Tokens."""
    least: int
    """Tokens."""
    p50: float
    """Tokens."""
    p90: float
    """Tokens."""
    p95: float
    """Tokens."""
    p99: float
    """Tokens."""
    most: int
    """Tokens."""
    lognormal: LognormalFitted | None
    """Null where all are alike, and where they spread wider than a mean and a 95th percentile can state."""
    histogram_distance: float
    """The same distance of the histogram in `traffic`."""


class TraceSessions(Answer):
    sessions: int
    """How many."""
    requests_without: int
    """Requests that name no session."""
    turns_mean: float
    """Requests of a session, mean."""
    turns_p95: float
    """Requests of a session, 95th percentile."""
    turns_most: int
    """Requests of the longest session."""
    median_gap_s: float | None
    """Between arrivals of one session's turns, median, s; null where arrivals are not recorded or no session has two."""


class CacheSizeOut(Answer):
    """What a cache of this size finds."""

    tokens: int
    """Tokens of context that it holds."""
    block_hit_share: float
    """Share of full blocks of prompts that are found: exact for a cache that forgets the least recently used block."""
    che_block_hit_share: float
    """The same by Che's approximation, which takes uses of a block as independent of each other."""
    shared_prefix_fraction: float
    """Tokens found over all tokens of prompts: what a request to plan states under this name."""


class TracePrefixes(Answer):
    """Prefixes that prompts share, by the hashes of their blocks."""

    block_tokens: int
    """Tokens of a block."""
    blocks: int
    """Full blocks of all prompts."""
    distinct_blocks: int
    """Different ones: a cache of so many forgets nothing."""
    cache_sizes: list[CacheSizeOut]
    """By size; the last one finds all that can be found."""


class TraceDescription(Answer):
    """What a trace says."""

    shape: str
    """Whose fields it has: `mooncake`, `burstgpt`, `chats` or `lengths`."""
    requests: int
    """Requests described."""
    left_out: list[LeftOutLines]
    """Lines with a prompt or a reply of no tokens."""
    arrivals: TraceArrivals | None
    """Null where arrivals are not recorded."""
    prompt_tokens: TraceLengths
    """Of prompts."""
    output_tokens: TraceLengths
    """Of replies."""
    length_rank_correlation: float | None
    """Spearman's, of prompts and replies, -1 to 1; plans take them as independent. Null where either is the same for all."""
    longest_request_tokens: int
    """Prompt and reply of the longest request, tokens."""
    longest_request_line: int
    """Its line."""
    sessions: TraceSessions | None
    """Null where no session is recorded."""
    prefixes: TracePrefixes | None
    """Null where no prompt has a full block with a hash."""
    traffic: TrafficIn
    """To plan for: what was recorded, in the fields of a request. No prefix is shared unless a size of cache is asked for."""
    session_traffic: TrafficIn | None = None
    """To plan for instead, as turns of sessions whose hits follow from each replica's cache; null where no prompt continues
    another, or where arrivals are not recorded."""
    fitted: list[str]
    """What `traffic` is made of, how well that fits, and what of the trace is not in it."""


class TraceOut(TraceDescription):
    """A stored trace."""

    id: str
    """`trace_` and the SHA-256 of what was sent."""
    recorded_at: Instant
    """When it was stored."""
