"""The largest rate a replica sustains within its targets, as far as it is known: a bracket that simulation closes.

    sustained rate = the highest rung r of a fixed ladder such that the bisection of the ladder ends at r

The bisection visits the same rungs whatever is asked, in the same order, so the verdict at every rung it meets can only
turn from no to yes as a target is loosened, and the rate it ends at never falls: capacities are monotone in every target by
construction, whatever the noise of simulation is. Nothing but what a question turns on is simulated.

Far below the end a long run would only repeat what a quick look says. So a rung that a quick look leaves within the goal is believed
to hold while the stretch above it is wide, until a rung at least FAR above is seen to hold in the long run, which then stands for it.
Where none is, it is decided by its own long run, and where that fails the bisection goes on as if it had failed at once. So the
rate it ends at has been seen to hold, and is another than without beliefs only where a rate fails that is FAR below one that holds: then
it is higher. A looser target believes what a tighter one does and sees hold what that sees, so it is monotone as before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from solver.capacity.goal import Goal
from solver.capacity.runs import InTime, Runs, always, rung, rung_at_least

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

    def narrowed(self, by: "Bracket") -> "Bracket":
        """What both say; what either has seen to hold holds."""
        holds = max(self.holds, by.holds)
        return Bracket(holds, max(holds, min(self.at_most, by.at_most)))


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

    def bracket(self, enough: Enough | None = None, in_time: InTime = always) -> Bracket:
        """What is known of the rate it sustains, after simulating until that is ``enough`` (None: nothing) or time is up."""
        return sustained(self.runs, self.goal, self.most, self.anchor, enough, in_time)

    def carrying(self, requests_per_s: float, known: Bracket, *, looked: bool, in_time: InTime = always) -> Bracket:
        """What is known of the rate it sustains once it is known whether that is this one, or more, and no more than that.

        What a short look at the next rung makes clear is believed at once: none below it carries the rate, since a sustained
        rate is a rung. Short looks then say about how much is too much, unless they did before (``looked``). What is near its
        limits is decided where capacities are: whoever turns on how much more or less it carries asks again. Where time is up it may
        not be known.
        """
        above = rung(rung_at_least(requests_per_s))
        clear = self.runs.clearly_holds(above, self.goal) if above <= known.at_most else None
        if clear:
            return Bracket(above, known.at_most)
        if clear is False and not looked:
            return Bracket(
                known.holds, min(requests_per_s * JUST_BELOW, self.too_much(requests_per_s, in_time=in_time))
            )
        return self.bracket(carries(requests_per_s), in_time)

    def too_much(self, requests_per_s: float, look: Look = QUICK_LOOK, in_time: InTime = always) -> float:
        """A rate from which on looks fail clearly, found from here downwards; above it where this one does not fail.

        Infinite where this rate does not fail clearly. Where time is up, the lowest seen to.
        """
        fails = rung_at_least(requests_per_s)
        if look.leaves_open(self.runs, rung(fails), self.goal):
            return math.inf
        lowest, likely, stride = fails - RUNGS, self._likely_to_pass(fails, look), look.first_stride
        passes, upwards = fails - stride, RUNGS
        if likely < passes:
            passes, stride, upwards = likely, look.close, 2 * look.close
        while not look.leaves_open(self.runs, rung(passes), self.goal):
            fails = passes
            if passes <= lowest:
                return 0.0
            if not in_time():
                return rung(fails) * JUST_BELOW
            stride *= 2
            passes -= stride
        while fails - passes > look.close and in_time():
            middle = min((fails + passes) // 2, passes + upwards)
            if look.leaves_open(self.runs, rung(middle), self.goal):
                passes, upwards = middle, 2 * upwards
            else:
                fails = middle
        return rung(fails) * JUST_BELOW

    def _likely_to_pass(self, fails: int, look: Look) -> int:
        """The rung of what is completed where this one fails because that is less; for turns of sessions a stride above it, since more of
        their prompts is found where fewer come. The rung itself where it fails otherwise."""
        completes = self.runs.completes(rung(fails))
        if not completes:
            return fails
        return rung_at_least(completes) + (look.first_stride if self.runs.traffic.sessions else 0)


FAR = 64
"""Rungs, 8 per cent: from a rate to one whose long run stands for its own, where both hold in a quick look. Which rate is the last to
hold is up to 5 per cent a matter of the draw (docs/decisions/0050)."""


@dataclass(slots=True)
class _Stretch:
    """Rungs between which a bisection has its end. believed: low ends before each rung that is believed to hold; the last of those
    rungs is ``low``."""

    low: int
    high: int
    believed: list[int] = field(default_factory=list)

    @property
    def sure(self) -> int:
        """The highest rung that is more than believed to hold."""
        return self.believed[0] if self.believed else self.low

    def next(self) -> int:
        """The rung to be looked at: in the middle, or the low end where nothing above it is far enough to stand for it."""
        return self.low if self.believed and self.high - self.low <= FAR else (self.low + self.high) // 2

    def believe(self, at: int) -> None:
        self.believed.append(self.low)
        self.low = at

    def holds(self, at: int) -> None:
        self.believed.clear()
        self.low = at

    def fails(self, at: int) -> None:
        if at == self.low:
            self.low = self.believed.pop()
        self.high = at


def sustained(
    runs: Runs, goal: Goal, most: float, anchor: float, enough: Enough | None = None, in_time: InTime = always
) -> Bracket:
    """What is known of the sustained rate after simulating until it is ``enough``, or time is up; None: simulate nothing.

    most: no replica sustains more under this goal (screening). anchor: the highest rung is the first above it; it must not
    depend on the goal.
    """
    if most <= 0.0 or anchor <= 0.0:
        return Bracket(0.0, 0.0)
    high, simulate = rung_at_least(anchor) + 1, enough is not None and in_time()
    lowest = high - RUNGS
    idle = runs.holds_idle(rung(lowest), goal, simulate=simulate)
    if idle is None:
        return Bracket(0.0, min(most, rung(high - 1)))
    if not idle:
        return Bracket(0.0, 0.0)
    left = _Stretch(lowest, high)
    while True:
        simulate = simulate and in_time()
        bracket = Bracket(rung(left.sure) if left.sure > lowest else 0.0, min(most, rung(left.high - 1)))
        if left.high - left.low == 1:
            return Bracket(bracket.holds, bracket.holds)
        at = left.next()
        if rung(at) > most:
            left.high = at
            continue
        if enough is not None and enough(bracket):
            return bracket
        surer = replace(bracket, holds=rung(left.low))
        # Where it fails nothing follows yet: a rung above may still stand for it, and the end must not depend on what is asked.
        stands = enough is not None and left.believed and enough(surer)
        if stands and runs.holds(rung(left.low), goal, simulate=simulate, in_time=in_time):
            return surer
        if at - left.low >= 2 * FAR and runs.is_likely_to_hold(rung(at), goal, simulate=simulate):
            left.believe(at)
            continue
        verdict = runs.holds(rung(at), goal, simulate=simulate, in_time=in_time)
        if verdict is None:
            return bracket
        (left.holds if verdict else left.fails)(at)
