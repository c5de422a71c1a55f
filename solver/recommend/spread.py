"""Among how many replicas a router spreads the turns of sessions, where that is for the plan to say.

The more replicas, the less each finds in its cache. Let c_n be what a replica of n is simulated to sustain; a router that evens load
out may let slow replicas sustain more where there are more of them. Nothing is planned that rests on that: replicas count for no more
than they were found to sustain where there are fewer, so that what counts falls with n, and the best plan over all n is found and
proven by branch and bound (``boxes``).

Routing by prefixes gives each replica the fewer openings the more replicas there are, and what replicas find of many openings rises.
There a plan is true where its replicas hold at its own number, and is bounded by what screening leaves at any number (decision 0055).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from solver.errors import NoPlanInTimeError
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.outcome import Outcome, Status
from solver.planning.assemble import with_most_copies
from solver.planning.placements import plan_entries
from solver.planning.types import PlanningInput
from solver.recommend.boxes import CountBox, Counts, Solved, best_of_boxes
from solver.workload import Workload

if TYPE_CHECKING:
    from solver.recommend.recommend import SolvedRequest

MOST_SOLVES = 16
"""Numbers of replicas that are solved for."""
MOST_NUMBERS = 4
"""The same where nothing orders them."""
LEAST_TIME_FRACTION = 0.2
"""Of the time limit, that every problem has."""

AtMost = Mapping[int, float]
"""By row: what its replicas are known not to sustain more than, in requests per second."""


@dataclass(frozen=True, slots=True)
class SpreadProblem:
    """A request with its open workloads' turns spread over stated numbers of replicas. most_copies: of each workload in its plan.

    at_most: by workload, what is known already. spreads: of which workloads turns are spread over all replicas.
    """

    planning: PlanningInput
    most_copies: tuple[int | None, ...]
    spreads: tuple[bool, ...]
    at_most: tuple[AtMost, ...]


@dataclass(frozen=True, slots=True)
class Means:
    """What a search may do. solve: a problem, simulated until its plan holds. bound: of one, by screening alone.

    holds: do the replicas of a plan hold in another problem, at the rates that the plan gives them?
    """

    solve: Callable[[SpreadProblem], "SolvedRequest"]
    bound: Callable[[SpreadProblem], float | None]
    holds: Callable[["SolvedRequest", SpreadProblem], bool]


def is_open(workload: Workload) -> bool:
    """Is among how many replicas its turns are spread left to the plan?"""
    sessions = workload.traffic.sessions
    return sessions is not None and not sessions.spread_is_stated


def may_rise(workload: Workload) -> bool:
    """May what a replica finds rise with the number of replicas?"""
    sessions = workload.traffic.sessions
    if sessions is None or sessions.routing != "prefix_aware":
        return False
    kinds = (sessions.system_prompts if sessions.system_tokens else 1) * (
        sessions.documents if sessions.document_tokens else 1
    )
    return kinds > 1


def spread_over(planning: PlanningInput, spread: Counts) -> PlanningInput:
    """The same request with turns spread over so many replicas; of workloads whose spread is stated nothing is read."""
    workloads = []
    for workload, count in zip(planning.workloads, spread, strict=True):
        sessions = workload.traffic.sessions
        if sessions is not None and is_open(workload):
            sessions = replace(sessions, spread_over=count, spread_is_stated=True)
            turns = replace(workload.only, traffic=replace(workload.traffic, sessions=sessions))
            workload = replace(workload, classes=(turns,))
        workloads.append(workload)
    return replace(planning, workloads=tuple(workloads))


@dataclass(slots=True)
class SpreadSearch:
    """Problems solved so far, and what they have shown of replicas: by workload and number of replicas, at most by row."""

    planning: PlanningInput
    means: Means
    began_s: float
    solves: int = 0
    shown: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)

    @property
    def open(self) -> tuple[bool, ...]:
        return tuple(is_open(workload) for workload in self.planning.workloads)

    def problem(self, box: CountBox) -> SpreadProblem:
        """The box's problem where turns are spread over its least numbers; within what is left of the time."""
        spent_s = self.planning.clock() - self.began_s
        limit_s = max(self.planning.time_limit_s - spent_s, LEAST_TIME_FRACTION * self.planning.time_limit_s)
        planning = replace(spread_over(self.planning, box.least), time_limit_s=limit_s)
        at_most = tuple(self.known(w, box.least[w]) for w in range(len(self.planning.workloads)))
        return SpreadProblem(planning, box.most, self.open, at_most)

    def known(self, workload: int, count: int) -> AtMost:
        """What its replicas do not sustain more than where there are ``count``: no more than was shown of fewer."""
        found: dict[int, float] = {}
        for (w, fewer), rates in self.shown.items():
            if w == workload and fewer <= count:
                for row, rate in rates.items():
                    found[row] = min(rate, found.get(row, math.inf))
        return found

    def solved(self, box: CountBox) -> "SolvedRequest":
        """The box's problem solved, and what it showed noted where that says something of more replicas."""
        self.solves += 1
        answer = self.means.solve(self.problem(box))
        for w, workload in enumerate(self.planning.workloads):
            if is_open(workload) and not may_rise(workload):
                brackets = answer.confirmations.facts.of(answer.assembly.screened[w]).known
                rates = self.shown.setdefault((w, box.least[w]), {})
                rates.update({row: min(b.at_most, rates.get(row, math.inf)) for row, b in brackets.items()})
        return answer

    def copies_of(self, solved: "SolvedRequest") -> Counts | None:
        """Caches among which a plan spreads each workload: its replicas, times copies of attention in each; at least 1."""
        if solved.result.plan is None:
            return None
        count = {workload.name: 0 for workload in self.planning.workloads}
        for entry in plan_entries(solved.planning, solved.assembly, solved.result.plan):
            count[entry.workload] += entry.replicas * entry.configuration.layout.data_parallel
        return tuple(max(1, count[workload.name]) if is_open(workload) else 1 for workload in self.planning.workloads)

    @property
    def sign(self) -> float:
        return -1.0 if self.planning.objective == "throughput" else 1.0

    def in_box(self, box: CountBox) -> "Solved[SolvedRequest] | None":
        """What the box's problem comes to; None where there is neither a plan nor a proof in time."""
        try:
            answer = self.solved(box)
        except NoPlanInTimeError:
            return None
        result = answer.result
        if result.plan is None or result.objective is None:
            return Solved(answer, math.inf, math.inf, None) if result.outcome is Outcome.INFEASIBLE else None
        bound = -math.inf if result.bound is None else self.sign * result.bound
        return Solved(answer, self.sign * result.objective, bound, self.copies_of(answer))

    def goes_on(self) -> bool:
        in_time = self.planning.clock() - self.began_s < self.planning.time_limit_s
        return self.solves < MOST_SOLVES and in_time

    def best(self) -> "SolvedRequest":
        """The best plan over all numbers of replicas, proven as far as there was time. Raises NoPlanInTimeError."""
        gap = max(self.planning.gap_fraction, PROVEN_GAP_FRACTION)
        found = best_of_boxes(self.in_box, len(self.planning.workloads), gap, self.goes_on)
        if found is None:
            raise NoPlanInTimeError(self.planning.time_limit_s)
        if found.best is None:
            if not math.isinf(found.bound):
                raise NoPlanInTimeError(self.planning.time_limit_s)
            return self.without_limit(found.first.answer)
        return self.bounded(found.best.answer, found.bound)

    def best_of_any(self) -> "SolvedRequest":
        """A plan that holds at its own number of replicas, bounded by screening. Raises NoPlanInTimeError."""
        ones, free = (1,) * len(self.open), (None,) * len(self.open)
        best: SolvedRequest | None = None
        tried: set[Counts] = set()
        spread: Counts = ones
        while spread not in tried and self.solves < MOST_NUMBERS and (best is None or self.goes_on()):
            tried.add(spread)
            answer = self.solved(CountBox(spread, free))
            copies = self.copies_of(answer)
            if copies is None:
                break
            if copies == spread or self.means.holds(answer, self.problem(CountBox(copies, free))):
                best = _better(best, answer, self.sign)
            spread = (
                copies if copies not in tried else tuple(max(c, s + 1) for c, s in zip(copies, spread, strict=True))
            )
        if best is None:
            if copies is None and spread == ones:
                return self.without_limit(answer)
            raise NoPlanInTimeError(self.planning.time_limit_s)
        bound = self.means.bound(self.problem(CountBox(ones, free)))
        return self.bounded(best, -math.inf if bound is None else self.sign * bound)

    def without_limit(self, answer: "SolvedRequest") -> "SolvedRequest":
        """The same where the number of copies is no limit: as whatever is asked about the answer is compared."""
        free = (None,) * len(self.open)
        return replace(answer, assembly=with_most_copies(answer.assembly, free, self.open))

    def bounded(self, answer: "SolvedRequest", bound: float) -> "SolvedRequest":
        """A true plan with a bound over all numbers of replicas; both are of what is minimised."""
        answer, result = self.without_limit(answer), answer.result
        assert result.objective is not None
        value = self.sign * min(bound, self.sign * result.objective)
        gap = gap_between(result.objective, value) if math.isfinite(value) else None
        if gap is not None and gap <= PROVEN_GAP_FRACTION:
            proven = replace(
                result, outcome=Outcome.OPTIMAL, status=Status.PROVEN_OPTIMAL, bound=result.objective, gap_fraction=0.0
            )
            return replace(answer, result=proven)
        within = gap is not None and gap <= self.planning.gap_fraction
        status = Status.WITHIN_GAP if within else Status.TIME_LIMIT
        reached = None if gap is None else value
        return replace(
            answer, result=replace(result, outcome=Outcome.FEASIBLE, status=status, bound=reached, gap_fraction=gap)
        )


def _better(one: "SolvedRequest | None", other: "SolvedRequest", sign: float) -> "SolvedRequest":
    if one is None or one.result.objective is None or other.result.objective is None:
        return other
    return other if sign * other.result.objective < sign * one.result.objective else one


def solve_spread(planning: PlanningInput, means: Means) -> "SolvedRequest":
    """A request in which some workload's turns are spread over as many replicas as the plan has. Raises as ``means`` do, and
    NoPlanInTimeError."""
    search = SpreadSearch(planning, means, planning.clock())
    return search.best_of_any() if any_rises(planning.workloads) else search.best()


def any_rises(workloads: Sequence[Workload]) -> bool:
    """Is there a workload whose number of replicas nothing orders?"""
    return any(is_open(workload) and may_rise(workload) for workload in workloads)
