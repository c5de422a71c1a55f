"""The largest rate a replica sustains within its targets, as far as it is known: a bracket that simulation closes.

    sustained rate = the highest rung r of a fixed ladder such that the bisection of the ladder ends at r

The bisection visits the same rungs whatever is asked, in the same order, so the verdict at every rung it meets can only
turn from no to yes as a target is loosened, and the rate it ends at never falls: capacities are monotone in every target by
construction, whatever the noise of simulation is. Nothing but what a question turns on is simulated.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from solver.capacity.goal import Goal
from solver.capacity.runs import Runs, rung, rung_at_least

RUNGS = 8192
"""Below the highest rung: rates down to a 26,000th of it."""


JUST_BELOW = 1.0 - 1e-6


@dataclass(frozen=True, slots=True)
class Bracket:
    """A sustained rate lies in [holds, at_most], both in requests per second of one replica."""

    holds: float
    at_most: float

    @property
    def is_settled(self) -> bool:
        return self.at_most <= self.holds


@dataclass(frozen=True, slots=True)
class Look:
    """A way of seeing that a rate is too much. leaves_open: may a replica carry the rate, as far as this shows?

    first_stride, close: rungs by which looks go down at first, and to which they close in.
    """

    first_stride: int
    close: int
    leaves_open: Callable[[Runs, float, Goal], bool]


QUICK_LOOK = Look(96, 32, Runs.is_not_too_much)
"""To 4 per cent of where a short run fails clearly."""
ONE_DRAW = Look(24, 16, Runs.is_not_clearly_too_much)
"""To 2 per cent of where one draw of a long run fails clearly."""

Enough = Callable[[Bracket], bool]
"""Is a bracket narrow enough for what is asked?"""


def is_settled(bracket: Bracket) -> bool:
    return bracket.is_settled


def carries(requests_per_s: float) -> Enough:
    """Is it known whether a replica carries this rate?"""
    return lambda bracket: bracket.holds >= requests_per_s or bracket.at_most < requests_per_s


@dataclass(frozen=True, slots=True)
class CandidateReplica:
    """One replica under one goal. most, anchor: see ``sustained``."""

    runs: Runs
    goal: Goal
    most: float
    anchor: float

    def bracket(self, enough: Enough | None = None) -> Bracket:
        """What is known of the rate it sustains, after simulating until that is ``enough`` (None: nothing)."""
        return sustained(self.runs, self.goal, self.most, self.anchor, enough)

    def carrying(self, requests_per_s: float, known: Bracket, *, looked: bool) -> Bracket:
        """What is known of the rate it sustains once it is known whether that is this one, or more, and no more than that.

        What a short look at the next rung makes clear is believed at once: none below it carries the rate, since a sustained
        rate is a rung. Short looks then say about how much is too much, unless they did before (``looked``). What is near its
        limits is decided where capacities are: whoever turns on how much more or less it carries asks again.
        """
        above = rung(rung_at_least(requests_per_s))
        clear = self.runs.clearly_holds(above, self.goal) if above <= known.at_most else None
        if clear:
            return Bracket(above, known.at_most)
        if clear is False and not looked:
            return Bracket(known.holds, min(requests_per_s * JUST_BELOW, self.too_much(requests_per_s)))
        return self.bracket(carries(requests_per_s))

    def too_much(self, requests_per_s: float, look: Look = QUICK_LOOK) -> float:
        """A rate from which on looks fail clearly, found from here downwards; above it where this one does not fail.

        Infinite where this rate does not fail clearly.
        """
        fails = rung_at_least(requests_per_s)
        if look.leaves_open(self.runs, rung(fails), self.goal):
            return math.inf
        lowest, passes, stride = fails - RUNGS, fails, look.first_stride
        while passes > lowest:
            passes -= stride
            if look.leaves_open(self.runs, rung(passes), self.goal):
                break
            fails, stride = passes, stride * 2
        else:
            return 0.0
        while fails - passes > look.close:
            middle = (fails + passes) // 2
            if look.leaves_open(self.runs, rung(middle), self.goal):
                passes = middle
            else:
                fails = middle
        return rung(fails) * (1.0 - 1e-6)


def sustained(runs: Runs, goal: Goal, most: float, anchor: float, enough: Enough | None = None) -> Bracket:
    """What is known of the sustained rate after simulating until it is ``enough``; None: simulate nothing.

    most: no replica sustains more under this goal (screening). anchor: the highest rung is the first above it; it must not
    depend on the goal.
    """
    if most <= 0.0 or anchor <= 0.0:
        return Bracket(0.0, 0.0)
    high = rung_at_least(anchor) + 1
    low = lowest = high - RUNGS
    idle = runs.holds_idle(rung(low), goal, simulate=enough is not None)
    if idle is None:
        return Bracket(0.0, min(most, rung(high - 1)))
    if not idle:
        return Bracket(0.0, 0.0)
    while True:
        bracket = Bracket(rung(low) if low > lowest else 0.0, min(most, rung(high - 1)))
        if high - low == 1:
            return Bracket(bracket.holds, bracket.holds)
        middle = (low + high) // 2
        rate = rung(middle)
        if rate > most:
            high = middle
            continue
        if enough is not None and enough(bracket):
            return bracket
        verdict = runs.holds(rate, goal, simulate=enough is not None)
        if verdict is None:
            return bracket
        if verdict:
            low = middle
        else:
            high = middle
