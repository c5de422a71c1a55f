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
from solver.tco.cash_flows import (
    cash_flows,
    hardware_outlays,
    market_rent_per_month,
    paid_when_ordered,
    rent_by_month,
    unused_per_used,
)
from solver.tco.cohorts import starts
from solver.tco.contracts import contract_standing
from solver.tco.figures import Array
from solver.tco.held import held_standing, to_start
from solver.tco.leasing import lease_standing
from solver.tco.write_off import book_value, resale_fraction

NAMES = ("cash", "prepaid", "owed", "market", "book", "fresh", "relief")


@dataclass(frozen=True, slots=True)
class FinancialPosition:
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


def standing(alternative: Single, scenario: Scenario, values: Values) -> FinancialPosition:
    """``values``: one row, the stated case. Cash at the horizon is that before machines are sold and debts paid for good."""
    flows = cash_flows(alternative, scenario, values)
    columns = scenario.horizon_months + 1
    cash = np.cumsum(sum((line[0] for line in flows.lines.values()), start=np.zeros(columns)))
    found = FinancialPosition(cash, *(np.zeros(columns) for _ in range(6)))
    if isinstance(alternative, RentedFleet) and alternative.term_months is not None:
        _committed(alternative, alternative.term_months, scenario, values, found)
    elif isinstance(alternative, RentedFleet) and alternative.in_advance:
        needed = nodes_needed(alternative, demand_factor(scenario, values))
        found.prepaid[:-1] += rent_by_month(alternative, needed, scenario, values)[0] * _taxed(values)
        found.relief[:] -= _income_tax(values) * found.prepaid
    elif isinstance(alternative, PurchasedFleet):
        _owned(alternative, scenario, values, found)
    found.cash[-1] += found.market[-1] + found.relief[-1] - found.owed[-1]
    return found


def added(parts: list[FinancialPosition]) -> FinancialPosition:
    """Several kinds of node together."""
    return FinancialPosition(*(np.asarray(sum(getattr(part, name) for part in parts)) for name in NAMES))


def _income_tax(values: Values) -> float:
    return float(values["income_tax_fraction"][0, 0]) if "income_tax_fraction" in values else 0.0


def _taxed(values: Values) -> float:
    return 1.0 + float(values["tax_fraction"][0, 0])


def _committed(fleet: RentedFleet, term: int, scenario: Scenario, values: Values, found: FinancialPosition) -> None:
    started = starts(nodes_needed(fleet, demand_factor(scenario, values)), term)
    contracted = (started * market_rent_per_month(fleet, scenario, values))[0] * _taxed(values)
    if "commitment_used_fraction" in values:
        contracted = contracted * (1.0 + unused_per_used(values)[0, 0])
    prepaid, owed = contract_standing(contracted, term, fleet.upfront_fraction, fleet.in_advance)
    found.prepaid[:] += prepaid
    found.owed[:] += owed
    found.relief[:] = _income_tax(values) * (owed - prepaid)


def _owned(fleet: PurchasedFleet, scenario: Scenario, values: Values, found: FinancialPosition) -> None:
    """A deposit on machines not yet delivered counts at what was paid."""
    started = to_start(fleet, nodes_needed(fleet, demand_factor(scenario, values)))
    outlays = hardware_outlays(fleet, scenario, values, started)
    if fleet.held is not None:
        _held(fleet, values, found)
    if fleet.lease is not None:
        _leased(fleet, scenario, values, started, found)
        del outlays["purchase"]
    resold = np.asarray(sum(outlay for line, outlay in outlays.items() if line in ("purchase", "spares")))[0]
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


def _held(fleet: PurchasedFleet, values: Values, found: FinancialPosition) -> None:
    """Kept from before: their worth at the start is given up there, and what they would fetch later is theirs to bring."""
    assert fleet.held is not None
    market, book = held_standing(fleet, fleet.held, len(found.market), values)
    tax = _income_tax(values)
    found.prepaid[0] += market[0]
    found.relief[0] -= tax * (market[0] - book[0])
    found.fresh[0] += market[0]
    found.market[1:] += market[1:]
    found.book[:] += book
    found.relief[1:] += tax * (book[1:] - market[1:])
    if "decommissioning_usd_per_node" not in values:
        return
    due = np.arange(1, min(fleet.life_months - fleet.held.age_months, len(market)))
    dearer = 1.0 + float(values["inflation_fraction_per_year"][0, 0])
    each = float(values["decommissioning_usd_per_node"][0, 0]) * dearer ** ((due - 1) / MONTHS_PER_YEAR)
    found.owed[due] += fleet.held.nodes * each * _taxed(values)
    found.relief[due] += fleet.held.nodes * each * _taxed(values) * tax


def _leased(
    fleet: PurchasedFleet, scenario: Scenario, values: Values, started: Array, found: FinancialPosition
) -> None:
    """Rates are an expense when they are paid; machines bought out are one's own from then on."""
    assert fleet.lease is not None
    machines = hardware_outlays(fleet, scenario, values, started)["purchase"]
    ended = lease_standing(fleet, fleet.lease, scenario, values, started, machines)
    tax, taxed = _income_tax(values), _taxed(values)
    found.prepaid[:] += ended["prepaid"] * taxed
    found.owed[:] += ended["owed"] * taxed
    found.market[:] += ended["market"]
    found.book[:] += ended["book"]
    found.relief[:] += tax * (taxed * (ended["owed"] - ended["prepaid"]) + ended["book"] - ended["market"])
