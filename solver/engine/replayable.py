"""Which requests a simulation accepts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from solver.errors import InvalidInputError

MOST_REQUESTS = 200_000
"""Requests one simulation accepts: keeps its time bounded (a few seconds)."""


class CacheLimits(Protocol):
    """What of a schedule decides whether a request can ever run."""

    @property
    def kv_cache_tokens(self) -> float: ...
    @property
    def block_slack_tokens(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Tokens of each prompt that are cached when it comes, and what the prefixes they belong to hold, each once."""

    cached_tokens: Sequence[int]
    held_tokens: int


def one_prefix(prompts: Sequence[int], fraction: float) -> Prefixes:
    """A share of every prompt, of one prefix that the longest has in full.

    >>> one_prefix([100, 40], 0.5)
    Prefixes(cached_tokens=[50, 20], held_tokens=50)
    """
    cached = [int(p * fraction) for p in prompts]
    return Prefixes(cached, max(cached, default=0))


def check_replayable(
    schedule: CacheLimits,
    prompts: Sequence[int],
    outputs: Sequence[int],
    concurrency: int,
    arrivals_s: Sequence[float] | None,
    prefixes: Prefixes,
) -> None:
    """Refuse what cannot be replayed. Raises InvalidInputError."""
    if not prompts or len(prompts) != len(outputs):
        raise InvalidInputError("a simulation needs at least one request, with one output length for each prompt")
    if len(prompts) > MOST_REQUESTS:
        raise InvalidInputError(f"{len(prompts)} requests are more than the {MOST_REQUESTS} one simulation accepts")
    if min(prompts) < 1 or min(outputs) < 1:
        raise InvalidInputError("prompts and outputs have at least one token each")
    if (arrivals_s is None) == (concurrency < 1):
        raise InvalidInputError("give either a concurrency of at least 1 or arrival times")
    if arrivals_s is not None and len(arrivals_s) != len(prompts):
        raise InvalidInputError("one arrival time for each request")
    cached = prefixes.cached_tokens
    longest = prefixes.held_tokens + max(p - c + o for p, c, o in zip(prompts, cached, outputs, strict=True))
    if longest + schedule.block_slack_tokens > schedule.kv_cache_tokens:
        raise InvalidInputError(
            f"a request of {longest} tokens does not fit the KV cache of {schedule.kv_cache_tokens:.0f} tokens"
        )
