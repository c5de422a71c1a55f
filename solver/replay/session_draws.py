"""Draws of sessions: which turns one replica is sent, when, and what its cache holds before the first of them.

A draw begins in the middle of things: sessions that began before it go on in it, and the cache holds what those and earlier
ones left, so that neither its rate nor its hits need to settle.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.engine.replayable import SessionTurns
from solver.errors import InvalidInputError
from solver.sessions import TurnLengths, Whole, renumbered, sampled_turns
from solver.workload import Sessions, Traffic

Vector = NDArray[np.float64]

MOST_DRAWN_TURNS = 1_200_000
"""Turns of all sessions that a draw looks at, those before it and elsewhere included: bounds its time and memory."""
UNLIKELY = 3.0
"""Standard deviations by which fewer turns than the mean hardly ever come: a draw looks at so much more time."""
LENGTHENED, TRIES = 1.25, 12
"""Factor on that time where they did, and how often."""
FILLED = 1.2
"""Times over that what comes before a draw fills the cache, taking every turn to leave what its user and its reply add."""
SETTLED_TURNS = 3.0
"""Times that a turn takes until routers see as many in progress as in the long run."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionDraw:
    """Turns as ``solver.engine.simulate.simulate_sessions`` takes them. arrivals_s: of each session's first turn in the draw."""

    prompts: Whole
    outputs: Whole
    turns: SessionTurns
    arrivals_s: Vector


def open_draw(
    traffic: Traffic,
    requests_per_s: float,
    service_s: float,
    count: int,
    seed: int,
    *,
    block_tokens: int,
    cache_tokens: float,
) -> SessionDraw:
    """``count`` turns that come to one replica at a rate, in steady state.

    Sessions begin at random times, as many a second as give the rate. service_s: what a turn takes from its sending to its
    last token, as far as is known: it says where sessions stand that are under way as the draw begins. cache_tokens: how far
    back the draw looks for what the cache may still hold. Raises InvalidInputError for sessions that are too many to draw.
    """
    from solver.replay.routing import routed_here  # imports numba, which listing devices need not wait for
    from solver.replay.under_way import pool_of, under_way

    sessions = sessions_of(traffic)
    pool = pool_of(traffic, sessions)
    whole_rate = requests_per_s * sessions.spread_over
    filled_s = FILLED * cache_tokens / (sessions.user.mean + traffic.output.mean) / requests_per_s
    before_s = filled_s + SETTLED_TURNS * service_s
    after_s = count / requests_per_s
    # Turns come in clusters, those of one session: their number varies by as many times more.
    together = min(pool.turns_seen, 1.0 + after_s / max(sessions.think_s + service_s, 1e-9))
    after_s *= 1.0 + UNLIKELY * math.sqrt(together / count)
    for _ in range(TRIES):
        if whole_rate * (before_s + after_s) > MOST_DRAWN_TURNS:
            break
        rng = np.random.default_rng(seed)
        found = under_way(pool, whole_rate, service_s, sessions.think_s, -before_s, after_s, rng)
        at_s = found.sent_s
        openings = _openings(sessions, found.sessions, rng)
        here = routed_here(sessions, found, at_s, service_s, openings, rng)
        due = np.flatnonzero(here & (at_s >= 0.0))
        if len(due) >= count:
            chosen = _earliest(due, at_s, count)
            earlier = np.flatnonzero(here & (at_s < 0.0))
            return _as_draw(sessions, found, at_s, found.gaps_s, chosen, earlier, openings, block_tokens, service_s)
        after_s *= LENGTHENED
    raise InvalidInputError(
        f"{count} turns of sessions, spread over {sessions.spread_over} replicas, are too many to draw"
    )


def _earliest(due: Whole, at_s: Vector, count: int) -> Whole:
    """The first ``count`` of the turns ``due`` by when they are sent, by number."""
    sent_s = at_s[due]
    last_s = np.partition(sent_s, count - 1)[count - 1]
    before = sent_s < last_s
    also = np.flatnonzero(sent_s == last_s)[: count - int(before.sum())]  # of those sent at once, the first
    before[also] = True
    return np.asarray(due[before])


def closed_draw(traffic: Traffic, count: int, seed: int, *, block_tokens: int) -> SessionDraw:
    """``count`` turns of sessions that clients go through one after the other, with nothing in the cache at first."""
    sessions = sessions_of(traffic)
    if sessions.spread_over > 1:
        raise InvalidInputError("clients of a closed load send all turns of their sessions to one replica")
    rng = np.random.default_rng(seed)
    number = math.ceil(count / sessions.turns.mean * LENGTHENED) + 2
    while True:
        turns = sampled_turns(sessions, traffic.output, number, rng, traffic.longest_tokens)
        if len(turns.number) >= count:
            break
        number *= 2
    think_s = rng.exponential(1.0, len(turns.number)) * sessions.think_s
    openings = _openings(sessions, number, rng)
    chosen, none = np.arange(count), np.arange(0)
    return _as_draw(sessions, turns, np.zeros(len(think_s)), think_s, chosen, none, openings, block_tokens, 0.0)


def sessions_of(traffic: Traffic) -> Sessions:
    if traffic.sessions is None:
        raise InvalidInputError("requests that belong to no sessions are not drawn as turns of them")
    return traffic.sessions


def _openings(sessions: Sessions, number: int, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """The system prompt and the document of each session."""
    return rng.integers(sessions.system_prompts, size=number), rng.integers(sessions.documents, size=number)


def _as_draw(
    sessions: Sessions,
    turns: TurnLengths,
    at_s: Vector,
    gaps_s: Vector,
    chosen: Whole,
    earlier: Whole,
    openings: tuple[Whole, Whole],
    block_tokens: int,
    service_s: float,
) -> SessionDraw:
    """The turns ``chosen`` as requests, and the blocks of the turns ``earlier`` as what the cache holds."""
    named, numbers = renumbered(np.concatenate([turns.session[chosen], turns.session[earlier]]), len(openings[0]))
    mine, theirs = numbers[: len(chosen)], numbers[len(chosen) :]
    system, document = openings[0][named], openings[1][named]
    systems, of_system = renumbered(system, sessions.system_prompts)
    pairs, of_pair = renumbered(of_system * np.int64(sessions.documents) + document, len(systems) * sessions.documents)
    # Chains: of sessions, then of documents after their system prompt, then of system prompts.
    count, many, few = len(named), len(pairs), len(systems)
    system_blocks = sessions.system_tokens // block_tokens
    opening_blocks = sessions.opening_tokens // block_tokens
    parent = np.concatenate([count + of_pair, count + many + pairs // sessions.documents, np.full(few, -1)])
    blocks = np.zeros(count + many + few, dtype=np.int64)
    blocks[count : count + many] = opening_blocks - system_blocks
    blocks[count + many :] = system_blocks
    held_chains, held_blocks = _held(
        turns, at_s[earlier] + service_s, earlier, theirs, parent, blocks, opening_blocks, block_tokens
    )
    later = np.zeros(len(chosen), dtype=np.int64)
    later[:-1] = mine[1:] == mine[:-1]
    firsts = np.flatnonzero(np.concatenate([[True], mine[1:] != mine[:-1]]))
    order = firsts[np.argsort(at_s[chosen[firsts]], kind="stable")]
    # What passes between two turns that come here, those in between that went elsewhere and their replies included.
    run = np.cumsum(gaps_s)[chosen]
    think_s = np.concatenate([[0.0], np.diff(run)]) - service_s
    think_s[firsts] = 0.0
    prompts, outputs = turns.prompts[chosen], turns.outputs[chosen]
    return SessionDraw(
        prompts,
        outputs,
        SessionTurns(
            think_s=np.maximum(think_s, 0.0),
            later=later,
            aside_tokens=np.full(len(chosen), opening_blocks * block_tokens, dtype=np.int64),
            kept_tokens=prompts + outputs - 1,
            chain=mine.astype(np.int64),
            starts=order.astype(np.int64),
            parent=parent.astype(np.int64),
            blocks=blocks,
            held_chains=held_chains,
            held_blocks=held_blocks,
        ),
        at_s[chosen[order]],
    )


def _held(
    turns: TurnLengths,
    ends_s: Vector,
    earlier: Whole,
    chain: Whole,
    parent: Whole,
    blocks: Whole,
    opening_blocks: int,
    block_tokens: int,
) -> tuple[Whole, Whole]:
    """Chains that earlier turns left, the least recently used first, and how many blocks of each."""
    last_s = np.full(len(parent), -np.inf)
    resident = blocks.copy()
    np.maximum.at(last_s, chain, ends_s)
    kept = (turns.prompts[earlier] + turns.outputs[earlier] - 1) // block_tokens - opening_blocks
    np.maximum.at(resident, chain, np.maximum(kept, 0))
    level = np.zeros(len(parent), dtype=np.int64)
    goes_on = np.flatnonzero(parent >= 0)
    for _ in range(2):  # a chain that others go on from is used as late as the last of them, and given back after it
        np.maximum.at(last_s, parent[goes_on], last_s[goes_on])
        level[parent[goes_on]] = np.maximum(level[parent[goes_on]], level[goes_on] + 1)
    left = np.flatnonzero((last_s > -np.inf) & (resident > 0))
    order = left[np.lexsort((level[left], last_s[left]))]  # of equals the first one first
    return order.astype(np.int64), resident[order]
