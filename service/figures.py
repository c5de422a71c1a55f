"""Numbers in sentences: as many digits as they carry, never with an exponent."""


def readable(value: float, digits: int = 3) -> str:
    """Rounded to ``digits`` significant digits, thousands apart.

    >>> readable(1634.2), readable(739.71), readable(31.46), readable(0.0421), readable(69.316, 4)
    ('1,630', '740', '31.5', '0.0421', '69.32')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"
