"""Rent: by the hour, interrupted, committed."""

import numpy as np

from solver.errors import InvalidInputError
from solver.tco.figures import Array, Quantity
from solver.units import HOURS_PER_MONTH


def rent_usd_per_month(node_hours: Quantity, usd_per_node_hour: Quantity) -> Quantity:
    """
    >>> rent_usd_per_month(2 * 730.0, 41.76)
    60969.6
    """
    return node_hours * usd_per_node_hour


def node_hours_per_month(nodes: Quantity) -> Quantity:
    """Nodes that are never switched off.

    >>> node_hours_per_month(2.0)
    1460.0
    """
    return nodes * HOURS_PER_MONTH


def node_hours_following(nodes: Array, hourly_profile: tuple[float, ...]) -> Array:
    """Node-hours of a month when the count follows the day: each hour rents the whole nodes its demand needs.

    hourly_profile: demand of each hour of the day relative to the peak hour.

    >>> float(node_hours_following(np.array([10.0]), (0.25,) * 12 + (1.0,) * 12)[0])
    4745.0
    """
    if not hourly_profile or any(not 0.0 <= share <= 1.0 for share in hourly_profile):
        raise InvalidInputError("hourly shares must lie between 0 and 1, and there must be some")
    hours_each = HOURS_PER_MONTH / len(hourly_profile)
    return np.asarray(sum(whole_nodes(nodes * share) for share in hourly_profile) * hours_each)


def whole_nodes(needed: Array) -> Array:
    """Rounded up, tolerant of rounding noise just above a whole number.

    >>> whole_nodes(np.array([2.0, 2.0000000001, 2.1])).tolist()
    [2.0, 2.0, 3.0]
    """
    return np.asarray(np.ceil(needed - 1e-9))


def spot_overhead_factor(interruptions_per_node_month: Quantity, lost_hours_per_interruption: Quantity) -> Quantity:
    """Node-hours paid per useful node-hour: 1 / (1 − interruptions · lost hours / 730).

    Raises InvalidInputError when interruptions leave no useful time.

    >>> round(float(spot_overhead_factor(7.3, 1.0)), 6)
    1.010101
    """
    lost = interruptions_per_node_month * lost_hours_per_interruption / HOURS_PER_MONTH
    if np.any(np.asarray(lost) >= 1.0):
        raise InvalidInputError("spot interruptions leave no useful hour")
    return 1.0 / (1.0 - lost)


def price_factor(months: Quantity, change_fraction_per_year: Quantity) -> Quantity:
    """A market price relative to the start, changing by the same share every year: (1 + c)^(months / 12).

    >>> round(price_factor(24.0, -0.2), 6)
    0.64
    """
    return (1.0 + change_fraction_per_year) ** (months / 12.0)


def inflation_factor(months: Quantity, inflation_fraction_per_year: Quantity) -> Quantity:
    """
    >>> round(inflation_factor(12.0, 0.03), 6)
    1.03
    """
    return (1.0 + inflation_fraction_per_year) ** (months / 12.0)


def growth_factor(months: Quantity, growth_fraction_per_month: Quantity) -> Quantity:
    """Demand relative to the first month.

    >>> round(growth_factor(2.0, 0.1), 6)
    1.21
    """
    return (1.0 + growth_fraction_per_month) ** months
