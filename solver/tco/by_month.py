"""What demand, prices and wages are month by month, and in which column a payment stands."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from solver.tco import renting
from solver.tco.alternatives import PurchasedFleet, RentedFleet, Scenario
from solver.tco.figures import Array, Quantity

Values: TypeAlias = Mapping[str, Array]
"""Each input as a column (draws × 1)."""


def demand_factor(scenario: Scenario, values: Values) -> Array:
    """Demand relative to that stated, by month; one row where it is the same in every draw."""
    growth = values["growth_fraction_per_month"]
    months = month_starts(scenario)
    ramp = np.minimum(1.0, (months + 1.0) / scenario.ramp_months) if scenario.ramp_months else np.ones_like(months)
    if not growth.any():
        return np.asarray(ramp[np.newaxis, :])
    return np.asarray(renting.growth_factor(months, growth) * ramp)


def nodes_needed(fleet: RentedFleet | PurchasedFleet, demand: Array) -> Array:
    """Nodes by month: those of the start until demand exceeds what they carry, then whole steps on top; fewer, in whole
    steps, where demand is below that of the start.

    >>> fleet = RentedFleet("rent", 4, 8, {}, carries=1.5, nodes_per_step=2)
    >>> nodes_needed(fleet, np.array([[0.4, 1.0, 1.5, 1.6, 2.5]])).tolist()
    [[2.0, 4.0, 4.0, 6.0, 8.0]]
    """
    step = float(fleet.nodes_per_step)
    fewer = np.minimum(fleet.nodes, renting.whole_nodes(fleet.nodes * demand / step) * step)
    more = renting.whole_nodes(fleet.nodes * np.maximum(0.0, demand / fleet.carries - 1.0) / step) * step
    return np.asarray(np.where(demand < 1.0, fewer, fleet.nodes + more))


def month_starts(scenario: Scenario) -> Array:
    """Months from the start at which each month begins."""
    return np.arange(scenario.horizon_months, dtype=float)


def price_factors(scenario: Scenario, values: Values, change: str) -> Array:
    """How a market's prices move from the start, by month."""
    per_year = values[change]
    if not per_year.any():
        return np.ones((1, scenario.horizon_months))
    return np.asarray(renting.price_factor(month_starts(scenario), per_year))


def price_when_ordered(fleet: PurchasedFleet, scenario: Scenario, values: Values) -> Array:
    """How dear machines are that start in each month, relative to the start: by the month they are ordered in."""
    factor = price_factors(scenario, values, "hardware_change_fraction_per_year")
    return np.asarray(factor[:, np.maximum(0, np.arange(scenario.horizon_months) - fleet.lead_time_months)])


def inflation_factors(scenario: Scenario, values: Values) -> Array:
    """How wages and tariffs rise from the start, by month."""
    inflation = values["inflation_fraction_per_year"]
    if not inflation.any():
        return np.ones((1, scenario.horizon_months))
    return np.asarray(renting.inflation_factor(month_starts(scenario), inflation))


def at_month_ends(by_month: Quantity, months: int) -> Array:
    """Bills: month k is paid in column k."""
    array = np.atleast_2d(np.asarray(by_month, dtype=float))
    array = np.broadcast_to(array, (array.shape[0], months))
    return np.concatenate([np.zeros((array.shape[0], 1)), array], axis=1)


def at_month_starts(by_month: Quantity, months: int) -> Array:
    """Outlays: month k is paid in column k − 1."""
    array = np.atleast_2d(np.asarray(by_month, dtype=float))
    array = np.broadcast_to(array, (array.shape[0], months))
    return np.concatenate([array, np.zeros((array.shape[0], 1))], axis=1)
