"""What simulation has found of candidates, kept from one question about a request to the next.

A bracket depends on the candidate and its goal, and on nothing else: not on offers, prices, limits or other workloads. So
whatever is asked of the same screened workload starts from all that was found of it before.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from solver.candidates.screening import Screened
from solver.capacity.sustained_rate import Bracket, CandidateReplica
from solver.fleet.decomposition.known_parts import PartsMemo


class Seen(IntEnum):
    """How closely a candidate has been looked at: it only ever grows. What is seen in full has a closed bracket."""

    NOT = 0
    SHORTLY = 1
    """Its upper end is as low as short looks can make it."""
    IN_ONE_DRAW = 2
    """Its upper end is as low as one draw of a long run can make it."""


@dataclass(slots=True)
class CandidateFacts:
    """Of one screened workload's candidates, by first row of its like.

    searched_over: offers among which its best plan has been searched for, as a traffic class without company.
    """

    known: dict[int, Bracket] = field(default_factory=dict)
    candidates: dict[int, CandidateReplica] = field(default_factory=dict)
    seen: dict[int, Seen] = field(default_factory=dict)
    searched_over: list[frozenset[str]] = field(default_factory=list)

    def is_seen(self, row: int, closely: Seen) -> bool:
        """Has the candidate been looked at as closely as this?"""
        return self.seen.get(row, Seen.NOT) >= closely

    def see(self, row: int, closely: Seen) -> None:
        """It has now; what has been seen more closely stays so."""
        self.seen[row] = max(closely, self.seen.get(row, Seen.NOT))

    def rule_out_others(self, one: Screened, rows: Collection[int]) -> None:
        """Believe nothing of any candidate but these, of which nothing is known yet: plans are then made of them alone. Until
        ``readmit_others``."""
        alike = np.unique(one.all_alike(np.arange(len(one.serves))))
        self.known = {row: Bracket(0.0, 0.0) for row in alike.tolist() if row not in rows}

    def readmit_others(self, rows: Collection[int]) -> None:
        """Know again nothing of any candidate but these."""
        self.known = {row: bracket for row, bracket in self.known.items() if row in rows}


class FactsMemo:
    """Facts by what screening leaves a workload's replicas: the very object, since that of another goal is another. parts: what parts of
    fleets cost in places."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, CandidateFacts]] = {}
        self.parts = PartsMemo()

    def of(self, one: Screened) -> CandidateFacts:
        """The facts of this workload, to be read and added to."""
        left = one.classes[0].most_requests_per_s
        return self._kept.setdefault(id(left), (left, CandidateFacts()))[1]

    def carry_over(self, one: Screened, to: Screened) -> None:
        """Know of a workload's candidates what is known of the same ones that less was known of while screening."""
        old, new = self.of(one), self.of(to)
        new.known |= old.known
        new.seen |= old.seen
