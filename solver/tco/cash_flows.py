"""Cost lines of one alternative, month by month, for every draw at once.

A line is an array (draws × columns); column 0 is the start, column k the end of month k. What is received is negative.
Arrays broadcast: a line that does not depend on the draw has one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from solver.tco import electricity, operating, renting, tokens
from solver.tco.alternatives import ApiAccess, PurchasedFleet, RentedFleet, Scenario, Single
from solver.tco.capital import (
    loan_balance_fraction,
    monthly_rate,
    residual_fraction_at,
    residual_fraction_towards,
)
from solver.tco.cohorts import alive_sum, starts
from solver.tco.figures import Array, Quantity

Line: TypeAlias = Literal[
    "rent", "unexpired_commitment", "purchase", "network", "storage", "spares", "finance", "power", "cooling",
    "demand_charge", "space", "maintenance", "support", "staff", "software", "insurance", "api_input", "api_cached",
    "api_output", "tax", "residual",
]  # fmt: skip
LINES: tuple[Line, ...] = get_args(Line)
"""In the order in which they are shown."""

LINEAR_LINES: tuple[Line, ...] = tuple(
    line for line in LINES if line not in ("api_input", "api_cached", "api_output")
)  # fmt: skip
"""Lines that double when the fleet doubles."""

UNTAXED: frozenset[Line] = frozenset(("staff", "finance", "residual", "tax", "insurance"))

Values: TypeAlias = Mapping[str, Array]
"""Each input as a column (draws × 1)."""


@dataclass(frozen=True, slots=True)
class Flows:
    """lines: cost lines. energy: facility kWh by month; it_energy: of the machines alone; None where not known."""

    lines: dict[Line, Array]
    it_kwh: Array | None
    facility_kwh: Array | None


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
    known = len(it) == len(facility) == len(flows)
    return Flows(lines, np.asarray(sum(it)) if known else None, np.asarray(sum(facility)) if known else None)


def cash_flows(alternative: Single, scenario: Scenario, values: Values) -> Flows:
    """All lines of one alternative."""
    if isinstance(alternative, RentedFleet):
        return _taxed(_rented(alternative, scenario, values), values)
    if isinstance(alternative, PurchasedFleet):
        needed = renting.whole_nodes(alternative.nodes * _growth(scenario, values))
        return _bought(alternative, scenario, values, starts(needed, alternative.life_months))
    return _taxed(_api(alternative, scenario, values), values)


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
    return np.asarray(per_month * _growth(scenario, values))


def _growth(scenario: Scenario, values: Values) -> Array:
    """Demand relative to the first month, by month; one row where nothing grows."""
    growth = values["growth_fraction_per_month"]
    if not growth.any():
        return np.ones((1, scenario.horizon_months))
    return np.asarray(renting.growth_factor(_month_starts(scenario), growth))


def _month_starts(scenario: Scenario) -> Array:
    return np.arange(scenario.horizon_months, dtype=float)


def _price_factor(scenario: Scenario, values: Values) -> Array:
    """How market prices move from the start, by month."""
    learning = values["price_learning_rate_fraction"]
    if not learning.any():
        return np.ones((1, scenario.horizon_months))
    return np.asarray(
        renting.learning_price_factor(_month_starts(scenario), learning, values["volume_doubling_months"])
    )


def _inflation(scenario: Scenario, values: Values) -> Array:
    inflation = values["inflation_fraction_per_year"]
    if not inflation.any():
        return np.ones((1, scenario.horizon_months))
    return np.asarray(renting.inflation_factor(_month_starts(scenario), inflation))


def _at_month_ends(by_month: Quantity, months: int) -> Array:
    """Bills: month k is paid in column k."""
    array = np.atleast_2d(np.asarray(by_month, dtype=float))
    array = np.broadcast_to(array, (array.shape[0], months))
    return np.concatenate([np.zeros((array.shape[0], 1)), array], axis=1)


def _at_month_starts(by_month: Quantity, months: int) -> Array:
    """Outlays: month k is paid in column k − 1."""
    array = np.atleast_2d(np.asarray(by_month, dtype=float))
    array = np.broadcast_to(array, (array.shape[0], months))
    return np.concatenate([array, np.zeros((array.shape[0], 1))], axis=1)


def _rented(fleet: RentedFleet, scenario: Scenario, values: Values) -> Flows:
    months = scenario.horizon_months
    needed = renting.whole_nodes(fleet.nodes * _growth(scenario, values))
    price = values["rent_usd_per_node_hour"]
    if fleet.interruptible:
        price = price * renting.spot_overhead_factor(
            values["spot_interruptions_per_node_month"], values["spot_lost_hours_per_interruption"]
        )
    market_price = price * _price_factor(scenario, values)
    lines: dict[Line, Array] = {}
    powered = needed
    if fleet.term_months is not None:
        committed = _committed(fleet, fleet.term_months, needed, market_price)
        lines |= {line: flow for line, flow in committed.items() if flow.any()}
        powered = alive_sum(starts(needed, fleet.term_months), fleet.term_months)
    elif fleet.follows_demand and scenario.hourly_profile is not None:
        hours = renting.node_hours_following(needed, scenario.hourly_profile)
        lines["rent"] = _at_month_ends(renting.rent_usd_per_month(hours, market_price), months)
    else:
        hours = np.asarray(renting.node_hours_per_month(needed))
        lines["rent"] = _at_month_ends(renting.rent_usd_per_month(hours, market_price), months)
    it_kwh, facility_kwh = _energy(powered, scenario, values)
    return Flows(lines, it_kwh, facility_kwh)


def _committed(fleet: RentedFleet, term_months: int, needed: Array, market_price: Array) -> dict[Line, Array]:
    """A commitment keeps the price of the month it starts in; what outlasts the horizon is still owed."""
    months = needed.shape[-1]
    started = starts(needed, term_months)
    monthly_price = np.asarray(renting.rent_usd_per_month(renting.node_hours_per_month(1.0), market_price))
    contracted = started * monthly_price  # per month of the term, by month of start
    upfront = contracted * term_months * fleet.upfront_fraction
    instalments = alive_sum(contracted, term_months) * (1.0 - fleet.upfront_fraction)
    months_left = np.maximum(0.0, np.arange(months) + term_months - months)
    owed = (contracted * months_left).sum(axis=-1, keepdims=True) * (1.0 - fleet.upfront_fraction)
    unexpired = np.zeros((owed.shape[0], months + 1))
    unexpired[:, -1:] = owed
    return {
        "rent": _at_month_starts(upfront, months) + _at_month_ends(instalments, months),
        "unexpired_commitment": unexpired,
    }


def _bought(fleet: PurchasedFleet, scenario: Scenario, values: Values, started: Array) -> Flows:
    """started: nodes bought by month."""
    months = scenario.horizon_months
    alive = alive_sum(started, fleet.life_months)
    price = values["purchase_usd_per_node"] * _price_factor(scenario, values)
    outlays: dict[Line, Array] = {
        "purchase": started * price,
        "network": started * values["network_usd_per_node"],
        "storage": started * values["storage_usd_per_node"],
        "spares": started * price * values["spare_fraction"],
    }
    installed = alive_sum(sum(outlays.values(), start=np.zeros((1, months))), fleet.life_months)
    lines: dict[Line, Array] = {}
    if fleet.finance_term_months is None:
        lines |= {line: _at_month_starts(outlay, months) for line, outlay in outlays.items()}
    else:
        lines |= _financed(outlays, values["finance_fraction_per_year"], fleet.finance_term_months)
    lines["residual"] = _residual(fleet, outlays["purchase"] + outlays["spares"], scenario, values)
    lines |= _running(fleet, scenario, values, alive, installed)
    it_kwh, facility_kwh = _energy(alive, scenario, values)
    return _taxed(Flows(lines, it_kwh, facility_kwh), values)


def _running(
    fleet: PurchasedFleet, scenario: Scenario, values: Values, alive: Array, installed: Array
) -> dict[Line, Array]:
    """What owned machines cost every month."""
    months = scenario.horizon_months
    inflation = _inflation(scenario, values)
    tariff = values["electricity_usd_per_kwh"] * inflation
    effectiveness = values["power_usage_effectiveness"]
    it_kwh = electricity.energy_kwh_per_month(_average_w(values)) * alive
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
    return {line: _at_month_ends(bill, months) for line, bill in bills.items()}


def _average_w(values: Values) -> Quantity:
    return electricity.average_w(
        values["peak_w_per_node"],
        values["idle_power_fraction"],
        values["serving_power_fraction"],
        values["utilisation_fraction"],
    )


def _energy(nodes: Array, scenario: Scenario, values: Values) -> tuple[Array | None, Array | None]:
    """Energy of the machines and of the whole building by month, where every input is known."""
    names = ("peak_w_per_node", "idle_power_fraction", "serving_power_fraction", "power_usage_effectiveness")
    if any(name not in values for name in names):
        return None, None
    it_kwh = np.asarray(electricity.energy_kwh_per_month(_average_w(values)) * nodes)
    it_kwh = np.broadcast_to(it_kwh, (it_kwh.shape[0], scenario.horizon_months))
    return it_kwh, np.asarray(it_kwh * values["power_usage_effectiveness"])


def _residual(fleet: PurchasedFleet, hardware: Array, scenario: Scenario, values: Values) -> Array:
    """Received for machines sold: at the end of their life, and for those still in use at the horizon.

    Network and storage are taken to fetch nothing.
    """
    months = scenario.horizon_months
    received = np.zeros((max(len(v) for v in (hardware, *_residual_values(values))), months + 1))
    for month in np.flatnonzero(hardware.any(axis=0)):
        sold = min(int(month) + fleet.life_months, months)
        age = float(sold - month)
        received[:, sold] -= hardware[:, month] * _residual_fraction(age, months, values)[:, 0]
    return received


def _residual_values(values: Values) -> list[Array]:
    return [value for name, value in values.items() if name.startswith("residual_fraction")]


def _residual_fraction(age_months: float, horizon_months: int, values: Values) -> Array:
    if "residual_fraction" in values:
        return np.asarray(residual_fraction_towards(age_months, values["residual_fraction"], horizon_months))
    return np.asarray(
        residual_fraction_at(
            age_months, values["residual_fraction_after_3_years"], values["residual_fraction_after_5_years"]
        )
    )


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
    prices = _price_factor(scenario, values)
    kinds: tuple[tuple[Line, float, str], ...] = (
        ("api_input", fresh, "api_usd_per_million_input_tokens"),
        ("api_cached", demand.input_tokens * demand.cached_fraction, "api_usd_per_million_cached_tokens"),
        ("api_output", demand.output_tokens, "api_usd_per_million_output_tokens"),
    )
    lines: dict[Line, Array] = {}
    for line, tokens_per_request, price in kinds:
        bill = tokens.api_usd(served_tokens(scenario, values, tokens_per_request), values[price] * prices)
        lines[line] = _at_month_ends(bill, scenario.horizon_months)
    return Flows(lines, None, None)
