"""Book value and charge by month: the accounting view of a purchase. It moves no cash and enters no total."""

import numpy as np

from solver.tco.alternatives import PurchasedFleet
from solver.tco.capital import declining_balance_rate_per_month, declining_book_value, straight_line_book_value
from solver.tco.figures import Array


def book_values_usd(fleet: PurchasedFleet, price_usd: float, residual_usd: float, months: int) -> Array:
    """Book value at the start and at the end of each month, by the fleet's own method.

    >>> from solver.tco.figures import exactly
    >>> fleet = PurchasedFleet("buy", 1, 8, {}, life_months=4)
    >>> book_values_usd(fleet, 400.0, 40.0, 5).tolist()
    [400.0, 310.0, 220.0, 130.0, 40.0, 40.0]
    """
    ages = np.arange(months + 1.0)
    if fleet.depreciation == "straight_line":
        return np.asarray(straight_line_book_value(price_usd, residual_usd, fleet.life_months, ages))
    rate = declining_balance_rate_per_month(fleet.life_months, fleet.declining_multiple)
    return np.asarray(declining_book_value(price_usd, residual_usd, rate, ages))


def charges_usd(book_values: Array) -> Array:
    """Depreciation charged in each month: what book value loses.

    >>> charges_usd(np.array([400.0, 310.0, 220.0])).tolist()
    [90.0, 90.0]
    """
    return np.asarray(-np.diff(book_values))
