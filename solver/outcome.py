"""What came of a search, and how far that is known."""

from enum import StrEnum


class Outcome(StrEnum):
    """``UNKNOWN``: the time limit passed with neither a plan nor a proof that none exists."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """Why a search ended. ``WITHIN_GAP``: the gap asked for was reached; ``TIME_LIMIT``: it was not, in the time given.

    ``MIXES_OPEN``: nothing better is known, but what replicas sustain of mixes of traffic classes that nobody simulated leaves it open.
    ``KEPT_CURRENT``: a fleet that runs stays, although a cheaper one is known. ``NO_PLAN_FOUND`` never leaves the service: it
    is an error there (``NoPlanInTimeError``).
    """

    PROVEN_OPTIMAL = "proven_optimal"
    WITHIN_GAP = "within_gap"
    TIME_LIMIT = "time_limit"
    PROVEN_INFEASIBLE = "proven_infeasible"
    MIXES_OPEN = "mixes_open"
    KEPT_CURRENT = "kept_current"
    NO_PLAN_FOUND = "no_plan_found"


def status_of_plan(gap_fraction: float, asked_fraction: float, proven_fraction: float) -> Status:
    """Of a plan whose distance from its bound is known.

    >>> status_of_plan(0.004, 0.01, 1e-6), status_of_plan(0.02, 0.01, 1e-6)
    (<Status.WITHIN_GAP: 'within_gap'>, <Status.TIME_LIMIT: 'time_limit'>)
    """
    if gap_fraction <= proven_fraction:
        return Status.PROVEN_OPTIMAL
    return Status.WITHIN_GAP if gap_fraction <= asked_fraction else Status.TIME_LIMIT
