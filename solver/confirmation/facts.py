"""What simulation has found of candidates, kept from one question about a request to the next.

A bracket depends on the candidate and its goal, and on nothing else: not on offers, prices, limits or other workloads. So
whatever is asked of the same screened workload starts from all that was found of it before.
"""

from dataclasses import dataclass, field

from solver.candidates.screening import Screened
from solver.capacity.sustained_rate import Bracket, CandidateReplica


@dataclass(slots=True)
class CandidateFacts:
    """Of one screened workload's candidates, by first row of its like."""

    known: dict[int, Bracket] = field(default_factory=dict)
    candidates: dict[int, CandidateReplica] = field(default_factory=dict)
    looked: set[int] = field(default_factory=set)
    """Candidates whose upper ends are as low as short looks can make them."""
    drawn: set[int] = field(default_factory=set)
    """Candidates whose upper ends are as low as one draw of a long run can make them."""


class FactsMemo:
    """Facts by screened workload: the very object, since one with another goal is another."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Screened, CandidateFacts]] = {}

    def of(self, one: Screened) -> CandidateFacts:
        """The facts of this workload, to be read and added to."""
        return self._kept.setdefault(id(one), (one, CandidateFacts()))[1]
