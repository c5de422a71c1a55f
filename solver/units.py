"""Units used inside the solver: SI base units, plus the few constants that conversions need."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

GIB_BYTES = 2**30
"""Bytes in one gibibyte; engines report memory in it."""

SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0
"""Billing convention: 8,760 hours a year over twelve months."""

TOKENS_PER_MILLION = 1e6
WATTS_PER_KILOWATT = 1e3
Quantity = TypeVar("Quantity", float, NDArray[np.float64])


def bytes_from_gib(gib: float) -> float:
    """
    >>> bytes_from_gib(2.0)
    2147483648.0
    """
    return gib * GIB_BYTES


def gib_from_bytes(size_bytes: float) -> float:
    """
    >>> gib_from_bytes(3 * 2**30)
    3.0
    """
    return size_bytes / GIB_BYTES


def kg_per_hour(power_w: Quantity, kg_per_kwh: Quantity) -> Quantity:
    """
    >>> kg_per_hour(2500.0, 0.4)
    1.0
    """
    return power_w / WATTS_PER_KILOWATT * kg_per_kwh


def bytes_per_s_from_gbytes(gbytes_per_s: float) -> float:
    """From 10⁹ bytes a second.

    >>> bytes_per_s_from_gbytes(3.5)
    3500000000.0
    """
    return gbytes_per_s * 1e9


def gbytes_per_s(bytes_per_s: float) -> float:
    """In 10⁹ bytes a second.

    >>> gbytes_per_s(3.5e9)
    3.5
    """
    return bytes_per_s / 1e9
