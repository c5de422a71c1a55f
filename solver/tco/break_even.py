"""When, and at which utilisation, two alternatives cost the same."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BreakEvenMonth:
    """Where two cumulative cost curves cross.

    crossings: months from the start, ascending (a fraction within a month, by straight line); a fleet that renews or
    sells machines may cross more than once.
    cheaper_at_start: who has spent less once they first differ; cheaper_at_horizon: at the end, None where equal.
    """

    first: str
    second: str
    crossings: tuple[float, ...]
    cheaper_at_start: str | None
    cheaper_at_horizon: str | None

    @property
    def month(self) -> float | None:
        """The first crossing."""
        return self.crossings[0] if self.crossings else None


def break_even_month(
    first: str, second: str, first_micro: NDArray[np.int64], second_micro: NDArray[np.int64]
) -> BreakEvenMonth:
    """Every crossing of the cumulative costs, on exact money. Curves that only touch do not cross.

    >>> buy, rent = np.array([100, 0, 0, 0]), np.array([0, 40, 40, 40])
    >>> break_even_month("buy", "rent", buy, rent).month
    2.5
    """
    gap = [int(g) for g in np.cumsum(first_micro) - np.cumsum(second_micro)]
    cheaper = {1: second, -1: first}
    crossings: list[float] = []
    opened: int | None = None  # the last column in which the curves differ
    start_sign = 0
    for column, current in enumerate(gap):
        if current == 0:
            continue
        if opened is None:
            start_sign = _sign(current)
        elif _sign(gap[opened]) != _sign(current):
            # Between two open columns the gap may have rested at zero: it closed in the column after ``opened``.
            previous, following = gap[opened], gap[opened + 1]
            crossings.append(opened + previous / (previous - following))
        opened = column
    return BreakEvenMonth(
        first, second, tuple(crossings), cheaper.get(start_sign), cheaper.get(_sign(gap[-1])) if gap else None
    )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


@dataclass(frozen=True, slots=True)
class BreakEvenUtilisation:
    """The utilisation at which the net present values are equal; ``reason`` says why where there is none in 0 … 1."""

    first: str
    second: str
    utilisation_fraction: float | None
    cheaper_below: str | None
    cheaper_above: str | None
    reason: str | None = None


def break_even_utilisation(
    first: str, second: str, first_usd: tuple[float, float], second_usd: tuple[float, float]
) -> BreakEvenUtilisation:
    """Net present value is a straight line in utilisation (fleets are sized for the peak; power and API bills grow with
    use), so its values at 0 and 1 give the crossing.

    >>> found = break_even_utilisation("fleet", "api", (60.0, 70.0), (0.0, 170.0))
    >>> found.utilisation_fraction, found.cheaper_below, found.cheaper_above
    (0.375, 'api', 'fleet')
    """
    idle, busy = first_usd[0] - second_usd[0], first_usd[1] - second_usd[1]
    if idle == busy or (idle > 0) == (busy > 0):
        if idle == busy == 0:
            return BreakEvenUtilisation(first, second, None, None, None, "equal at every utilisation")
        cheaper = second if idle + busy > 0 else first
        return BreakEvenUtilisation(first, second, None, cheaper, cheaper, f"{cheaper} is cheaper at every utilisation")
    below, above = (second, first) if idle > 0 or busy < 0 else (first, second)
    return BreakEvenUtilisation(first, second, idle / (idle - busy), below, above)
