"""What a target cannot express."""

from dataclasses import dataclass

from service.problems import ConflictError


@dataclass(frozen=True, slots=True)
class CannotExpress:
    """part: of the plan, in its own words. reason: why the target has no way to say it."""

    part: str
    reason: str


class TargetCannotExpressError(ConflictError):
    """409: no files rather than files that start something else than the plan."""

    def __init__(self, target: str, found: list[CannotExpress]) -> None:
        self.found = found
        first = found[0]
        more = "" if len(found) == 1 else f", and {len(found) - 1} more"
        super().__init__(
            f"target {target!r} cannot express {first.part}: {first.reason}{more}",
            target=target,
            cannot_express=[{"part": one.part, "reason": one.reason} for one in found],
        )


class PartError(Exception):
    """Raised where one part cannot be expressed; collected, so that all of them are answered at once."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.refusal = CannotExpress(part, reason)
