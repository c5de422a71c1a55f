"""Among how many replicas a router spreads the turns of sessions, where that is for the plan to say.

The more replicas, the less each finds in its cache, so what a replica sustains falls with their number n. A problem whose
replicas find what they find among s of them has

    every plan of n ≤ s replicas sustained      and      no plan of n ≥ s cheaper than its bound

so s is raised until the plan has no more than s replicas, and lowered as long as that finds a better one. Plans of fewer
replicas than the least s solved for are bounded by the problem of s = 1, in which nothing is spread.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from solver.errors import NoPlanInTimeError
from solver.fleet.plan import gap_between
from solver.outcome import Outcome, Status
from solver.planning.placements import plan_entries
from solver.planning.types import PlanningInput
from solver.workload import Workload

if TYPE_CHECKING:
    from solver.recommend.recommend import SolvedRequest

MOST_SOLVES = 6
LEAST_TIME_FRACTION = 0.2
"""Of the time limit, that every problem has."""

Spread = tuple[int, ...]
"""By workload; of those whose spread is stated, or that have no sessions, nothing is read."""


def is_open(workload: Workload) -> bool:
    """Is among how many replicas its turns are spread left to the plan?"""
    sessions = workload.traffic.sessions
    return sessions is not None and not sessions.spread_is_stated


def spread_over(planning: PlanningInput, spread: Spread) -> PlanningInput:
    """The same request with turns spread over so many replicas."""
    workloads = []
    for workload, count in zip(planning.workloads, spread, strict=True):
        sessions = workload.traffic.sessions
        if sessions is not None and is_open(workload):
            sessions = replace(sessions, spread_over=count, spread_is_stated=True)
            turns = replace(workload.only, traffic=replace(workload.traffic, sessions=sessions))
            workload = replace(workload, classes=(turns,))
        workloads.append(workload)
    return replace(planning, workloads=tuple(workloads))


def copies_of(planning: PlanningInput, solved: "SolvedRequest") -> Spread:
    """Caches among which a plan spreads each workload: its replicas, times copies of attention in each; at least 1."""
    assert solved.result.plan is not None
    count = {workload.name: 0 for workload in planning.workloads}
    for entry in plan_entries(solved.planning, solved.assembly, solved.result.plan):
        count[entry.workload] += entry.replicas * entry.configuration.layout.data_parallel
    return tuple(max(1, count[workload.name]) if is_open(workload) else 1 for workload in planning.workloads)


@dataclass(slots=True)
class SpreadSearch:
    """Problems solved so far: none spread, and the best that is true."""

    planning: PlanningInput
    solve: Callable[[PlanningInput], "SolvedRequest"]
    began_s: float
    solves: int = 0

    def at(self, spread: Spread) -> "SolvedRequest":
        """The request with turns spread so; within what is left of its time."""
        self.solves += 1
        spent_s = self.planning.clock() - self.began_s
        limit_s = max(self.planning.time_limit_s - spent_s, LEAST_TIME_FRACTION * self.planning.time_limit_s)
        return self.solve(replace(spread_over(self.planning, spread), time_limit_s=limit_s))

    def found(self) -> "SolvedRequest":
        """A plan that is true of itself, with what is proven about it. Raises NoPlanInTimeError where only plans were found
        that have more replicas than they sustain the traffic with."""
        lowest: Spread = tuple(1 for _ in self.planning.workloads)
        loose = self.at(lowest)
        if loose.result.plan is None:
            return loose
        copies = copies_of(self.planning, loose)
        if _within(copies, lowest):
            return loose
        true, spread = self._raised(copies)
        low = lowest
        while self.solves < MOST_SOLVES:
            middle = tuple((a + b) // 2 for a, b in zip(low, spread, strict=True))
            if middle in (low, spread):
                break
            other = self.at(middle)
            if other.result.plan is not None and _within(copies_of(self.planning, other), middle):
                true, spread = _better(true, other), middle
            else:
                low = middle
        return true if true is loose else _bounded(true, loose)

    def _raised(self, copies: Spread) -> tuple["SolvedRequest", Spread]:
        """The first problem whose plan has no more replicas than it was solved for."""
        spread = copies
        while True:
            solved = self.at(spread)
            if solved.result.plan is None:
                return solved, spread
            copies = copies_of(self.planning, solved)
            if _within(copies, spread):
                return solved, spread
            if self.solves >= MOST_SOLVES:
                raise NoPlanInTimeError(self.planning.time_limit_s)
            # As much further as the last step fell short: each finds less than the one before.
            spread = tuple(max(c, c + (c - s)) for c, s in zip(copies, spread, strict=True))


def _within(copies: Spread, spread: Spread) -> bool:
    return all(c <= s for c, s in zip(copies, spread, strict=True))


def _better(one: "SolvedRequest", other: "SolvedRequest") -> "SolvedRequest":
    if one.result.plan is None or one.result.objective is None or other.result.objective is None:
        return other
    sign = -1.0 if one.planning.objective == "throughput" else 1.0
    return other if sign * other.result.objective <= sign * one.result.objective else one


def _bounded(true: "SolvedRequest", loose: "SolvedRequest") -> "SolvedRequest":
    """A true plan, proven as far as the problem without spreading goes. Raises NoPlanInTimeError where there is no plan."""
    result, bound = true.result, loose.result.bound
    if result.plan is None or result.objective is None or bound is None:
        raise NoPlanInTimeError(true.planning.time_limit_s)
    gap = gap_between(result.objective, bound)
    if gap <= true.planning.gap_fraction:
        return true
    return replace(
        true,
        result=replace(result, outcome=Outcome.FEASIBLE, status=Status.TIME_LIMIT, bound=bound, gap_fraction=gap),
    )


def solve_spread(planning: PlanningInput, solve: Callable[[PlanningInput], "SolvedRequest"]) -> "SolvedRequest":
    """A request in which some workload's turns are spread over as many replicas as the plan has. Raises as ``solve`` does, and
    NoPlanInTimeError."""
    return SpreadSearch(planning, solve, planning.clock()).found()
