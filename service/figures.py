"""Numbers in sentences: as many digits as they carry, never with an exponent."""

import math


def readable(value: float, digits: int = 3) -> str:
    """Rounded to ``digits`` significant digits, thousands apart.

    >>> readable(1634.2), readable(739.71), readable(31.46), readable(0.0421), readable(69.316, 4)
    ('1,630', '740', '31.5', '0.0421', '69.32')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"


def unrounded(value: float) -> str:
    """A figure that somebody stated, as stated.

    >>> unrounded(60_000.0), unrounded(0.05), unrounded(12.3456)
    ('60000', '0.05', '12.3456')
    """
    return f"{value:.12g}"


def rounded_down(value: float) -> str:
    """Three digits, never more than the value: what is said to be possible is.

    >>> rounded_down(66.68), rounded_down(0.05999), rounded_down(100.0)
    ('66.6', '0.0599', '100')
    """
    digits = 2 - math.floor(math.log10(value)) if value > 0.0 else 0
    least = math.floor(value * 10.0**digits * (1.0 + 1e-12)) / 10.0**digits
    return f"{least:.3g}"
