"""What an alternative would have cost if it ended after any given month: the curve that break-even points are read from.

Cumulative cash alone says little about owned machines, because the price is paid at once and the machines are worth
something until they are sold. Here they are valued month by month, loans are repaid and commitments paid off, so the value
after month k is the total cost of the same alternative over a horizon of k months, whatever horizon is asked for.
"""

from dataclasses import dataclass

import numpy as np

from solver.tco.alternatives import PurchasedFleet, RentedFleet, Scenario, Single
from solver.tco.by_month import Values, demand_factor, nodes_needed
from solver.tco.capital import (
    MONTHS_PER_YEAR,
    discount_factors,
    loan_balance_fraction,
)
from solver.tco.cash_flows import cash_flows, hardware_outlays, market_rent_per_month, paid_when_ordered
from solver.tco.cohorts import starts
from solver.tco.figures import Array
from solver.tco.write_off import book_value, resale_fraction

NAMES = ("cash", "prepaid", "owed", "market", "book", "fresh", "relief")


@dataclass(frozen=True, slots=True)
class Standing:
    """USD at the start and at the end of each month, for the stated case.

    cash: all flows so far. prepaid: paid at that instant for the month that begins. owed: loans, commitments and what
    taking machines out costs, still to be paid. market, book: what the machines at hand would fetch, and what the accounts
    value them at; fresh: machines bought at that instant, which are not in ``market`` yet. relief: income tax that ending
    there would save.
    """

    cash: Array
    prepaid: Array
    owed: Array
    market: Array
    book: Array
    fresh: Array
    relief: Array

    @property
    def if_ended(self) -> Array:
        """Total cost had everything ended there."""
        return np.asarray(self.cash - self.prepaid + self.owed - self.market - self.relief)

    def present_value_if_ended(self, discount_fraction_per_year: float) -> Array:
        """The same with every flow discounted to the start."""
        factors = discount_factors(discount_fraction_per_year, len(self.cash) - 1)
        flows = np.diff(self.cash, prepend=0.0)
        return np.asarray(np.cumsum(flows * factors) + (self.owed - self.prepaid - self.market - self.relief) * factors)


def standing(alternative: Single, scenario: Scenario, values: Values) -> Standing:
    """``values``: one row, the stated case. Cash at the horizon is that before machines are sold and debts paid for good."""
    flows = cash_flows(alternative, scenario, values)
    columns = scenario.horizon_months + 1
    cash = np.cumsum(sum((line[0] for line in flows.lines.values()), start=np.zeros(columns)))
    found = Standing(cash, *(np.zeros(columns) for _ in range(6)))
    if isinstance(alternative, RentedFleet) and alternative.term_months is not None:
        _committed(alternative, alternative.term_months, scenario, values, found)
    elif isinstance(alternative, PurchasedFleet):
        _owned(alternative, scenario, values, found)
    found.cash[-1] += found.market[-1] + found.relief[-1] - found.owed[-1]
    return found


def added(parts: list[Standing]) -> Standing:
    """Several kinds of node together."""
    return Standing(*(np.asarray(sum(getattr(part, name) for part in parts)) for name in NAMES))


def _income_tax(values: Values) -> float:
    return float(values["income_tax_fraction"][0, 0]) if "income_tax_fraction" in values else 0.0


def _taxed(values: Values) -> float:
    return 1.0 + float(values["tax_fraction"][0, 0])


def _committed(fleet: RentedFleet, term: int, scenario: Scenario, values: Values, found: Standing) -> None:
    started = starts(nodes_needed(fleet, demand_factor(scenario, values)), term)
    contracted = (started * market_rent_per_month(fleet, scenario, values))[0] * _taxed(values)
    for month in np.flatnonzero(contracted).tolist():
        found.prepaid[month] += contracted[month] * term * fleet.upfront_fraction
        end = min(month + term, len(found.owed) - 1)
        ahead = np.arange(month + 1, end + 1)
        found.owed[ahead] += contracted[month] * (1.0 - fleet.upfront_fraction) * (month + term - ahead)
    found.relief[:] = _income_tax(values) * (found.owed - found.prepaid)


def _owned(fleet: PurchasedFleet, scenario: Scenario, values: Values, found: Standing) -> None:
    """A deposit on machines not yet delivered counts at what was paid."""
    started = starts(nodes_needed(fleet, demand_factor(scenario, values)), fleet.life_months)
    outlays = hardware_outlays(fleet, scenario, values, started)
    resold = (outlays["purchase"] + outlays["spares"])[0]
    spent = np.asarray(sum(outlays.values()))
    ordered = paid_when_ordered(spent, fleet.lead_time_months)[0] * _taxed(values)
    last = len(found.market) - 1
    sales_tax_relief = _income_tax(values) * (_taxed(values) - 1.0)  # it is an expense when machines are paid for
    for month in np.flatnonzero(spent[0]).tolist():
        end = min(month + fleet.life_months, last + 1)
        for column in range(month + 1, end):
            age = float(column - month)
            fetched = float(resale_fraction(age, fleet.life_months, values)[0, 0])
            found.market[column] += resold[month] * fetched
        found.fresh[month] += resold[month]
        if "decommissioning_usd_per_node" in values:
            dearer = 1.0 + float(values["inflation_fraction_per_year"][0, 0])
            due = np.arange(month + 1, end)
            each = float(values["decommissioning_usd_per_node"][0, 0]) * dearer ** ((due - 1) / MONTHS_PER_YEAR)
            found.owed[due] += started[0, month] * each * _taxed(values)
            found.relief[due] += started[0, month] * each * _taxed(values) * _income_tax(values)
        left = float(resale_fraction(float(fleet.life_months), fleet.life_months, values)[0, 0]) * resold[month]
        for column in range(month, end):
            value = float(book_value(fleet, float(spent[0, month]), left, float(column - month)))
            found.book[column] += value
            if column > month:
                fetched = resold[month] * float(resale_fraction(float(column - month), fleet.life_months, values)[0, 0])
                found.relief[column] += _income_tax(values) * (value - fetched)
        placed = max(0, month - fleet.lead_time_months)
        found.market[placed + 1 : month + 1] += spent[0, month] * _taxed(values)
        found.relief[placed + 1 : month + 1] -= spent[0, month] * sales_tax_relief
    if fleet.finance_term_months is None:
        found.prepaid[:-1] += ordered
        found.relief[:-1] -= ordered / _taxed(values) * sales_tax_relief
        return
    rate = values["finance_fraction_per_year"][0, 0]
    for month in np.flatnonzero(ordered).tolist():
        ahead = np.arange(month + 1, last + 1)
        balance = loan_balance_fraction(rate, fleet.finance_term_months, np.asarray(ahead - month, dtype=float))
        found.owed[ahead] += ordered[month] * balance
        found.relief[ahead] += ordered[month] / _taxed(values) * sales_tax_relief * balance
