"""Solver's floats → money."""

from decimal import ROUND_HALF_UP, Decimal

MICRO = Decimal("0.000001")


def usd(amount: float) -> Decimal:
    """To a millionth.

    >>> usd(41.76)
    Decimal('41.760000')
    """
    return Decimal(repr(amount)).quantize(MICRO, rounding=ROUND_HALF_UP)
