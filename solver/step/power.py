"""Board power of one device from what it does.

    raw = P_limit · (idle + memory·u_mem + compute·u_flop)          u: share of the datasheet rate in use
    P   = cap · (1 − exp(−(raw/cap)⁴))^¼                             cap = P_limit · cap fraction

The second line bends the first towards the sustained maximum: a board's power management holds it there.
"""

import numpy as np

from solver.step.constants import Constants
from solver.step.gemm import Quantity

LAW_ORDER = 4.0
"""Sharpness of the bend; part of the law, like the order of the soft maximum."""


def capped_w(raw_w: Quantity, cap_w: Quantity) -> Quantity:
    """Smooth minimum of demanded and sustained power.

    >>> round(float(capped_w(100.0, 700.0)), 1), round(float(capped_w(5000.0, 700.0)), 1)
    (100.0, 700.0)
    """
    ratio = np.asarray(raw_w) / np.maximum(cap_w, 1e-9)
    return cap_w * (-np.expm1(-(ratio**LAW_ORDER))) ** (1.0 / LAW_ORDER)


def board_power_w(
    power_limit_w: Quantity,
    constants: Constants,
    *,
    memory_utilisation: Quantity,
    compute_utilisation: Quantity,
    narrow: bool,
) -> Quantity:
    """Mean power of one device at given shares of its datasheet memory bandwidth and matrix rate.

    narrow: the matrix rate is that of an 8-bit or narrower dtype. Raises FigureMissingError without power constants.
    """
    compute = constants.si("compute_power_fraction_8bit" if narrow else "compute_power_fraction_16bit")
    raw = power_limit_w * (
        constants.si("idle_power_fraction")
        + constants.si("memory_power_fraction") * memory_utilisation
        + compute * compute_utilisation
    )
    return capped_w(raw, power_limit_w * constants.si("power_cap_fraction"))
