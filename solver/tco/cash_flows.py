"""Cost lines of one alternative, month by month, for every draw at once.

A line is an array (draws × columns); column 0 is the start, column k the end of month k. What is received is negative.
Arrays broadcast: a line that does not depend on the draw has one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from solver.tco import electricity, operating, renting, tokens
from solver.tco.alternatives import ApiAccess, PurchasedFleet, RentedFleet, Scenario, Single
from solver.tco.by_month import (
    Values,
    at_month_ends,
    at_month_starts,
    demand_factor,
    inflation_factors,
    nodes_needed,
    price_factors,
    price_when_ordered,
)
from solver.tco.capital import (
    loan_balance_fraction,
    monthly_rate,
)
from solver.tco.cohorts import alive_sum, starts
from solver.tco.contracts import bills, contract_flows
from solver.tco.figures import Array, Quantity
from solver.tco.held import given_up, held_alive, held_written_off, paid_for, taken_out, to_start
from solver.tco.leasing import buyouts_written_off, leased, own_to_sell
from solver.tco.write_off import resale_fraction, written_off

Line: TypeAlias = Literal[
    "rent", "unexpired_commitment", "unused_commitment", "egress", "rented_storage", "lease", "buyout", "foregone_sale", "purchase",
    "network", "storage", "spares", "finance", "power", "cooling", "demand_charge", "space", "maintenance", "support", "staff",
    "software", "insurance", "api_input", "api_cached", "api_output", "decommissioning", "tax", "tax_shield", "residual",
]  # fmt: skip
LINES: tuple[Line, ...] = get_args(Line)
"""In the order in which they are shown."""

LINEAR_LINES: tuple[Line, ...] = tuple(
    line for line in LINES if line not in ("egress", "rented_storage", "api_input", "api_cached", "api_output")
)  # fmt: skip
"""Lines that double when the fleet doubles."""

UNTAXED: frozenset[Line] = frozenset(
    ("staff", "finance", "residual", "tax", "tax_shield", "insurance", "foregone_sale")
)
CAPITAL: frozenset[Line] = frozenset(
    ("purchase", "network", "storage", "spares", "residual", "buyout", "foregone_sale")
)
"""Not expenses of the month they are paid in: what is bought is written off over its life."""


@dataclass(frozen=True, slots=True)
class Flows:
    """lines: cost lines. By month, each None where it is not known: it_kwh, energy of the machines alone; facility_kwh, of
    all it takes to house them; kg_co2e, by the grid where they stand."""

    lines: dict[Line, Array]
    it_kwh: Array | None
    facility_kwh: Array | None
    kg_co2e: Array | None = None


def added(flows: Sequence[Flows]) -> Flows:
    """The parts of a mixed fleet together; energy is known when every part's is."""
    if len(flows) == 1:
        return flows[0]
    lines: dict[Line, Array] = {}
    for part in flows:
        for line, flow in part.lines.items():
            lines[line] = np.asarray(lines[line] + flow) if line in lines else flow
    it = [part.it_kwh for part in flows if part.it_kwh is not None]
    facility = [part.facility_kwh for part in flows if part.facility_kwh is not None]
    emitted = [part.kg_co2e for part in flows if part.kg_co2e is not None]
    known = len(it) == len(facility) == len(flows)
    return Flows(
        lines,
        np.asarray(sum(it)) if known else None,
        np.asarray(sum(facility)) if known else None,
        np.asarray(sum(emitted)) if len(emitted) == len(flows) else None,
    )


def cash_flows(alternative: Single, scenario: Scenario, values: Values) -> Flows:
    """All lines of one alternative."""
    if isinstance(alternative, RentedFleet):
        return _shielded(_taxed(_rented(alternative, scenario, values), values), values)
    if isinstance(alternative, PurchasedFleet):
        needed = nodes_needed(alternative, demand_factor(scenario, values))
        return _bought(alternative, scenario, values, to_start(alternative, needed))
    return _shielded(_taxed(_api(alternative, scenario, values), values), values)


def _shielded(flows: Flows, values: Values, charged: Array | None = None) -> Flows:
    """Income tax saved: expenses when they are paid, machines as they are written off."""
    if "income_tax_fraction" in values:
        expenses: Array = np.asarray(sum(flow for line, flow in flows.lines.items() if line not in CAPITAL))
        deducted = expenses if charged is None else expenses + charged
        flows.lines["tax_shield"] = np.asarray(-values["income_tax_fraction"] * deducted)
    return flows


def nodes_started(fleet: RentedFleet | PurchasedFleet, scenario: Scenario, values: Values) -> tuple[Array, Array]:
    """Nodes paid for in each month, and those that start in it: bought, or begun a commitment with; by the hour none are."""
    needed = nodes_needed(fleet, demand_factor(scenario, values))
    if isinstance(fleet, PurchasedFleet):
        bought = to_start(fleet, needed)
        return alive_sum(bought, fleet.life_months) + held_alive(fleet, needed.shape[-1]), bought
    if fleet.term_months is None:
        return needed, np.zeros_like(needed)
    started = starts(needed, fleet.term_months)
    return alive_sum(started, fleet.term_months), started


def bought_in_month(fleet: PurchasedFleet, scenario: Scenario, values: Values, month: int) -> Flows:
    """All lines of machines bought at the start of one month, run for their life or to the horizon, and then sold: not
    bought anew, whatever demand does.

    Columns count from the start of the horizon, so that prices and wages of the month are its own.
    """
    started = np.zeros((1, scenario.horizon_months))
    started[0, month] = fleet.nodes
    return _bought(fleet, scenario, values, started)


def _taxed(flows: Flows, values: Values) -> Flows:
    taxed = sum(flow for line, flow in flows.lines.items() if line not in UNTAXED)
    if values["tax_fraction"].any():
        flows.lines["tax"] = np.asarray(operating.tax_usd(taxed, values["tax_fraction"]))
    return flows


def served_tokens(scenario: Scenario, values: Values, tokens_per_request: float) -> Array:
    """Tokens of one kind by month (draws × months)."""
    per_month = tokens.tokens_per_month(
        scenario.demand.requests_per_s, tokens_per_request, values["utilisation_fraction"]
    )
    return np.asarray(per_month * demand_factor(scenario, values))


def _rented(fleet: RentedFleet, scenario: Scenario, values: Values) -> Flows:
    months = scenario.horizon_months
    needed = nodes_needed(fleet, demand_factor(scenario, values))
    lines: dict[Line, Array] = {}
    powered = needed
    if fleet.term_months is not None:
        committed = _committed(fleet, fleet.term_months, needed, market_rent_per_month(fleet, scenario, values), values)
        lines |= {line: flow for line, flow in committed.items() if flow.any()}
        powered = alive_sum(starts(needed, fleet.term_months), fleet.term_months)
    else:
        lines["rent"] = bills(rent_by_month(fleet, needed, scenario, values), months, fleet.in_advance)
    lines |= _beside_rent(scenario, values)
    return Flows(lines, *_energy(fleet, powered, scenario, values))


def rent_by_month(fleet: RentedFleet, needed: Array, scenario: Scenario, values: Values) -> Array:
    """Rent by the hour for each month, whenever it is paid. needed: nodes by month."""
    if fleet.follows_demand and scenario.hourly_profile is not None:
        hours = renting.node_hours_following(needed, scenario.hourly_profile)
    elif fleet.busy_fraction is not None:
        hours = np.asarray(renting.node_hours_per_month(needed * _working(fleet, values)))
    else:
        hours = np.asarray(renting.node_hours_per_month(needed))
    return np.asarray(renting.rent_usd_per_month(hours, _market_rent_per_hour(fleet, scenario, values)))


def _beside_rent(scenario: Scenario, values: Values) -> dict[Line, Array]:
    """What a cloud charges apart from machines, where it is stated: data sent out, which grows with demand, and disks."""
    lines: dict[Line, Array] = {}
    if "egress_gb_per_month" in values:
        sent = values["egress_gb_per_month"] * demand_factor(scenario, values)
        lines["egress"] = at_month_ends(sent * values["egress_usd_per_gb"], scenario.horizon_months)
    if "rented_storage_usd_per_month" in values:
        lines["rented_storage"] = at_month_ends(values["rented_storage_usd_per_month"], scenario.horizon_months)
    return lines


def _market_rent_per_hour(fleet: RentedFleet, scenario: Scenario, values: Values) -> Array:
    price = values["rent_usd_per_node_hour"]
    if fleet.interruptible:
        price = price * renting.spot_overhead_factor(
            values["spot_interruptions_per_node_month"] * fleet.interrupted_together,
            values["spot_lost_hours_per_interruption"],
        )
    return np.asarray(price * price_factors(scenario, values, "rent_change_fraction_per_year"))


def market_rent_per_month(fleet: RentedFleet, scenario: Scenario, values: Values) -> Array:
    """Rent of one node for a month, by the month a contract starts in."""
    per_hour = _market_rent_per_hour(fleet, scenario, values)
    return np.asarray(renting.rent_usd_per_month(renting.node_hours_per_month(1.0), per_hour))


def _committed(
    fleet: RentedFleet, term_months: int, needed: Array, monthly_price: Array, values: Values
) -> dict[Line, Array]:
    """A commitment keeps the price of the month it starts in; what outlasts the horizon is still owed. Where a part of what
    is committed is expected to go unused, so much more is committed, and paid when the rest is."""
    contracted = starts(needed, term_months) * monthly_price  # per month of the term, by month of start
    paid, owed = contract_flows(contracted, term_months, fleet.upfront_fraction, fleet.in_advance)
    lines: dict[Line, Array] = {"rent": paid, "unexpired_commitment": owed}
    if "commitment_used_fraction" in values:
        lines["unused_commitment"] = np.asarray((paid + owed) * unused_per_used(values))
    return lines


def unused_per_used(values: Values) -> Array:
    """What is committed and goes unused, per dollar that is used: 1 / u − 1.

    >>> unused_per_used({"commitment_used_fraction": np.array([[0.8]])}).tolist()
    [[0.25]]
    """
    return np.asarray(1.0 / values["commitment_used_fraction"] - 1.0)


def _bought(fleet: PurchasedFleet, scenario: Scenario, values: Values, started: Array) -> Flows:
    """started: nodes bought or leased by month."""
    months = scenario.horizon_months
    alive = alive_sum(started, fleet.life_months) + held_alive(fleet, months)
    new = hardware_outlays(fleet, scenario, values, started)
    installed = alive_sum(sum(new.values(), start=np.zeros((1, months))), fleet.life_months)
    if fleet.held is not None:
        installed = installed + paid_for(fleet.held, values) * (held_alive(fleet, months) > 0)
    outlays = new if fleet.lease is None else {line: outlay for line, outlay in new.items() if line != "purchase"}
    lines: dict[Line, Array] = {}
    ordered = {line: paid_when_ordered(outlay, fleet.lead_time_months) for line, outlay in outlays.items()}
    if fleet.finance_term_months is None:
        lines |= {line: at_month_starts(outlay, months) for line, outlay in ordered.items()}
    else:
        lines |= _financed(ordered, values["finance_fraction_per_year"], fleet.finance_term_months)
    to_sell = own_to_sell(fleet, new["purchase"], new["spares"])
    lines["residual"] = _residual(fleet, to_sell, scenario, values)
    if "decommissioning_usd_per_node" in values:
        lines["decommissioning"] = _decommissioned(fleet, started, scenario, values)
    if fleet.lease is not None:
        lines["lease"], lines["unexpired_commitment"], lines["buyout"] = leased(
            fleet, fleet.lease, scenario, values, started
        )
    if fleet.held is not None:
        lines["foregone_sale"], fetched = given_up(fleet, fleet.held, scenario, values)
        lines["residual"] = lines["residual"] - fetched
        if "decommissioning" in lines:
            lines["decommissioning"] = lines["decommissioning"] + taken_out(fleet, fleet.held, scenario, values)
    lines |= _running(fleet, scenario, values, alive, installed)
    flows = _taxed(Flows(lines, *_energy(fleet, alive, scenario, values)), values)
    if "income_tax_fraction" not in values:
        return flows
    spent = np.asarray(sum(outlays.values()))
    own = new["spares"] if fleet.lease is not None else to_sell
    charged = written_off(fleet, spent, own, scenario, values)
    if fleet.lease is not None:
        charged = charged + buyouts_written_off(fleet, fleet.lease, new["purchase"], lines["buyout"], values)
    if fleet.held is not None:
        charged = charged + held_written_off(fleet, fleet.held, scenario, values)
    return _shielded(flows, values, charged)


def hardware_outlays(fleet: PurchasedFleet, scenario: Scenario, values: Values, started: Array) -> dict[Line, Array]:
    """What machines that start in each month cost, at the price of the month they are ordered in; of leased ones, what they
    would have cost."""
    price = values["purchase_usd_per_node"] * price_when_ordered(fleet, scenario, values)
    return {
        "purchase": started * price,
        "network": started * values["network_usd_per_node"],
        "storage": started * values["storage_usd_per_node"],
        "spares": started * price * values["spare_fraction"],
    }


def paid_when_ordered(outlay: Array, lead_time_months: int) -> Array:
    """Outlays moved from the month machines start in to the month they are ordered in.

    >>> paid_when_ordered(np.array([[5.0, 0.0, 1.0, 2.0]]), 2).tolist()
    [[6.0, 2.0, 0.0, 0.0]]
    """
    if not lead_time_months:
        return outlay
    paid = np.zeros_like(outlay)
    for month in range(outlay.shape[-1]):
        paid[:, max(0, month - lead_time_months)] += outlay[:, month]
    return paid


def _running(
    fleet: PurchasedFleet, scenario: Scenario, values: Values, alive: Array, installed: Array
) -> dict[Line, Array]:
    """What owned machines cost every month."""
    months = scenario.horizon_months
    inflation = inflation_factors(scenario, values)
    tariff = values["electricity_usd_per_kwh"] * inflation
    effectiveness = values["power_usage_effectiveness"]
    it_kwh = electricity.energy_kwh_per_month(_average_w(values, _working(fleet, values))) * alive
    peak_w = values["peak_w_per_node"] * alive
    demand_charge = values["demand_charge_usd_per_kw_month"] * inflation
    bills: dict[Line, Quantity] = {
        "power": electricity.power_usd(it_kwh, tariff),
        "cooling": electricity.cooling_usd(it_kwh, effectiveness, tariff),
        "demand_charge": electricity.demand_charge_usd_per_month(peak_w, effectiveness, demand_charge),
        "space": electricity.space_usd_per_month(peak_w, values["colocation_usd_per_kw_month"] * inflation),
        "maintenance": operating.yearly_share_usd_per_month(installed, values["maintenance_fraction_per_year"]),
        "support": operating.yearly_share_usd_per_month(installed, values["support_fraction_per_year"]),
        "insurance": operating.yearly_share_usd_per_month(installed, values["insurance_fraction_per_year"]),
        "staff": operating.staff_usd_per_month(
            values["staff_fte_per_node"] * alive, values["staff_usd_per_fte_year"] * inflation
        ),
        "software": operating.software_usd_per_month(
            alive * fleet.devices_per_node, values["software_usd_per_device_year"] * inflation
        ),
    }
    return {line: at_month_ends(bill, months) for line, bill in bills.items()}


def _working(fleet: RentedFleet | PurchasedFleet, values: Values) -> Array:
    """Share of all hours in which the nodes work."""
    share = values["utilisation_fraction"]
    return share if fleet.busy_fraction is None else np.asarray(share * fleet.busy_fraction)


def _average_w(values: Values, working: Quantity) -> Quantity:
    return electricity.average_w(
        values["peak_w_per_node"], values["idle_power_fraction"], values["serving_power_fraction"], working
    )


def _energy(
    fleet: RentedFleet | PurchasedFleet, nodes: Array, scenario: Scenario, values: Values
) -> tuple[Array | None, Array | None, Array | None]:
    """Energy of the machines and of the whole building, and what it emits, by month, where every input is known.

    Nodes that are rented for a job and given back draw nothing between jobs.
    """
    names = ("peak_w_per_node", "idle_power_fraction", "serving_power_fraction", "power_usage_effectiveness")
    if any(name not in values for name in names):
        return None, None, None
    working = _working(fleet, values)
    if isinstance(fleet, RentedFleet) and fleet.busy_fraction is not None and fleet.term_months is None:
        nodes, working = nodes * working, np.ones_like(working)
    it_kwh = np.asarray(electricity.energy_kwh_per_month(_average_w(values, working)) * nodes)
    it_kwh = np.broadcast_to(it_kwh, (it_kwh.shape[0], scenario.horizon_months))
    facility_kwh = np.asarray(it_kwh * values["power_usage_effectiveness"])
    carbon = values.get("grid_kg_co2e_per_kwh")
    return it_kwh, facility_kwh, None if carbon is None else np.asarray(electricity.grid_kg_co2e(facility_kwh, carbon))


def _residual(fleet: PurchasedFleet, hardware: Array, scenario: Scenario, values: Values) -> Array:
    """Received for machines sold: at the end of their life, and for those still in use at the horizon.

    Network and storage are taken to fetch nothing.
    """
    months = scenario.horizon_months
    received = np.zeros((max(len(v) for v in (hardware, *_residual_values(values))), months + 1))
    for month in np.flatnonzero(hardware.any(axis=0)):
        sold = min(int(month) + fleet.life_months, months)
        age = float(sold - month)
        received[:, sold] -= hardware[:, month] * resale_fraction(age, fleet.life_months, values)[:, 0]
    return received


def _decommissioned(fleet: PurchasedFleet, started: Array, scenario: Scenario, values: Values) -> Array:
    """Taking machines out, wiping and shipping them, when they are sold; at the prices of the month before."""
    months = scenario.horizon_months
    each = values["decommissioning_usd_per_node"] * inflation_factors(scenario, values)
    spent = np.zeros((max(len(started), len(each)), months + 1))
    for month in np.flatnonzero(started.any(axis=0)).tolist():
        sold = min(month + fleet.life_months, months)
        spent[:, sold] += started[:, month] * each[:, sold - 1]
    return spent


def _residual_values(values: Values) -> list[Array]:
    return [value for name, value in values.items() if name.startswith("residual_fraction")]


def _financed(outlays: dict[Line, Array], annual_fraction: Array, term_months: int) -> dict[Line, Array]:
    """Level loan payments in place of each outlay: principal on the line itself, interest on ``finance``.

    What is still owed at the horizon is repaid there.
    """
    months = next(iter(outlays.values())).shape[-1]
    rate = monthly_rate(annual_fraction)
    balance = np.asarray(loan_balance_fraction(annual_fraction, term_months, np.arange(months + 1.0)))
    principal = balance[:, :-1] - balance[:, 1:]
    interest = balance[:, :-1] * rate
    lines: dict[Line, Array] = {}
    total_interest = np.zeros((1, months + 1))
    for line, outlay in outlays.items():
        rows = max(len(outlay), len(balance))
        repaid, charged = np.zeros((rows, months + 1)), np.zeros((rows, months + 1))
        for start in np.flatnonzero(outlay.any(axis=0)):
            ahead = months - int(start)
            lent = outlay[:, start : start + 1]
            repaid[:, start + 1 :] += lent * principal[:, :ahead]
            charged[:, start + 1 :] += lent * interest[:, :ahead]
            repaid[:, -1:] += lent * balance[:, ahead : ahead + 1]
        lines[line] = repaid
        total_interest = total_interest + charged
    lines["finance"] = total_interest
    return lines


def _api(access: ApiAccess, scenario: Scenario, values: Values) -> Flows:
    del access  # its prices are in ``values``
    demand = scenario.demand
    fresh = demand.input_tokens * (1.0 - demand.cached_fraction)
    prices = price_factors(scenario, values, "api_change_fraction_per_year")
    kinds: tuple[tuple[Line, float, str], ...] = (
        ("api_input", fresh, "api_usd_per_million_input_tokens"),
        ("api_cached", demand.input_tokens * demand.cached_fraction, "api_usd_per_million_cached_tokens"),
        ("api_output", demand.output_tokens, "api_usd_per_million_output_tokens"),
    )
    lines: dict[Line, Array] = {}
    for line, tokens_per_request, price in kinds:
        bill = tokens.api_usd(served_tokens(scenario, values, tokens_per_request), values[price] * prices)
        lines[line] = at_month_ends(bill, scenario.horizon_months)
    return Flows(lines, None, None)
