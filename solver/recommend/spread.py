"""Among how many replicas a router spreads the turns of sessions, where that is for the plan to say.

The more replicas, the less each finds in its cache. Let c_n be what a replica of n is simulated to sustain; a router that evens load
out, or keeps openings apart, may let replicas sustain more where there are more of them. Nothing is planned that rests on that: replicas
count for no more than they were found to sustain where there are fewer, so that what counts falls with n, and the best plan over all n is
found and proven by branch and bound (``boxes``; decisions 0055 and 0064).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from solver.candidates.screening import Screened, with_workload
from solver.confirmation.facts import FactsMemo
from solver.confirmation.loop import settled_plan
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.outcome import Outcome, Status
from solver.planning.assemble import with_most_copies
from solver.planning.placements import placements, plan_entries
from solver.planning.types import PlanningInput
from solver.recommend.boxes import CountBox, Counts, Solved, best_of_boxes
from solver.recommend.solve_report import check
from solver.workload import Workload

if TYPE_CHECKING:
    from solver.recommend.recommend import SolvedRequest

MOST_SOLVES = 16
"""Numbers of replicas that are solved for."""
LEAST_TIME_FRACTION = 0.2
"""Of the time limit, that every problem has."""
MOST_TRIES = 8
"""Numbers of replicas that a plan's kinds of them are tried with, each the number that the one before came to."""

AtMost = Mapping[int, float]
"""By row: what its replicas are known not to sustain more than, in requests per second."""


@dataclass(frozen=True, slots=True)
class SpreadProblem:
    """A request with its open workloads' turns spread over stated numbers of replicas. most_copies: of each workload in its plan.

    at_most: by workload, what is known already. spreads: of which workloads turns are spread over all replicas. least_known: the
    cheapest plan of other numbers of replicas, where only a cheaper one is asked for.
    """

    planning: PlanningInput
    most_copies: tuple[int | None, ...]
    spreads: tuple[bool, ...]
    at_most: tuple[AtMost, ...]
    least_known: FleetResult | None = None
    only: tuple[frozenset[int], ...] = ()
    """By workload, the candidates that plans are made of, by the first of their like; empty where they are made of any."""
    seen: dict[tuple[int, int], Screened] = field(default_factory=dict, repr=False)
    """Workloads screened before, by number and among how many replicas their turns are spread."""

    def screened(self, number: int, workload: Workload, screen: Callable[[Workload], Screened]) -> Screened:
        """A workload's candidates, screened where no other problem of the request has. A router by prefixes is taken to keep sessions and
        openings together (``found_shares``), whatever the number of replicas that it has."""
        sessions = workload.traffic.sessions
        if sessions is None or not self.spreads or not self.spreads[number]:
            return screen(workload)
        over = min(sessions.spread_over, 2) if sessions.routing == "prefix_aware" else sessions.spread_over
        found = self.seen.get((number, over))
        if found is None:
            found = self.seen[number, over] = screen(workload)
        return with_workload(found, workload)

    def rule_out_others(self, screened: Sequence[Screened], facts: FactsMemo) -> None:
        """Where plans are made of some candidates ``only``, believe nothing of the others."""
        for one, rows in zip(screened, self.only, strict=bool(self.only)):
            facts.of(one).rule_out_others(one, rows)

    def is_known(self, result: FleetResult) -> bool:
        """Is this the plan that was known, of another problem's deployments?"""
        return self.least_known is not None and result.plan is self.least_known.plan


Solve = Callable[[SpreadProblem], "SolvedRequest"]
"""A problem, simulated until its plan holds."""


def is_open(workload: Workload) -> bool:
    """Is among how many replicas its turns are spread left to the plan?"""
    sessions = workload.traffic.sessions
    return sessions is not None and not sessions.spread_is_stated


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
    solve: Solve
    began_s: float
    solves: int = 0
    shown: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    screened: dict[tuple[int, int], Screened] = field(default_factory=dict)

    @property
    def open(self) -> tuple[bool, ...]:
        return tuple(is_open(workload) for workload in self.planning.workloads)

    def problem(
        self, box: CountBox, least_known: FleetResult | None, only: tuple[frozenset[int], ...] = ()
    ) -> SpreadProblem:
        """The box's problem where turns are spread over its least numbers; within what is left of the time."""
        spent_s = self.planning.clock() - self.began_s
        limit_s = max(self.planning.time_limit_s - spent_s, LEAST_TIME_FRACTION * self.planning.time_limit_s)
        planning = replace(spread_over(self.planning, box.least), time_limit_s=limit_s)
        at_most = tuple(self.known(w, box.least[w]) for w in range(len(self.planning.workloads)))
        return SpreadProblem(planning, box.most, self.open, at_most, least_known, only, self.screened)

    def known(self, workload: int, count: int) -> AtMost:
        """What its replicas do not sustain more than where there are ``count``: no more than was shown of fewer."""
        found: dict[int, float] = {}
        for (w, fewer), rates in self.shown.items():
            if w == workload and fewer <= count:
                for row, rate in rates.items():
                    found[row] = min(rate, found.get(row, math.inf))
        return found

    def solved(self, box: CountBox, problem: SpreadProblem) -> "SolvedRequest":
        """The box's problem solved, and what it showed noted where that says something of more replicas."""
        answer = self.solve(problem)
        for w, rows in enumerate(problem.only):
            answer.confirmations.facts.of(answer.assembly.screened[w]).readmit_others(rows)
        for w, workload in enumerate(self.planning.workloads):
            if is_open(workload):
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

    def in_box(self, box: CountBox, best: "Solved[SolvedRequest] | None") -> "Solved[SolvedRequest] | None":
        """What the box's problem comes to; None where there is neither a plan nor a proof in time.

        Of costs, plans that are dearer than the best so far are not looked at: such a box is bounded by that.
        """
        least, most = None, math.inf
        if best is not None and self.planning.objective == "cost":
            least, most = best.answer.result, best.value
        problem = self.problem(box, least)
        self.solves += 1
        try:
            answer = self.solved(box, problem)
        except NoPlanInTimeError:
            return None
        result = answer.result
        if problem.is_known(result):
            return Solved(answer, math.inf, most, None)
        if result.plan is None or result.objective is None:
            return Solved(answer, math.inf, most, None) if result.outcome is Outcome.INFEASIBLE else None
        bound = -math.inf if result.bound is None else min(self.sign * result.bound, most)
        return Solved(answer, self.sign * result.objective, bound, self.copies_of(answer))

    def true(self, likely: "Solved[SolvedRequest]") -> "Solved[SolvedRequest] | None":
        """The cheapest true plan of the kinds of replicas that a plan has, which sustain less where they are as many as it has of them:
        more of them, then, until they are no more than were reckoned with. None where there is none, or no time to find it."""
        answer, copies = likely.answer, likely.copies
        if self.planning.objective != "cost" or self.planning.exchanges_caches or copies is None:
            return None
        if any(workload.is_mixed for workload in self.planning.workloads):
            return None
        assembly, plan = answer.assembly, answer.result.plan
        assert plan is not None
        places = placements(assembly, plan)
        only = tuple(
            frozenset(one.alike(place.row) for place in places if place.workload == w)
            for w, one in enumerate(assembly.screened)
        )
        for tried in range(MOST_TRIES):
            if tried and self.is_late():
                return None
            box = CountBox(copies, (None,) * len(copies))
            try:
                found = self.solved(box, self.problem(box, None, only))
            except NoPlanInTimeError:
                return None
            taken = self.copies_of(found)
            if taken is None or found.result.objective is None:
                return None
            if all(count <= most for count, most in zip(taken, copies, strict=True)):
                return Solved(found, found.result.objective, -math.inf, taken)
            copies = tuple(map(max, taken, copies))
        return None

    def is_late(self) -> bool:
        return self.planning.clock() - self.began_s >= self.planning.time_limit_s

    def goes_on(self) -> bool:
        return self.solves < MOST_SOLVES and not self.is_late()

    def best(self) -> "SolvedRequest":
        """The best plan over all numbers of replicas, proven as far as there was time. Raises NoPlanInTimeError."""
        gap = max(self.planning.gap_fraction, PROVEN_GAP_FRACTION)
        found = best_of_boxes(self.in_box, len(self.planning.workloads), gap, self.goes_on, self.true)
        if found is None:
            raise NoPlanInTimeError(self.planning.time_limit_s)
        if found.best is None:
            if not math.isinf(found.bound):
                raise NoPlanInTimeError(self.planning.time_limit_s)
            assert (
                found.refused is not None
            )  # the box without a limit is divided until it has a true plan, or none at all
            return self.without_limit(self.in_whole_time(found.refused.answer))
        answer = self.with_all_shown(self.in_whole_time(found.best.answer))
        return self.bounded(self.settled(answer), found.bound)

    def with_all_shown(self, answer: "SolvedRequest") -> "SolvedRequest":
        """The answer with all that was shown of as many replicas as its turns are spread over, or fewer: not to be asked again."""
        screened = list(answer.assembly.screened)
        for w, one in enumerate(screened):
            sessions = one.workload.traffic.sessions
            if self.open[w] and sessions is not None:
                screened[w] = one.with_at_most(self.known(w, sessions.spread_over))
                answer.confirmations.facts.carry_over(one, screened[w])
        return replace(answer, assembly=replace(answer.assembly, screened=tuple(screened)))

    def in_whole_time(self, answer: "SolvedRequest") -> "SolvedRequest":
        """The answer of a problem with the request's time limit, all that was spent on others counted, after it too."""
        spent_s = max(answer.confirmations.spent_s, self.planning.clock() - self.began_s)
        planning = replace(answer.planning, time_limit_s=self.planning.time_limit_s)
        return replace(answer, planning=planning, confirmations=replace(answer.confirmations, spent_s=spent_s))

    def settled(self, answer: "SolvedRequest") -> "SolvedRequest":
        """The best plan with what its replicas sustain, which of the others is not found out."""
        assembly, result = settled_plan(answer.assembly, answer.planning, answer.confirmations, answer.result)
        check(assembly, result)
        return replace(answer, assembly=assembly, result=result)

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


def solve_spread(planning: PlanningInput, solve: Solve) -> "SolvedRequest":
    """A request in which some workload's turns are spread over as many replicas as the plan has. Raises as ``solve`` does, and
    NoPlanInTimeError."""
    return SpreadSearch(planning, solve, planning.clock()).best()
