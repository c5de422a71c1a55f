"""How much of a request's time is left."""

from solver.confirmation.confirmations import Confirmations
from solver.planning.types import PlanningInput

ENDING_FRACTION = 0.1
"""Of the time limit: what a search may take beyond it to settle on what it has."""


class Watch:
    """How much of a request's time is left, whatever it is spent on."""

    def __init__(self, planning: PlanningInput, confirmations: Confirmations) -> None:
        self._limit_s, self._clock, self._confirmations = planning.time_limit_s, planning.clock, confirmations
        self._began_s, self._before_s, self._solver_s = planning.clock(), confirmations.spent_s, 0.0

    def solved(self, seconds: float) -> None:
        """Count what a solver says it took: where the clock stands still, that is all the time there is."""
        self._solver_s += seconds
        self.in_time()

    def left_s(self) -> float:
        """Seconds left; never below zero."""
        spent = max(self._clock() - self._began_s, self._solver_s)
        self._confirmations.spent_s = self._before_s + spent
        return max(0.0, self._limit_s - self._confirmations.spent_s)

    def in_time(self) -> bool:
        return self.left_s() > 0.0

    def is_long_over(self) -> bool:
        """Has even the time to end in passed?"""
        return self.left_s() <= 0.0 and self._confirmations.spent_s > self._limit_s * (1.0 + ENDING_FRACTION)
