"""Exact money: whole micro-dollars.

Formulas work in binary floats over thousands of draws; what is shown is rounded once, per line and month, to whole
micro-dollars (the six decimal places of the wire). Integers add exactly, so lines sum to totals to the cent and below.
Cents would lose an API bill of a few tokens; ``Decimal`` would cost a hundred times the time and add nothing.
"""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from solver.tco.errors import CostInputError
from solver.tco.figures import Array

MICRO_PER_USD = 1_000_000
MOST_TOTAL_USD = 1e12
"""Far above any fleet, far below what 64-bit micro-dollars hold (9.2e12)."""


def micro_dollars(usd: Array, alternative: str | None = None) -> NDArray[np.int64]:
    """Rounded half to even. alternative: whose costs they are. Raises CostInputError when the sum of magnitudes leaves the exact range.

    >>> micro_dollars(np.array([0.1, 2.0000004]))
    array([ 100000, 2000000])
    """
    if not np.isfinite(usd).all() or float(np.abs(usd).sum()) > MOST_TOTAL_USD:
        raise CostInputError("costs", f"exceed {MOST_TOTAL_USD:g} USD; check prices, counts and growth", alternative)
    return np.rint(usd * MICRO_PER_USD).astype(np.int64)


def decimal_usd(micro: int) -> Decimal:
    """
    >>> decimal_usd(12_480_000)
    Decimal('12.480000')
    """
    return Decimal(int(micro)).scaleb(-6)


def in_currency(usd: Decimal, usd_per_unit: Decimal) -> Decimal:
    """The same amount in another currency at a stated rate (USD per unit of it), rounded to six places.

    >>> in_currency(Decimal("108.00"), Decimal("1.08"))
    Decimal('100.000000')
    """
    if not usd_per_unit.is_finite() or usd_per_unit <= 0:
        raise CostInputError("currency.usd_per_unit", "must be above 0")
    return (usd / usd_per_unit).quantize(Decimal("0.000001"))
