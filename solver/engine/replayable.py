"""Which requests a simulation accepts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidInputError

Whole = NDArray[np.int64]

MOST_REQUESTS = 200_000
"""Requests one simulation accepts: keeps its time bounded (a few seconds where the kernel is not compiled)."""
MOST_TOKENS = 1 << 40
"""Output tokens one simulation accepts in all: steps are counted in as many bits."""


class SchedulerLimits(Protocol):
    """What of a schedule decides whether a request can ever run."""

    @property
    def max_batched_tokens(self) -> int: ...
    @property
    def max_sequences(self) -> int: ...
    @property
    def query_tokens(self) -> int: ...
    @property
    def kv_cache_tokens(self) -> float: ...
    @property
    def block_slack_tokens(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Tokens of each prompt that are cached when it comes, and what the prefixes they belong to hold, each once."""

    cached_tokens: Sequence[int] | Whole
    held_tokens: int
    aside_tokens: Sequence[int] | Whole | None = None
    """Of each prompt, those that are among the ones held once; None: all that are cached."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionTurns:
    """Requests that are turns of sessions, those of a session in a row, and the chains of blocks that they go through.

    By request: think_s, seconds after the end of the turn before it; later, 1 where the next request is the next turn;
    aside_tokens, those of the prompt in chains that other sessions share; kept_tokens, of prompt and reply, those that the
    next turn begins with; chain, that of its session. starts: first turns, in the order in which their sessions begin.

    By chain: parent, the one it goes on from (-1: none), and blocks, how many it has, of those shared. held_chains,
    held_blocks: what the cache holds before the run, the least recently used first.
    """

    think_s: NDArray[np.float64]
    later: Whole
    aside_tokens: Whole
    kept_tokens: Whole
    chain: Whole
    starts: Whole
    parent: Whole
    blocks: Whole
    held_chains: Whole
    held_blocks: Whole


def one_prefix(prompts: Sequence[int] | Whole, fraction: float) -> Prefixes:
    """A share of every prompt, of one prefix that the longest has in full.

    >>> shared = one_prefix([100, 40], 0.5)
    >>> shared.cached_tokens.tolist(), shared.held_tokens
    ([50, 20], 50)
    """
    cached = (np.asarray(prompts, dtype=np.int64) * fraction).astype(np.int64)
    return Prefixes(cached, int(cached.max(initial=0)))


def check_replayable(
    schedule: SchedulerLimits,
    prompts: Whole,
    outputs: Whole,
    concurrency: int,
    arrivals_s: NDArray[np.float64] | None,
    prefixes: Prefixes,
) -> None:
    """Refuse what cannot be replayed. Raises InvalidInputError."""
    longest = longest_tokens(prompts, outputs, prefixes)
    if (arrivals_s is None) == (concurrency < 1):
        raise InvalidInputError("give either a concurrency of at least 1 or arrival times")
    if arrivals_s is not None and len(arrivals_s) != len(prompts):
        raise InvalidInputError("one arrival time for each request")
    check_fitting(schedule, longest)


def longest_tokens(prompts: Whole, outputs: Whole, prefixes: Prefixes) -> int:
    """Cache that the longest request needs. Raises InvalidInputError for requests that no engine replays."""
    if not len(prompts) or len(prompts) != len(outputs):
        raise InvalidInputError("a simulation needs at least one request, with one output length for each prompt")
    if len(prompts) > MOST_REQUESTS:
        raise InvalidInputError(f"{len(prompts)} requests are more than the {MOST_REQUESTS} one simulation accepts")
    if prompts.min() < 1 or outputs.min() < 1:
        raise InvalidInputError("prompts and outputs have at least one token each")
    if int(outputs.sum()) > MOST_TOKENS:
        raise InvalidInputError(f"{int(outputs.sum())} output tokens are more than one simulation accepts")
    aside = prefixes.cached_tokens if prefixes.aside_tokens is None else prefixes.aside_tokens
    return prefixes.held_tokens + int((prompts - np.asarray(aside) + outputs).max())


def check_fitting(schedule: SchedulerLimits, longest: int) -> None:
    """Refuse requests of which the longest needs more cache than there is. Raises InvalidInputError."""
    if schedule.max_batched_tokens < 1 or schedule.max_sequences < 1:
        raise InvalidInputError("an engine works on at least one token of at least one sequence in a step")
    if longest + schedule.block_slack_tokens > schedule.kv_cache_tokens:
        raise InvalidInputError(
            f"a request of {longest} tokens does not fit the KV cache of {schedule.kv_cache_tokens:.0f} tokens"
        )


def check_tabulated(schedule: SchedulerLimits, count: int, decode_rows: int, head_rows: int) -> None:
    """Refuse more sequences than step times are tabulated for: the kernel reads tables unchecked.

    Raises InvalidInputError.
    """
    most = min(count, schedule.max_sequences)
    if most >= decode_rows or most * schedule.query_tokens >= head_rows:
        raise InvalidInputError(f"step times are not tabulated for {most} sequences")
