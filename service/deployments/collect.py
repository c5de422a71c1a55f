"""Go over the parts of a plan and gather every refusal, so that one answer names them all."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from service.deployments.refusals import CannotExpress, PartError, TargetCannotExpressError

One = TypeVar("One")
Made = TypeVar("Made")


def made_of_each(target: str, parts: Iterable[One], make: Callable[[One], Made]) -> list[Made]:
    """``make`` of every part. Raises TargetCannotExpressError with what each PartError says."""
    made: list[Made] = []
    refused: list[CannotExpress] = []
    for part in parts:
        try:
            made.append(make(part))
        except PartError as error:
            refused.append(error.refusal)
    if refused:
        raise TargetCannotExpressError(target, refused)
    return made
