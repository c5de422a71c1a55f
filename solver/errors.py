"""What the solver raises.

    SolverError
    ├── FigureMissingError      a figure the law needs is not in the catalog; it is never guessed
    ├── UnsupportedError        the device, engine or model cannot run this at all (layout, precision)
    ├── DoesNotFitError         memory: bytes needed and available per device
    ├── SaturatedError          an open load above capacity
    ├── InvalidInputError       an argument outside its domain (negative tokens, an empty distribution)
    ├── SolverFailedError       HiGHS and CBC both failed on a programme and no plan is in hand
    ├── NoPlanInTimeError       the time limit ended before any plan was found or ruled out
    └── VerificationError       the independent checker refused a plan: a defect, never an answer

Infeasibility of a plan is not an error: it is a result with reasons.
"""


class SolverError(Exception):
    """Base of everything the solver raises on purpose."""


class FigureMissingError(SolverError):
    """A hardware or model figure is absent. ``figure`` names it, ``subject`` says whose it is."""

    def __init__(self, subject: str, figure: str) -> None:
        super().__init__(f"{subject}: no sourced value for {figure}")
        self.subject = subject
        self.figure = figure


class UnsupportedError(SolverError):
    """The combination cannot run. ``reason`` is a stable slug, the message says it in words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class DoesNotFitError(SolverError):
    """Weights and reserves leave no room. Both figures are bytes per device."""

    def __init__(self, needed_bytes: float, available_bytes: float) -> None:
        super().__init__(f"needs {needed_bytes:.0f} bytes per device, {available_bytes:.0f} available")
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes


class SaturatedError(SolverError):
    """Offered load exceeds what the deployment can serve."""

    def __init__(self, capacity_requests_per_s: float) -> None:
        super().__init__(f"offered load is above the capacity of {capacity_requests_per_s:.4g} requests/s")
        self.capacity_requests_per_s = capacity_requests_per_s


class InvalidInputError(SolverError):
    """An argument outside its domain."""


class NoPlanInTimeError(SolverError):
    """Neither a plan nor a proof that there is none: more time is needed, or fewer choices."""

    def __init__(self, time_limit_s: float) -> None:
        super().__init__(f"no plan was found within {time_limit_s:g} s, and none was ruled out")
        self.time_limit_s = time_limit_s


class SolverFailedError(SolverError):
    """A solver is missing or ended in a way that says nothing about the problem."""


class VerificationError(SolverError):
    """The independent checker refused a plan: a defect, never an answer."""
