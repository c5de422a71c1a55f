"""What a cache of prefixes finds of turns of sessions, without a simulation: Che's approximation, adapted to sessions.

A block is found again where fewer other blocks were used since its last use than the cache has besides it. Sessions that begin
as a Poisson process make the number of those a compound Poisson variable, whose moments follow from lengths and gaps between
turns; what passes by of one document is independent of what does of another (docs/mathematics.md, "Sessions").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidInputError
from solver.sessions import LEAST_SAMPLED, MOST_SAMPLED, sampled_turns
from solver.workload import Sessions, Traffic

Vector = NDArray[np.float64]

SAMPLED_TURNS, SAMPLE_SEED = 20_000, 17
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Uses:
    """Turns as one replica sees them, by turn: blocks of prompts that can be found, of the session beyond its opening.

    own: blocks that the session left there with its turn before, of those that this one begins with. gap_s: since that turn
    ended, infinite for a first one there. left: blocks that this turn leaves. until_s: from its end to the next one there.
    """

    own: Vector
    gap_s: Vector
    left: Vector
    until_s: Vector
    mean_prompt_tokens: float


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """Sessions whose last turn lies within a time, as sums over turns in the order of the time until the next one.

    By knot (seconds): sums over turns of weights of 1, of blocks and of their squares.
    """

    knots_s: Vector
    sums: NDArray[np.float64]

    def at(self, seconds: Vector) -> NDArray[np.float64]:
        """(3, n): such sessions, their blocks and the squares of these, per turn and second of traffic."""
        return np.stack([np.interp(seconds, self.knots_s, row) for row in self.sums])


def expected_hit_fraction(
    traffic: Traffic, requests_per_s: float, cache_tokens: float, block_tokens: int, service_s: float = 0.0
) -> float:
    """Share of the tokens of prompts that a replica finds in its cache, least recently used blocks going first.

    requests_per_s: turns sent to this replica. cache_tokens: of its cache, requests in progress included. service_s: that a
    turn takes until its last token. Routing: sticky, or over ``sessions.spread_over`` replicas at random or by load, which
    tells sessions apart no more.
    Raises InvalidInputError for traffic without sessions, routing by prefixes, a rate or a cache that is not above 0.

    Source: H. Che, Y. Tung, Z. Wang, Hierarchical web caching systems, IEEE JSAC 20 (2002), for independent uses.
    """
    sessions = traffic.sessions
    if sessions is None or not requests_per_s > 0.0 or not cache_tokens > 0.0 or block_tokens < 1:
        raise InvalidInputError("what a cache finds of sessions needs sessions, a rate, a cache and blocks")
    if sessions.spread_over > 1 and sessions.routing == "prefix_aware":
        raise InvalidInputError("what routing by prefixes keeps together is simulated, not approximated")
    reuse = reuse_of(uses_of(traffic, block_tokens), sessions, requests_per_s, block_tokens, service_s)
    return float(reuse.found_fraction(np.array([cache_tokens / block_tokens]))[0])


@dataclass(frozen=True, slots=True, eq=False)
class TurnReuse:
    """What turns would find again at a rate: by turn, blocks used of others since their own, their document and their system prompt were.

    own: blocks that the session left. prompt_blocks: of a prompt on average.
    """

    own: Vector
    since_own: Vector
    since_document: Vector
    since_system: Vector
    openings: "Openings"
    prompt_blocks: float

    def found_fraction(self, room_blocks: Vector) -> Vector:
        """Share of the blocks of prompts that caches of these sizes have."""
        parts = self.openings
        shared = parts.system_blocks + parts.document_blocks
        found = _mean_clipped(room_blocks - shared, self.since_own, self.own)
        if parts.document_blocks:
            whole = np.full(len(self.own), float(parts.document_blocks))
            found = found + _mean_clipped(room_blocks - parts.system_blocks, self.since_document, whole)
        if parts.system_blocks:
            found = found + _mean_clipped(
                room_blocks, self.since_system, np.full(len(self.own), float(parts.system_blocks))
            )
        return found / self.prompt_blocks


def _mean_clipped(room: Vector, used: Vector, most: Vector) -> Vector:
    """mean of clip(room − used, 0, most) over turns = mean of max(room − used, 0) − mean of max(room − used − most, 0), for every room.

    >>> _mean_clipped(np.array([1.0, 4.0, 9.0]), np.array([0.0, 3.0, np.inf]), np.array([2.0, 2.0, 0.0])).round(3).tolist()
    [0.333, 1.0, 1.333]
    """
    return _mean_beyond(room, used) - _mean_beyond(room, used + most)


def _mean_beyond(room: Vector, used: Vector) -> Vector:
    ordered = np.sort(used[np.isfinite(used)])
    below = np.searchsorted(ordered, room)
    return np.asarray((room * below - np.concatenate([[0.0], np.cumsum(ordered)])[below]) / len(used))


def reuse_of(uses: Uses, sessions: Sessions, requests_per_s: float, block_tokens: int, service_s: float) -> TurnReuse:
    """A draw of what passes by between uses, for turns sent to one replica at a rate: see ``expected_hit_fraction``."""
    passing = passing_of(uses, service_s, requests_per_s)
    openings = Openings.of(sessions, block_tokens)
    rng = np.random.default_rng(SAMPLE_SEED + 1)
    document_ago_s = np.minimum(uses.gap_s, _silent_s(passing, openings.pairs, rng, len(uses.own)))
    system_ago_s = document_ago_s
    if openings.documents > 1:
        others = 1.0 / (1.0 / openings.systems - 1.0 / openings.pairs)
        system_ago_s = np.minimum(document_ago_s, _silent_s(passing, others, rng, len(uses.own)))
    nothing = np.zeros(0)
    return TurnReuse(
        own=uses.own,
        since_own=_used_since(uses.gap_s, passing, openings, "none", rng),
        since_document=_used_since(document_ago_s, passing, openings, "pair", rng)
        if openings.document_blocks
        else nothing,
        since_system=_used_since(system_ago_s, passing, openings, "system", rng) if openings.system_blocks else nothing,
        openings=openings,
        prompt_blocks=uses.mean_prompt_tokens / block_tokens,
    )


def expected_tier_fractions(
    traffic: Traffic, requests_per_s: float, tier_tokens: Sequence[float], block_tokens: int, service_s: float = 0.0
) -> list[float]:
    """Share of the tokens of prompts that each tier of a cache adds to those before it: the device, host memory, a disk, say.

    What requests leave is written to all of them, and each forgets the least recently used block: so a larger one holds all that a
    smaller one does, and one that is no larger than those before it adds nothing. Raises as ``expected_hit_fraction`` does.
    """
    shares: list[float] = []
    reach = found = 0.0
    for tokens in tier_tokens:
        if tokens > reach:
            reach = tokens
            above = expected_hit_fraction(traffic, requests_per_s, reach, block_tokens, service_s)
            shares.append(max(above - found, 0.0))
            found = max(found, above)
        else:
            shares.append(0.0)
    return shares


@dataclass(frozen=True, slots=True)
class Openings:
    """Blocks of system prompts and of documents after them, and how many of each there are."""

    systems: int
    documents: int
    system_blocks: int
    document_blocks: int

    @classmethod
    def of(cls, sessions: Sessions, block_tokens: int) -> "Openings":
        first = sessions.system_tokens // block_tokens
        return cls(sessions.system_prompts, sessions.documents, first, sessions.opening_tokens // block_tokens - first)

    @property
    def pairs(self) -> int:
        return self.systems * self.documents


@lru_cache(maxsize=256)
def uses_of(traffic: Traffic, block_tokens: int, sampled: int = SAMPLED_TURNS) -> Uses:
    """A sample of so many turns, each sent to one of the replicas that sessions spread over."""
    sessions = traffic.sessions
    if sessions is None:
        raise InvalidInputError("requests that belong to no sessions are not turns of them")
    count = max(LEAST_SAMPLED, min(MOST_SAMPLED * 8, int(sampled / sessions.turns.mean)))
    rng = np.random.default_rng(SAMPLE_SEED)
    turns = sampled_turns(sessions, traffic.output, count, rng, traffic.longest_tokens)
    total = len(turns.number)
    think_s = rng.exponential(1.0, total) * sessions.think_s
    think_s[turns.number == 0] = 0.0
    clock = np.cumsum(think_s)
    where = turns.session * np.int64(sessions.spread_over) + rng.integers(sessions.spread_over, size=total)
    order = np.argsort(where, kind="stable")
    here, at_s = where[order], clock[order]
    again = np.concatenate([[False], here[1:] == here[:-1]])
    gap_s = np.where(again, at_s - np.concatenate([[0.0], at_s[:-1]]), np.inf)
    opening = sessions.opening_tokens // block_tokens
    kept = (turns.prompts + turns.outputs - 1)[order] // block_tokens - opening
    before = np.concatenate([[0], kept[:-1]])
    within = (turns.prompts[order] - 1) // block_tokens - opening
    return Uses(
        own=np.where(again, np.maximum(np.minimum(before, within), 0), 0).astype(float),
        gap_s=gap_s,
        left=np.maximum(kept, 0).astype(float),
        until_s=np.concatenate([gap_s[1:], [np.inf]]),
        mean_prompt_tokens=float(turns.prompts.mean()),
    )


def passing_of(uses: Uses, service_s: float, requests_per_s: float) -> Passing:
    """λ·E[w·(min(t, gap) + service)] for weights w of 1, blocks and their squares: a session passes by with the last of its
    turns within t, and those in progress all the time."""
    order = np.argsort(uses.until_s)
    until = uses.until_s[order]
    ends = np.isfinite(until)
    knots = np.concatenate([[0.0], until[ends]])
    last_s = max(float(knots[-1]), 1.0) * 1e6
    rows = []
    for power in (0, 1, 2):
        weights = uses.left[order] ** power
        ended = np.concatenate([[0.0], np.cumsum((weights * np.where(ends, until, 0.0))[ends])])
        going = weights.sum() - np.concatenate([[0.0], np.cumsum(weights[ends])])
        values = ended + going * knots
        values = np.append(values, ended[-1] + going[-1] * last_s) + service_s * weights.sum()
        rows.append(values * requests_per_s / len(until))
    return Passing(np.append(knots, last_s), np.stack(rows))


def _silent_s(passing: Passing, kinds: float, rng: np.random.Generator, count: int) -> Vector:
    """Since when no session of one of so many kinds has passed by: as many as pass by in all are kinds times an exponential."""
    return np.interp(rng.exponential(1.0, count) * kinds, passing.sums[0], passing.knots_s)


def _used_since(
    ago_s: Vector,
    passing: Passing,
    openings: Openings,
    unused: Literal["none", "pair", "system"],
    rng: np.random.Generator,
) -> Vector:
    """A draw, for each turn, of the blocks that were used since: of sessions and of openings other than the turn's own.

    unused: what is known not to have been used, the turn's document or system prompt. Every document is used by a Poisson
    number of sessions, independent of the others; sums of numbers that are not 0 have the right mean.
    """
    counted = np.where(np.isfinite(ago_s), ago_s, 0.0)
    passed, mean, square = passing.at(counted)
    per_pair = passed / openings.pairs
    used = -np.expm1(-per_pair)
    systems_used = -np.expm1(-per_pair * openings.documents)
    systems = rng.binomial(openings.systems - 1, systems_used)
    more = np.divide(openings.documents * used, systems_used, out=np.ones_like(used), where=systems_used > 0.0) - 1.0
    rest = openings.documents - 1
    documents = systems + (rng.binomial(systems * rest, np.clip(more / rest, 0.0, 1.0)) if rest else 0)
    if unused != "system" and rest:
        documents = documents + rng.binomial(rest, used)
    again = np.divide(per_pair, used, out=np.ones_like(used), where=used > 0.0) - 1.0
    sessions = documents + rng.poisson(documents * np.maximum(again, 0.0))
    if unused == "none":
        sessions = sessions + rng.poisson(per_pair)
    each = np.divide(mean, passed, out=np.zeros_like(mean), where=passed > 0.0)
    spread = np.divide(square, passed, out=np.zeros_like(mean), where=passed > 0.0) - each * each
    spread = np.maximum(spread, LEAST_VARIANCE)
    shape = sessions * each * each / spread
    blocks = np.where(
        shape > 0.0, rng.gamma(np.maximum(shape, LEAST_VARIANCE), spread / np.maximum(each, LEAST_VARIANCE)), 0.0
    )
    blocks = blocks + documents * openings.document_blocks + systems * openings.system_blocks
    return np.where(np.isfinite(ago_s), blocks, np.inf)
