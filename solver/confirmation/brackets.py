"""What replicas of every candidate sustain, as far as it is known, and fleet problems made of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened
from solver.capacity.runs import InTime, always
from solver.capacity.sustained_rate import ONE_DRAW, Bracket, CandidateReplica, is_settled
from solver.confirmation.facts import CandidateFacts, FactsMemo, Seen
from solver.confirmation.rates import ROUNDING, rate_to_hold
from solver.planning.assemble import Assembly
from solver.planning.placements import Placement

Floats = NDArray[np.float64]


ABOUT = 0.01
"""Of what replicas of a plan beside the answer sustain: that they hold, and what the plan costs, is known before."""


def _is_about(bracket: Bracket) -> bool:
    return bracket.at_most <= (1.0 + ABOUT) * bracket.holds


@dataclass(slots=True)
class Brackets:
    """Of replicas that prefill and decode requests of one kind: a rate that simulation has seen each candidate hold, and one that it
    cannot exceed.

    memo: what was found before, which learns. simulations: made on its behalf. learnt: how often a bracket became another, whether that
    took a simulation or only what the process had simulated before.
    """

    screened: Sequence[Screened]
    memo: FactsMemo = field(default_factory=FactsMemo)
    simulations: int = 0
    learnt: int = 0
    known_by_candidate: bool = True
    most_rounds: float = math.inf
    about: bool = False
    """Are what replicas of sessions sustain closed in to ABOUT of it alone, where nothing is decided by it any more?"""

    @property
    def workloads(self) -> list[tuple[int, Screened]]:
        """Those whose replicas have brackets: of a mix, what a replica sustains is not one rate."""
        return [(w, one) for w, one in enumerate(self.screened) if not one.workload.is_mixed]

    def are_turns(self, workload: int) -> bool:
        """Are a workload's requests turns of sessions?"""
        return self.screened[workload].only.workload.traffic.sessions is not None

    def _facts(self, workload: int) -> CandidateFacts:
        return self.memo.of(self.screened[workload])

    def at_most(self, workload: int, row: int) -> float:
        """No replica of the candidate sustains more."""
        one = self.screened[workload]
        bracket = self._facts(workload).known.get(one.alike(row))
        return float(one.only.most_requests_per_s[row]) if bracket is None else bracket.at_most

    def all_at_most(self, workload: int, rows: NDArray[np.int64], alike: NDArray[np.int64]) -> Floats:
        """``at_most`` of many rows; alike: the first row of each one's like."""
        known = {row: bracket.at_most for row, bracket in self._facts(workload).known.items()}
        most = self.screened[workload].only.most_requests_per_s[rows].astype(np.float64)
        for i in np.flatnonzero(np.isin(alike, list(known))).tolist():
            most[i] = known[int(alike[i])]
        return most

    def holds(self, workload: int, row: int) -> float:
        """A rate that simulation has seen hold; 0 where none has."""
        bracket = self._facts(workload).known.get(self.screened[workload].alike(row))
        return 0.0 if bracket is None else bracket.holds

    def carry(self, workload: int, row: int, requests_per_s: float, in_time: InTime = always) -> Bracket:
        """The bracket of a candidate once it is known whether a replica carries this rate, or time is up."""
        facts, key, candidate, bracket = self._of(workload, row)
        if bracket.holds < requests_per_s <= bracket.at_most:
            before = candidate.runs.simulations
            looked = facts.is_seen(key, Seen.SHORTLY)
            found = candidate.carrying(requests_per_s, bracket, looked=looked, in_time=in_time)
            if not in_time():
                bracket = found.narrowed(bracket)
            else:
                bracket = found
                if bracket.at_most < requests_per_s:
                    facts.see(key, Seen.SHORTLY)
            self.simulations += candidate.runs.simulations - before
            self._keep(facts, key, bracket)
        return bracket

    def look(self, workload: int, row: int, share: float, in_time: InTime = always) -> None:
        """Find out by short looks whether a candidate sustains this share of what is believed of it, and if not, about
        how much is too much."""
        facts, key, candidate, bracket = self._of(workload, row)
        if facts.is_seen(key, Seen.SHORTLY) or bracket.at_most <= 0.0:
            return
        before = candidate.runs.simulations
        most = candidate.too_much(bracket.at_most * share, in_time=in_time)
        if in_time():
            facts.see(key, Seen.SHORTLY)
        self.simulations += candidate.runs.simulations - before
        self._keep(facts, key, Bracket(bracket.holds, min(bracket.at_most, most)))

    def look_further(self, workload: int, row: int, in_time: InTime = always) -> None:
        """Lower the upper end of a candidate as far as short looks can, or where they have, one draw of a long run."""
        facts, key, candidate, bracket = self._of(workload, row)
        if not facts.is_seen(key, Seen.SHORTLY):
            self.look(workload, row, 1.0, in_time)
            return
        if facts.is_seen(key, Seen.IN_ONE_DRAW) or bracket.is_settled:
            return
        before = candidate.runs.simulations
        most = max(bracket.holds, candidate.too_much(bracket.at_most, ONE_DRAW, in_time))
        if in_time():
            facts.see(key, Seen.IN_ONE_DRAW)
        self.simulations += candidate.runs.simulations - before
        self._keep(facts, key, Bracket(bracket.holds, min(bracket.at_most, most)))

    def are_seen(self, workload: int, alike: NDArray[np.int64], closely: Seen) -> NDArray[np.bool_]:
        """Where looks as close as this have shown all that they can; alike: the first row of each one's like."""
        facts = self._facts(workload)
        settled = {key for key, bracket in facts.known.items() if bracket.is_settled}
        seen = {key for key, seen in facts.seen.items() if seen >= closely}
        return np.isin(alike, list(seen | settled))

    def settle(self, workload: int, row: int, in_time: InTime = always) -> Bracket:
        """The bracket of a candidate once it is closed, or time is up. What was seen to hold before holds, whatever a rung below it
        says."""
        facts, key, candidate, known = self._of(workload, row)
        before = candidate.runs.simulations
        is_about = self.about and self.are_turns(workload)
        found = candidate.bracket(_is_about if is_about else is_settled, in_time)
        holds = max(known.holds, found.holds)
        found = Bracket(holds, holds) if found.is_settled else found.narrowed(known)
        self._keep(facts, key, found)
        self.simulations += candidate.runs.simulations - before
        return found

    def _keep(self, facts: CandidateFacts, key: int, bracket: Bracket) -> None:
        self.learnt += facts.known.get(key) != bracket
        facts.known[key] = bracket

    def _of(self, workload: int, row: int) -> tuple[CandidateFacts, int, CandidateReplica, Bracket]:
        one, facts = self.screened[workload], self._facts(workload)
        key = one.alike(row)
        candidate = facts.candidates.get(key)
        if candidate is None:
            candidate = facts.candidates[key] = one.only.candidate(key)
        return facts, key, candidate, facts.known.get(key) or Bracket(0.0, candidate.most)

    def assumed(self, assembly: Assembly) -> Assembly:
        """The problem in which every replica sustains as much as is not ruled out: its optimum bounds the true one."""
        return self._problem(assembly, lambda one: one.only.most_requests_per_s, lambda bracket: bracket.at_most)

    def confirmed(self, assembly: Assembly) -> Assembly:
        """The problem in which replicas sustain what simulation has seen hold, and others nothing: its plans are true."""
        return self._problem(
            assembly, lambda one: np.zeros_like(one.only.most_requests_per_s), lambda bracket: bracket.holds
        )

    def apart(self, assembly: Assembly) -> Assembly:
        """The same: none of these replicas serves a mix."""
        return self.confirmed(assembly)

    def _problem(
        self, assembly: Assembly, unknown: Callable[[Screened], Floats], end: Callable[[Bracket], float]
    ) -> Assembly:
        capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
        for workload, one in self.workloads:
            rates = unknown(one).copy()
            known = {row: end(bracket) for row, bracket in self.memo.of(one).known.items()}
            alike = one.all_alike(np.arange(len(rates)))
            for row in np.flatnonzero(np.isin(alike, list(known))).tolist():
                if one.only.most_requests_per_s[row] > 0.0:
                    rates[row] = known[int(alike[row])]
            mine = assembly.rows_in_role(workload)
            capacity[mine, 0] = rates[assembly.row_of[mine]]
        return assembly.with_capacity(capacity)

    def hold(self, assembly: Assembly, places: Sequence[Placement], in_time: Callable[[], bool]) -> bool:
        """Do all of a plan's replicas carry what is asked of them? False, too, where there is no time to know."""
        held = True
        for place in self._mine(places):
            rate = rate_to_hold(assembly, place)
            enough = rate * (1.0 - ROUNDING)
            if self.holds(place.workload, place.row) >= enough:
                continue
            if not in_time():
                return False
            # One run of turns is dear; of other requests, what is found of the rest of a plan spares rounds.
            if not held and self.are_turns(place.workload):
                self.look(place.workload, place.row, rate / place.capacity_requests_per_s, in_time)
                continue
            if self.carry(place.workload, place.row, enough, in_time).holds >= enough:
                continue
            held = False
            # What a plan without it would try next is most likely the same in another precision, of those that may carry as much.
            for row in self.screened[place.workload].siblings(place.row):
                if not in_time():
                    return False
                if self.at_most(place.workload, row) < enough:
                    continue
                self.look(place.workload, row, rate / place.capacity_requests_per_s, in_time)
        return held

    def hold_confirmed(self, _assembly: Assembly, _places: Sequence[Placement]) -> bool:
        """What was seen to hold holds in every plan."""
        return True

    def settle_plan(
        self, assembly: Assembly, places: Sequence[Placement], capacity: Floats, in_time: Callable[[], bool]
    ) -> None:
        """Close the brackets of a plan's replicas: what they sustain, no more and no less."""
        for place in self._mine(places):
            if in_time():
                self.settle(place.workload, place.row, in_time)
            rows = assembly.rows_in_role(place.workload) & (assembly.row_of == place.row)
            capacity[rows, 0] = self.holds(place.workload, place.row)

    def be_pessimistic(self) -> None:
        """Upper ends are no beliefs."""

    def _mine(self, places: Sequence[Placement]) -> list[Placement]:
        mine = {w for w, _ in self.workloads}
        return [p for p in places if p.workload in mine and p.role == "aggregated" and p.requests_per_s > 0.0]
