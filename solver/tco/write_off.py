"""What machines are worth as they age: on the market, in the accounts, and what is charged for it."""

import numpy as np

from solver.tco.alternatives import PurchasedFleet, Scenario
from solver.tco.by_month import Values
from solver.tco.capital import (
    declining_balance_rate_per_month,
    declining_book_value,
    residual_fraction_at,
    residual_fraction_towards,
    straight_line_book_value,
)
from solver.tco.figures import Array, Quantity


def resale_fraction(age_months: float, life_months: int, values: Values) -> Array:
    """Of the price paid, at that age. A stated figure is that at the end of the machines' life."""
    if "residual_fraction" in values:
        return np.asarray(residual_fraction_towards(age_months, values["residual_fraction"], life_months))
    return np.asarray(
        residual_fraction_at(
            age_months, values["residual_fraction_after_3_years"], values["residual_fraction_after_5_years"]
        )
    )


def book_value(fleet: PurchasedFleet, price: Quantity, residual: Quantity, age_months: float) -> Quantity:
    """Value in the accounts, by the fleet's own method, down to what the machines fetch at the end of their life."""
    if fleet.depreciation == "straight_line":
        return straight_line_book_value(price, residual, fleet.life_months, age_months)
    rate = declining_balance_rate_per_month(fleet.life_months, fleet.declining_multiple)
    return declining_book_value(price, residual, rate, age_months)


def written_off(fleet: PurchasedFleet, spent: Array, resold: Array, scenario: Scenario, values: Values) -> Array:
    """Depreciation by month, and what the book value differs from the price when machines are sold."""
    months = scenario.horizon_months
    at_end = resale_fraction(float(fleet.life_months), fleet.life_months, values)
    charged = np.zeros((max(len(spent), len(at_end)), months + 1))
    for month in np.flatnonzero(spent.any(axis=0)).tolist():
        price, left = spent[:, month : month + 1], resold[:, month : month + 1] * at_end
        sold = min(month + fleet.life_months, months)
        before = price
        for column in range(month + 1, sold + 1):
            after = book_value(fleet, price, left, float(column - month))
            charged[:, column] += (before - after)[:, 0]
            before = np.asarray(after)
        fetched = resold[:, month : month + 1] * resale_fraction(float(sold - month), fleet.life_months, values)
        charged[:, sold] += (before - fetched)[:, 0]
    return charged
