"""Sessions that are under way while a draw lasts: which of them have turns then, and when each turn is sent.

For a draw of W seconds, sessions that begin r a second, and gaps g between turns of a service time that is the same for all and an
exponential time to think:

    sessions that begin     r·W, at any time
    sessions that go on     those whose turn before was sent before the draw begins: r·E[turns - 1]·E[min(g, W)], the time until their
                            next turn having the density P(g > x), and that turn being any of the later turns of all sessions

so those that go on have more turns than others (the inspection paradox). Nothing before a draw is followed but the turn before of each
of these: a draw is no longer where users think longer.

How many go on is drawn from a Poisson distribution. How many begin is the mean, rounded at random, and sessions are taken evenly from
those of few turns to those of many, since what a draw is asked for is a rate: otherwise draws differ by half as much again.

Source: D. R. Cox, Renewal Theory (1962), chapter 5, on the time to the next event of a process that is in equilibrium.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel.columns import column
from solver.engine.kernel.compiled import entry
from solver.lengths import Lengths
from solver.replay.kept import kept
from solver.sessions import sampled_turns
from solver.workload import Sessions, Traffic

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]

POOL_TURNS, LEAST_POOL, POOL_SEED = 100_000, 256, 23
"""Turns, and sessions at least, of the sample that draws take sessions from."""
ROOM, MORE_ROOM = 1.2, 1.5
"""Of the turns that are expected, those that there is room for at first; and by what that grows where they are more."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionPool:
    """Sessions as they are sampled, those of few turns first. prompts, outputs: of their turns, those of one in a row. first, end: of each
    session, its turns; later: turns that are not the first of theirs; ends: of each turn, where those of its session end. turns_of_one,
    turns_seen: turns of a session, and of the session that a turn belongs to, on average; what contexts cut off is not among them."""

    prompts: Whole
    outputs: Whole
    first: Whole
    end: Whole
    later: Whole
    ends: Whole
    turns_of_one: float
    turns_seen: float


def pool_of(traffic: Traffic, sessions: Sessions) -> SessionPool:
    """The sessions that all draws of this traffic take theirs from, wherever their turns are sent."""
    alike = replace(
        sessions, think_s=0.0, system_prompts=1, documents=1, spread_over=1, routing="random", spread_is_stated=True
    )
    return _pool(alike, traffic.output, traffic.longest_tokens)


@kept
def _pool(sessions: Sessions, output: Lengths, longest_tokens: int | None) -> SessionPool:
    number = max(LEAST_POOL, int(POOL_TURNS / sessions.turns.mean))
    sampled = sampled_turns(sessions, output, number, np.random.default_rng(POOL_SEED), longest_tokens)
    counts = np.bincount(sampled.session, minlength=number)
    order = np.argsort(counts[sampled.session], kind="stable")
    prompts, outputs = sampled.prompts[order], sampled.outputs[order]
    first = np.flatnonzero(sampled.number[order] == 0)
    end = np.append(first[1:], len(order))
    turns, total = end - first, len(order)
    return SessionPool(
        prompts, outputs, first, end, np.flatnonzero(sampled.number[order] > 0), np.repeat(end, turns),
        total / len(first), float((turns * turns).sum()) / total,
    )  # fmt: skip


def within_s(service_s: float, think_s: float, seconds: float) -> float:
    """E[min(gap, seconds)] of a gap of a service time and an exponential one to think, of these means.

    >>> round(within_s(2.0, 30.0, 1.0), 3), round(within_s(2.0, 30.0, 32.0), 3), round(within_s(2.0, 30.0, 1e9), 3)
    (1.0, 20.964, 32.0)
    """
    if seconds <= service_s or think_s == 0.0:
        return min(service_s, seconds)
    return service_s + think_s * -math.expm1(-(seconds - service_s) / think_s)


def to_come_s(service_s: float, think_s: float, seconds: float, unit: Vector) -> Vector:
    """Times to the next turn, below ``seconds``, at quantiles ``unit`` of the density P(gap > x): see ``within_s``."""
    reached = unit * within_s(service_s, think_s, seconds)
    if think_s == 0.0:
        return reached
    thought = np.maximum(reached - service_s, 0.0) / think_s
    return np.where(reached < service_s, reached, service_s - think_s * np.log1p(-thought))


def spread_picks(size: int, count: int, rng: np.random.Generator) -> Whole:
    """``count`` of ``size`` things, in order: one of each of so many equal stretches.

    >>> spread_picks(6, 3, np.random.default_rng(1)).tolist()
    [1, 3, 4]
    """
    picks: Whole = ((np.arange(count) + rng.random(count)) * (size / max(count, 1))).astype(np.int64)
    return np.minimum(picks, size - 1)


@entry
def follow(
    first: Any, end: Any, begins_s: Any, then_s: Any, until_s: float, service_s: float, think_s: float, units: Any,
    sampled_prompts: Any, sampled_outputs: Any, session: Any, prompts: Any, outputs: Any, sent_s: Any, gaps_s: Any,
) -> int:  # fmt: skip
    """Put down the turns ``first`` to ``end`` of each session, the first of them sent at ``begins_s``, none after ``until_s``; how many.

    then_s: from the first of them to the next, where that is known, else below 0. units: exponential times of mean 1, of the turn of
    the same number here. gaps_s: since the turn before was sent, 0 for the first. -1 where there are more turns than room.
    """
    count = 0
    for one in range(len(first)):
        at, gap, known = begins_s[one], 0.0, then_s[one]
        for turn in range(first[one], end[one]):
            if at > until_s:
                break
            if count == len(session):
                return -1
            session[count] = one
            prompts[count] = sampled_prompts[turn]
            outputs[count] = sampled_outputs[turn]
            sent_s[count] = at
            gaps_s[count] = gap
            gap = known if known >= 0.0 else service_s + think_s * units[count]
            known = -1.0
            at += gap
            count += 1
    return count


@dataclass(frozen=True, slots=True, eq=False)
class UnderWay:
    """Turns of ``sessions`` sessions, those of one in a row. session: whose each is. sent_s, gaps_s: when each is sent, and how long
    after the one before it."""

    sessions: int
    session: Whole
    prompts: Whole
    outputs: Whole
    sent_s: Vector
    gaps_s: Vector


def under_way(
    pool: SessionPool,
    turns_per_s: float,
    service_s: float,
    think_s: float,
    from_s: float,
    until_s: float,
    rng: np.random.Generator,
) -> UnderWay:
    """The turns that are sent between two times, in steady state at a rate, and the turn before of each session that goes on.

    service_s: what every turn takes; think_s: mean time that users think.
    """
    window_s = until_s - from_s
    begun_per_s = turns_per_s / pool.turns_of_one
    go_on = int(rng.poisson(begun_per_s * (pool.turns_of_one - 1.0) * within_s(service_s, think_s, window_s)))
    begin = math.floor(begun_per_s * window_s + rng.random())
    following = pool.later[spread_picks(len(pool.later), go_on, rng)]
    new = spread_picks(len(pool.first), begin, rng)
    to_come = to_come_s(service_s, think_s, window_s, rng.random(go_on))
    # What is left of a gap known, the time before is what is left of its service time, and thinking, which has no memory.
    before = np.maximum(service_s - to_come, 0.0) + think_s * rng.standard_exponential(go_on)
    first = np.concatenate([following - 1, pool.first[new]])
    end = np.concatenate([pool.ends[following], pool.end[new]])
    begins_s = np.concatenate([from_s - before, from_s + window_s * rng.random(begin)])
    then_s = np.concatenate([before + to_come, np.full(begin, -1.0)])
    begun: list[Any] = [column(each) for each in (first, end, begins_s, then_s)]
    lengths: list[Any] = [column(pool.prompts), column(pool.outputs)]
    room = go_on + math.ceil(ROOM * turns_per_s * window_s) + 64
    while True:
        units = column(rng.standard_exponential(room))
        whole, times = np.empty((3, room), dtype=np.int64), np.empty((2, room))
        filled: list[Any] = [column(each) for each in (*whole, *times)]
        count = follow(*[*begun, until_s, service_s, think_s, units, *lengths, *filled])
        if count >= 0:
            break
        room = math.ceil(MORE_ROOM * room)
    return UnderWay(len(first), *(np.asarray(each)[:count] for each in filled))
