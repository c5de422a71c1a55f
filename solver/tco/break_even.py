"""When, and at which utilisation, two alternatives cost the same."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BreakEvenMonth:
    """Where two cumulative cost curves cross first.

    month: months from the start (a fraction within a month, by straight line); None where they never cross.
    cheaper_before, cheaper_after: names; without a crossing both are the one that is cheaper all along.
    """

    first: str
    second: str
    month: float | None
    cheaper_before: str | None
    cheaper_after: str | None


def break_even_month(
    first: str, second: str, first_micro: NDArray[np.int64], second_micro: NDArray[np.int64]
) -> BreakEvenMonth:
    """The first crossing of the cumulative costs, on exact money.

    >>> buy, rent = np.array([100, 0, 0, 0]), np.array([0, 40, 40, 40])
    >>> break_even_month("buy", "rent", buy, rent)
    BreakEvenMonth(first='buy', second='rent', month=2.5, cheaper_before='rent', cheaper_after='buy')
    """
    gap = np.cumsum(first_micro) - np.cumsum(second_micro)
    different = np.flatnonzero(gap)
    if different.size == 0:
        return BreakEvenMonth(first, second, None, None, None)
    start_sign = int(np.sign(gap[different[0]]))
    before = second if start_sign > 0 else first
    crossed = np.flatnonzero(np.sign(gap) == -start_sign)
    if crossed.size == 0:
        return BreakEvenMonth(first, second, None, before, before)
    column = int(crossed[0])
    previous, current = int(gap[column - 1]), int(gap[column])
    month = column - 1 + previous / (previous - current)
    if previous == 0:  # the curves touched first: equality began where the gap last was open
        month = float(np.flatnonzero(gap[:column])[-1] + 1)
    return BreakEvenMonth(first, second, month, before, first if before == second else second)


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
