"""Outcomes and statuses of the solver as the API spells them: total, so that a new one cannot pass as another."""

from typing import Literal, assert_never

from solver.outcome import Outcome, Status

PlanOutcome = Literal["optimal", "feasible", "infeasible"]
SolveStatus = Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible"]


def plan_outcome(outcome: Outcome) -> PlanOutcome:
    """Raises ValueError for a search that found nothing in time: that is an error, not an answer."""
    match outcome:
        case Outcome.OPTIMAL:
            return "optimal"
        case Outcome.FEASIBLE:
            return "feasible"
        case Outcome.INFEASIBLE:
            return "infeasible"
        case Outcome.UNKNOWN:
            raise ValueError("nothing was found in time, which no answer says")
        case _:
            assert_never(outcome)


def solve_status(status: Status) -> Literal[SolveStatus, "kept_current", "mixes_open"]:
    """Raises ValueError as ``plan_outcome`` does."""
    match status:
        case Status.PROVEN_OPTIMAL:
            return "proven_optimal"
        case Status.WITHIN_GAP:
            return "within_gap"
        case Status.TIME_LIMIT:
            return "time_limit"
        case Status.PROVEN_INFEASIBLE:
            return "proven_infeasible"
        case Status.KEPT_CURRENT:
            return "kept_current"
        case Status.MIXES_OPEN:
            return "mixes_open"
        case Status.NO_PLAN_FOUND:
            raise ValueError("nothing was found in time, which no answer says")
        case _:
            assert_never(status)


def fleet_status(outcome: Outcome, *, within_gap: bool) -> SolveStatus:
    """Of a fleet over time, which is solved to a gap. Raises ValueError as ``plan_outcome`` does."""
    match outcome:
        case Outcome.OPTIMAL:
            return "proven_optimal"
        case Outcome.FEASIBLE:
            return "within_gap" if within_gap else "time_limit"
        case Outcome.INFEASIBLE:
            return "proven_infeasible"
        case Outcome.UNKNOWN:
            raise ValueError("nothing was found in time, which no answer says")
        case _:
            assert_never(outcome)
