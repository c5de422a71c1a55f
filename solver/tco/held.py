"""Machines that are there already. What was paid for them is sunk and in no line; keeping them gives up what they would
fetch today, so that they cost what they are worth now, exactly as if they were bought used."""

import numpy as np

from solver.tco.alternatives import HeldMachines, PurchasedFleet, Scenario
from solver.tco.by_month import Values, inflation_factors
from solver.tco.cohorts import starts
from solver.tco.figures import Array
from solver.tco.write_off import book_value, resale_fraction


def held_alive(fleet: PurchasedFleet, months: int) -> Array:
    """Nodes held from before that still run, by month.

    >>> held_alive(PurchasedFleet("keep", 3, 8, {}, life_months=36, held=HeldMachines(2, 34)), 4).tolist()
    [[2.0, 2.0, 0.0, 0.0]]
    """
    alive = np.zeros((1, months))
    if fleet.held is not None:
        alive[:, : fleet.life_months - fleet.held.age_months] = fleet.held.nodes
    return alive


def to_start(fleet: PurchasedFleet, needed: Array) -> Array:
    """Nodes to buy or lease in each month, beside those that are there already."""
    beside = needed - held_alive(fleet, needed.shape[-1])
    return starts(np.maximum(0.0, beside), fleet.life_months)


def given_up(fleet: PurchasedFleet, held: HeldMachines, scenario: Scenario, values: Values) -> tuple[Array, Array]:
    """By column: what selling them at the start would have brought, and what they fetch at the end of their life or at the
    horizon (both positive)."""
    last = _sold(fleet, held, scenario)
    worth_now, fetched = _worth(fleet, held, values, 0), _worth(fleet, held, values, last)
    first, final = (np.zeros((len(worth_now), scenario.horizon_months + 1)) for _ in range(2))
    first[:, :1] = worth_now
    final[:, last : last + 1] = fetched
    return first, final


def taken_out(fleet: PurchasedFleet, held: HeldMachines, scenario: Scenario, values: Values) -> Array:
    """Decommissioning by column, at the prices of the month before."""
    last = _sold(fleet, held, scenario)
    each = values["decommissioning_usd_per_node"] * inflation_factors(scenario, values)
    spent = np.zeros((len(each), scenario.horizon_months + 1))
    spent[:, last] = held.nodes * each[:, last - 1]
    return spent


def held_written_off(fleet: PurchasedFleet, held: HeldMachines, scenario: Scenario, values: Values) -> Array:
    """Depreciation by column, with what book value differs from the price at the start, given up, and when they are sold."""
    last = _sold(fleet, held, scenario)
    books = [_book(fleet, held, values, month) for month in range(last + 1)]
    worth_now, fetched = _worth(fleet, held, values, 0), _worth(fleet, held, values, last)
    charged = np.zeros((len(worth_now), scenario.horizon_months + 1))
    charged[:, :1] += worth_now - books[0]
    for month in range(1, last + 1):
        charged[:, month : month + 1] += books[month - 1] - books[month]
    charged[:, last : last + 1] += books[last] - fetched
    return charged


def paid_for(held: HeldMachines, values: Values) -> Array:
    """What they cost when new: sunk, and what maintenance and insurance are counted on."""
    return np.asarray(held.nodes * values["held_usd_per_node"])


def held_standing(fleet: PurchasedFleet, held: HeldMachines, columns: int, values: Values) -> tuple[Array, Array]:
    """Of the stated case, by column: what they would fetch, and what the accounts value them at."""
    market, book = np.zeros(columns), np.zeros(columns)
    for month in range(min(fleet.life_months - held.age_months, columns)):
        market[month] = _worth(fleet, held, values, month)[0, 0]
        book[month] = np.asarray(_book(fleet, held, values, month))[0, 0]
    return market, book


def _sold(fleet: PurchasedFleet, held: HeldMachines, scenario: Scenario) -> int:
    return min(fleet.life_months - held.age_months, scenario.horizon_months)


def _worth(fleet: PurchasedFleet, held: HeldMachines, values: Values, month: int) -> Array:
    fraction = resale_fraction(float(held.age_months + month), fleet.life_months, values)
    return np.asarray(paid_for(held, values) * fraction)


def _book(fleet: PurchasedFleet, held: HeldMachines, values: Values, month: int) -> Array:
    left = paid_for(held, values) * resale_fraction(float(fleet.life_months), fleet.life_months, values)
    return np.asarray(book_value(fleet, paid_for(held, values), left, float(held.age_months + month)))
