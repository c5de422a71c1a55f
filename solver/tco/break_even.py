"""When, and at which utilisation, two alternatives cost the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solver.tco.figures import Array
from solver.tco.money import MICRO_PER_USD


@dataclass(frozen=True, slots=True)
class Crossings:
    """Where two curves of cost so far cross.

    months: from the start, ascending (a fraction within a month, by straight line); machines renewed or prices that move
    may cross them more than once. cheaper_at_start: who has cost less once they first differ; cheaper_at_horizon: at the
    horizon, None where equal.
    """

    months: tuple[float, ...]
    cheaper_at_start: str | None
    cheaper_at_horizon: str | None

    @property
    def month(self) -> float | None:
        """The first crossing."""
        return self.months[0] if self.months else None


@dataclass(frozen=True, slots=True)
class BreakEvenMonth:
    """The same pair by three curves, month by month to ``until_month``, which lies beyond a short horizon: a break-even
    point does not depend on the horizon it is asked for with.

    if_ended: what either would have cost had it ended then, machines sold and debts paid. discounted: the same in present
    value (discounted payback). cash: payments alone, machines worth nothing until they are sold.
    """

    first: str
    second: str
    until_month: int
    if_ended: Crossings
    discounted: Crossings
    cash: Crossings


def crossings(
    first: str, second: str, first_usd: Sequence[float] | Array, second_usd: Array, horizon: int
) -> Crossings:
    """Every crossing of two curves, compared in whole micro-dollars. Curves that only touch do not cross.

    >>> buy, rent = np.array([100.0, 100.0, 100.0, 100.0]), np.array([0.0, 40.0, 80.0, 120.0])
    >>> crossings("buy", "rent", buy, rent, 3)
    Crossings(months=(2.5,), cheaper_at_start='rent', cheaper_at_horizon='buy')
    """
    gap = [round(g * MICRO_PER_USD) for g in (np.asarray(first_usd) - second_usd).tolist()]
    cheaper = {1: second, -1: first}
    found: list[float] = []
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
            found.append(opened + previous / (previous - following))
        opened = column
    return Crossings(tuple(found), cheaper.get(start_sign), cheaper.get(_sign(gap[min(horizon, len(gap) - 1)])))


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
