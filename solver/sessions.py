"""What follows from sessions: how long prompts are turn by turn, and what a cache that forgets nothing finds of them."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidInputError
from solver.lengths import Lengths
from solver.workload import Sessions, Traffic, within_context

Whole = NDArray[np.int64]

SAMPLED_TURNS, LEAST_SAMPLED, MOST_SAMPLED = 100_000, 64, 2_048
"""Turns, and sessions at least and at most, of the sample that says what prompts are like."""
PROMPT_LENGTHS = 64
SAMPLE_SEED = 11


class TurnLengths(Protocol):
    """Turns of sessions, those of one in a row: whose each is, and tokens of its prompt and its reply."""

    @property
    def session(self) -> Whole: ...
    @property
    def prompts(self) -> Whole: ...
    @property
    def outputs(self) -> Whole: ...


@dataclass(frozen=True, slots=True, eq=False)
class SampledTurns:
    """Turns of many sessions, those of one in a row. session, number: whose turn, and which of it (from 0).

    unsent_fraction: share of turns that a context is too short for.
    """

    session: Whole
    number: Whole
    prompts: Whole
    outputs: Whole
    unsent_fraction: float


def spread_lengths(lengths: Lengths, count: int, rng: np.random.Generator) -> Whole:
    """``count`` lengths that represent a distribution: its quantiles at even steps, shuffled.

    Less noisy than drawing at random, and reproducible.
    """
    at = (np.arange(count) + 0.5) / count
    ends = np.searchsorted(at, np.cumsum(lengths.shares) + 1e-12, side="right")
    ends[-1] = count
    return rng.permutation(
        np.repeat(np.maximum(1, np.asarray(lengths.tokens, dtype=np.int64)), np.diff(ends, prepend=0))
    )


def renumbered(numbers: Whole, most: int) -> tuple[Whole, Whole]:
    """Which of the numbers below ``most`` there are, in order, and for each of ``numbers`` which of those it is: as np.unique says, and
    without sorting where they are dense.

    >>> [found.tolist() for found in renumbered(np.array([7, 2, 7]), 9)]
    [[2, 7], [1, 0, 1]]
    """
    if most > 8 * len(numbers):
        kinds, where = np.unique(numbers, return_inverse=True)
        return kinds, where
    there = np.zeros(most, dtype=np.bool_)
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def sampled_turns(
    sessions: Sessions, output: Lengths, count: int, rng: np.random.Generator, longest_tokens: int | None
) -> SampledTurns:
    """Turns of ``count`` sessions. A session ends where its next turn would not fit into ``longest_tokens``, prompt and reply
    together; a first turn that does not is cut to it, as engines do.

    >>> from solver.lengths import fixed_lengths
    >>> two = Sessions(fixed_lengths(3), fixed_lengths(10), 0.0, system_tokens=100)
    >>> found = sampled_turns(two, fixed_lengths(5), 1, np.random.default_rng(1), 135)
    >>> found.prompts.tolist(), round(found.unsent_fraction, 2)
    ([110, 125], 0.33)
    """
    turns = spread_lengths(sessions.turns, count, rng)
    total = int(turns.sum())
    first = np.cumsum(turns) - turns
    session = np.repeat(np.arange(count), turns)
    number = np.arange(total) - np.repeat(first, turns)
    user, outputs = spread_lengths(sessions.user, total, rng), spread_lengths(output, total, rng)
    added = np.cumsum(user + outputs)
    before = np.where(first > 0, added[first - 1], 0)
    prompts = added - outputs + np.repeat(sessions.opening_tokens - before, turns)
    if longest_tokens is None:
        return SampledTurns(session, number, prompts, outputs, 0.0)
    prompts[first] = np.minimum(prompts[first], longest_tokens - 1)
    outputs[first] = np.minimum(outputs[first], longest_tokens - prompts[first])
    fits = prompts + outputs <= longest_tokens  # what does not fit is followed by longer turns only
    if fits.all():
        return SampledTurns(session, number, prompts, outputs, 0.0)
    return SampledTurns(session[fits], number[fits], prompts[fits], outputs[fits], 1.0 - float(fits.mean()))


def found_by_any_cache(sessions: Sessions, turns: SampledTurns) -> NDArray[np.float64]:
    """Tokens of every prompt that were computed before: the session so far, or what other sessions begin with too.

    No cache finds more, whatever its size and its blocks; a last token is always computed.
    """
    before = np.concatenate([[0], (turns.prompts + turns.outputs)[:-1]])
    # The last token of a reply is sampled and never computed.
    found = np.where(turns.number > 0, before - 1, sessions.opening_tokens)
    return np.minimum(found, turns.prompts - 1).astype(float)


@lru_cache(maxsize=256)
def session_traffic(sessions: Sessions, output: Lengths, longest_tokens: int | None = None) -> tuple[Traffic, float]:
    """Sessions as traffic, and the share of turns that ``longest_tokens`` (prompt and reply) leaves unsent.

    Raises InvalidInputError where not even the first turn fits.
    """
    if longest_tokens is not None and sessions.opening_tokens + sessions.user.tokens[0] >= longest_tokens:
        raise InvalidInputError(
            f"a first turn of at least {sessions.opening_tokens + sessions.user.tokens[0]:,} tokens leaves no room for a"
            f" reply in a context of {longest_tokens:,}"
        )
    count = max(LEAST_SAMPLED, min(MOST_SAMPLED, int(SAMPLED_TURNS / sessions.turns.mean)))
    rng = np.random.default_rng(SAMPLE_SEED)
    turns = sampled_turns(sessions, output, count, rng, longest_tokens)
    total = float(turns.prompts.sum())
    held_once = sessions.opening_tokens * len(turns.prompts) / total
    traffic = Traffic(
        condensed(turns.prompts),
        output if turns.unsent_fraction == 0.0 else condensed(turns.outputs),
        float(found_by_any_cache(sessions, turns).sum()) / total,
        int((turns.prompts + turns.outputs).max()),
        sessions,
        held_once_fraction=min(held_once, 1.0),
    )
    return traffic, turns.unsent_fraction


def condensed(values: Whole) -> Lengths:
    """At most PROMPT_LENGTHS lengths with the mean of ``values``: means of equally large groups, the longest one by itself.

    >>> condensed(np.array([3, 1, 2, 2])).tokens
    (1, 2, 3)
    """
    ordered = np.sort(values)
    kinds, counts = np.unique(ordered, return_counts=True)
    if len(kinds) > PROMPT_LENGTHS:
        groups = [*np.array_split(ordered[:-1], PROMPT_LENGTHS - 1), ordered[-1:]]
        means = np.array([max(1, round(float(group.mean()))) for group in groups])
        sizes = np.array([len(group) for group in groups])
        kinds, where = np.unique(means, return_inverse=True)
        counts = np.bincount(where, weights=sizes)
    shares = counts / float(counts.sum())
    return Lengths(tuple(int(k) for k in kinds), tuple(float(s) for s in shares))


def served_within(traffic: Traffic, context_tokens: int) -> tuple[Traffic, float]:
    """The requests as an engine with this context serves them, and the share that it cuts or that is never sent.

    Raises InvalidInputError for sessions of which not even the first turn fits.
    """
    if traffic.sessions is None:
        return within_context(traffic, context_tokens)
    if traffic.maximum <= context_tokens:
        return traffic, 0.0
    return session_traffic(traffic.sessions, traffic.output, context_tokens)


def hastened(traffic: Traffic, factor: float) -> Traffic:
    """Traffic whose users think ``1/factor`` times as long: what is dilated afterwards has all times longer, theirs too."""
    if traffic.sessions is None:
        return traffic
    return replace(traffic, sessions=replace(traffic.sessions, think_s=traffic.sessions.think_s / factor))
