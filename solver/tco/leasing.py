"""Leased machines: rates for a term, then returned or bought out. All else is as for machines of one's own."""

import numpy as np

from solver.tco.alternatives import Lease, PurchasedFleet, Scenario
from solver.tco.by_month import Values, price_when_ordered
from solver.tco.capital import annuity_factor, monthly_rate
from solver.tco.contracts import contract_flows, contract_standing
from solver.tco.figures import Array, Quantity
from solver.tco.write_off import resale_fraction


def lease_rate_usd_per_month(
    price_usd: Quantity, left_to_lessor_usd: Quantity, implicit_fraction_per_year: Quantity, term_months: int
) -> Quantity:
    """Level rate, paid at the end of each month, that gives a lessor its implicit rate on what machines cost it, less what
    they bring it at the end (the buyout, or what returned machines fetch).

        (P − R · (1 + i)^−n) · i / (1 − (1 + i)^−n),   i monthly, n months

    >>> round(float(lease_rate_usd_per_month(36_000.0, 0.0, 0.0, 36)), 2)
    1000.0
    >>> round(float(lease_rate_usd_per_month(300_000.0, 30_000.0, 0.15, 36)), 2)
    9587.0
    """
    rate = monthly_rate(implicit_fraction_per_year)
    discounted = left_to_lessor_usd * (1.0 + rate) ** -term_months
    return (price_usd - discounted) * annuity_factor(rate, term_months)


def leased(
    fleet: PurchasedFleet, lease: Lease, scenario: Scenario, values: Values, started: Array
) -> tuple[Array, Array, Array]:
    """By column: rates, what of them outlasts the horizon and is owed there, and buyouts."""
    rates, owed = contract_flows(
        _contracted(fleet, scenario, values, started), lease.term_months, 0.0, lease.in_advance
    )
    return rates, owed, _bought_out(fleet, lease, scenario, values, started)


def _contracted(fleet: PurchasedFleet, scenario: Scenario, values: Values, started: Array) -> Array:
    """Rates a month of the leases that start in each month, at the price of the month they are ordered in."""
    return np.asarray(started * values["lease_usd_per_node_month"] * price_when_ordered(fleet, scenario, values))


def _bought_out(fleet: PurchasedFleet, lease: Lease, scenario: Scenario, values: Values, started: Array) -> Array:
    months = scenario.horizon_months
    if not lease.bought_out:
        return np.zeros((1, months + 1))
    prices = started * values["buyout_usd_per_node"] * price_when_ordered(fleet, scenario, values)
    paid = np.zeros((len(prices), months + 1))
    paid[:, lease.term_months :] = prices[:, : max(0, months + 1 - lease.term_months)]
    return paid


def own_to_sell(fleet: PurchasedFleet, machines: Array, spares: Array) -> Array:
    """Of what machines and spares cost, by the month they start in: what is one's own when they are sold.

    >>> fleet = PurchasedFleet("lease", 1, 8, {}, life_months=5, lease=Lease(2, bought_out=True))
    >>> own_to_sell(fleet, np.array([[9.0, 9.0, 9.0]]), np.array([[1.0, 1.0, 1.0]])).tolist()
    [[10.0, 10.0, 1.0]]
    """
    if fleet.lease is None:
        return np.asarray(machines + spares)
    months = machines.shape[-1]
    ended = np.arange(months) + fleet.lease.term_months <= months
    return np.asarray(spares + machines * (ended & fleet.lease.bought_out))


def buyouts_written_off(fleet: PurchasedFleet, lease: Lease, machines: Array, buyouts: Array, values: Values) -> Array:
    """Depreciation by column of machines bought out, in equal charges over the rest of their life down to what they fetch
    then, and what book value differs from the price when they are sold. machines: what they cost when new."""
    months = machines.shape[-1]
    charged = np.zeros((max(len(machines), len(buyouts), len(_at(0, fleet, values))), months + 1))
    rest = fleet.life_months - lease.term_months
    for column in np.flatnonzero(buyouts.any(axis=0)).tolist():
        start = column - lease.term_months
        new, price = machines[:, start : start + 1], buyouts[:, column : column + 1]
        sold = min(start + fleet.life_months, months)
        left = np.minimum(price, new * _at(fleet.life_months, fleet, values))
        each = (price - left) / max(1, rest)
        charged[:, column + 1 : sold + 1] += each
        book = price - each * (sold - column)
        charged[:, sold : sold + 1] += book - new * _at(sold - start, fleet, values)
    return charged


def _at(age_months: int, fleet: PurchasedFleet, values: Values) -> Array:
    return resale_fraction(float(age_months), fleet.life_months, values)


def lease_standing(
    fleet: PurchasedFleet, lease: Lease, scenario: Scenario, values: Values, started: Array, machines: Array
) -> dict[str, Array]:
    """Of the stated case, by column: rates prepaid and owed, and machines bought out by their market and book value."""
    contracted = _contracted(fleet, scenario, values, started)[0]
    prepaid, owed = contract_standing(contracted, lease.term_months, 0.0, lease.in_advance)
    market, book = np.zeros_like(owed), np.zeros_like(owed)
    buyouts = _bought_out(fleet, lease, scenario, values, started)[0]
    last = len(owed) - 1
    rest = max(1, fleet.life_months - lease.term_months)
    for column in np.flatnonzero(buyouts).tolist():
        start = column - lease.term_months
        left = min(buyouts[column], machines[0, start] * float(_at(fleet.life_months, fleet, values)[0, 0]))
        # Sold at the end of their life, in that very column; bought out and at once sold where that is when the lease ends.
        for now in range(column, min(start + fleet.life_months, last + 1)):
            market[now] += machines[0, start] * float(_at(now - start, fleet, values)[0, 0])
            book[now] += buyouts[column] - (buyouts[column] - left) * (now - column) / rest
    return {"prepaid": prepaid, "owed": owed, "market": market, "book": book}
