"""What went wrong with one case → its outcome on the wire."""

from service.estimates.predict import Outcome, assumed
from service.wire.estimates import DoesNotFitOut, EstimateIn, SaturatedOut, UnsupportedOut
from solver.errors import (
    DoesNotFitError,
    FigureMissingError,
    InvalidInputError,
    SaturatedError,
    SolverError,
    UnsupportedError,
)


def unsupported(asked: EstimateIn, reason: str, detail: str, close_matches: list[str] | None = None) -> UnsupportedOut:
    return UnsupportedOut(
        outcome="unsupported", reason=reason, detail=detail, close_matches=close_matches or [], **assumed(asked)
    )


def outcome_of(asked: EstimateIn, error: SolverError) -> Outcome:
    """Every error of the solver is an answer about this case."""
    match error:
        case DoesNotFitError():
            return DoesNotFitOut(
                outcome="does_not_fit",
                detail=str(error),
                needed_bytes_per_device=round(error.needed_bytes),
                available_bytes_per_device=max(0, round(error.available_bytes)),
                **assumed(asked),
            )
        case SaturatedError():
            return SaturatedOut(
                outcome="saturated",
                detail=str(error),
                capacity_requests_per_s=error.capacity_requests_per_s,
                **assumed(asked),
            )
        case UnsupportedError():
            return unsupported(asked, error.reason, str(error))
        case FigureMissingError():
            return unsupported(asked, "figure_missing", str(error))
        case InvalidInputError():
            return unsupported(asked, "invalid_input", str(error))
        case _:
            raise error
