"""What a controller would stop at: things stated as free, or far from what anybody is known to pay."""

from collections.abc import Iterator

from service.tco.circumstances import PERCENT, Circumstances
from service.tco.defaults import CostDefaults
from service.tco.ownership import PEAK, PRICE
from service.tco.resolve import Resolved
from service.wire.tco import ComparisonIn
from solver.tco.alternatives import ApiAccess, PurchasedFleet, RentedFleet, parts_of
from solver.tco.electricity import average_w, energy_kwh_per_month, power_usd
from solver.units import HOURS_PER_MONTH

FAR = 2.0
"""A price less than a half of the least, or more than twice the most, that a source gives is worth a word."""


def warnings_of(
    asked: ComparisonIn, resolved: list[Resolved], shared: Circumstances, defaults: CostDefaults
) -> list[str]:
    """Everything about the request that the answer should say on its face, in the request's order."""
    found = [*_shared(asked), *_market(asked, defaults)]
    for own in resolved:
        found += [f"{own.asked.name}: {text}" for text in _alternative(asked, own, shared, defaults)]
    return list(dict.fromkeys(found))


def _shared(asked: ComparisonIn) -> Iterator[str]:
    if asked.electricity.usd_per_kwh is not None and asked.electricity.usd_per_kwh == 0:
        yield "electricity is stated as free"
    if asked.colocation_usd_per_kw_month is not None and asked.colocation_usd_per_kw_month == 0:
        yield "space is stated as free"
    if asked.discount_rate_percent is not None and asked.discount_rate_percent < 0:
        yield "the discount rate is negative: money later is worth more than money now"
    if asked.power_usage_effectiveness == 1.0:
        yield "power_usage_effectiveness of 1: cooling is stated as free"


def _market(asked: ComparisonIn, defaults: CostDefaults) -> Iterator[str]:
    """Changes of prices stated beyond what any source has seen, and demand that never comes."""
    stated = {
        "rent": asked.market.rent_percent_per_year,
        "API": asked.market.api_percent_per_year,
        "hardware": asked.market.hardware_percent_per_year,
    }
    for what, percent in stated.items():
        row = defaults.plain(f"{what.lower()}_change_fraction_per_year")
        if percent is None or row is None:
            continue
        low, high = row.figure.low * PERCENT, row.figure.high * PERCENT
        if not low <= percent <= high:
            yield f"{what} prices are stated to change by {percent:+g} % a year: sources have {low:+.1f} to {high:+.1f} %"
    if asked.inflation_percent_per_year is not None and asked.inflation_percent_per_year < 0:
        yield "inflation is negative: wages and tariffs fall every year"
    if asked.ramp_months > asked.horizon_months:
        yield f"demand rises over {asked.ramp_months} months, longer than the horizon of {asked.horizon_months}: it is never all there"


def _alternative(asked: ComparisonIn, own: Resolved, shared: Circumstances, defaults: CostDefaults) -> Iterator[str]:
    purchase = own.asked.purchase
    if isinstance(own.alternative, ApiAccess):
        yield from _tokens(own)
    for part, shown in zip(parts_of(own.alternative), own.parts, strict=False):
        if isinstance(part, PurchasedFleet):
            yield from _price(own, part, shown.node, shown.device, shown.devices // max(1, shown.nodes), defaults)
            yield from _terms(asked, part)
        elif isinstance(part, RentedFleet):
            yield from _rent(part, shown.node, shared)
    if purchase.residual_fraction == 1.0:
        yield "machines are stated to lose nothing of their value"
    free = {
        "staff": purchase.staff_fte_per_node,
        "maintenance": purchase.maintenance_percent_per_year,
        # A lease may well cover these two.
        "network": purchase.network_usd_per_node if own.asked.lease is None else None,
        "storage": purchase.storage_usd_per_node if own.asked.lease is None else None,
    }
    yield from (f"{what} is stated as free" for what, figure in free.items() if figure is not None and figure == 0)
    if own.asked.owned is not None and own.asked.owned.usd_paid_per_node == 0:
        yield "machines that are there already are stated to have cost nothing: they fetch nothing either"


def _tokens(own: Resolved) -> Iterator[str]:
    """Free tokens, by whom: the request or a seller's list. One kind may be free on purpose, all of them hardly."""
    api = own.asked.api
    assert api is not None
    stated = {
        "input": api.usd_per_million_input_tokens,
        "output": api.usd_per_million_output_tokens,
        "cached": api.usd_per_million_cached_tokens,
    }
    free = [kind for kind, usd in stated.items() if usd is not None and usd == 0]
    if free:
        yield f"tokens ({', '.join(free)}) are stated as free"
    listed = [
        kind for kind, usd in stated.items() if usd is None and _is_free(own, f"api_usd_per_million_{kind}_tokens")
    ]
    if listed and not free:
        yield f"tokens ({', '.join(listed)}) are free by the list of {api.model}"


def _is_free(own: Resolved, name: str) -> bool:
    default = own.defaults.get(name)
    return default is not None and default.figure.typical == 0


def _price(
    own: Resolved, fleet: PurchasedFleet, node: str, device: str, devices: int, defaults: CostDefaults
) -> Iterator[str]:
    price = fleet.figures[PRICE]
    if PRICE in own.defaults:
        return
    if price.typical == 0:
        yield f"{node} is stated as free"
        return
    known = [usd * devices for usd in _listed(device, defaults)] or _listed(None, defaults)
    if known and price.typical * FAR < min(known):
        yield f"{node} at {price.typical:,.2f} USD: the least a source gives is {min(known):,.0f} USD"
    if device and _listed(device, defaults) and price.typical > FAR * FAR * max(known):
        yield f"{node} at {price.typical:,.2f} USD: the most a source gives for its devices is {max(known):,.0f} USD"


def _listed(device: str | None, defaults: CostDefaults) -> list[float]:
    """Prices of one device, low and high, or of every device and system there is one of."""
    found = []
    for name in ("device_purchase_usd", "system_purchase_usd", "system_all_in_usd", "server_purchase_usd"):
        for subject in defaults.costs.subjects(name) if device is None else [device]:
            row = defaults.costs.find(name, subject)
            if row is not None:
                found += [row.low / (row.devices or 1), row.high / (row.devices or 1)]
    return found


def _terms(asked: ComparisonIn, fleet: PurchasedFleet) -> Iterator[str]:
    loan, months = fleet.finance_term_months, asked.horizon_months
    if loan is not None and loan > months:
        yield f"the loan of {loan} months outlasts the horizon of {months}: what is owed is repaid there"
    if loan is not None and fleet.figures["finance_fraction_per_year"].typical == 0:
        yield "the loan is stated to cost no interest"
    if fleet.lease is not None:
        yield from _lease(fleet, months)
    if PEAK in fleet.figures and fleet.figures[PEAK].typical == 0:
        yield "machines are stated to draw no power"


def _lease(fleet: PurchasedFleet, months: int) -> Iterator[str]:
    assert fleet.lease is not None
    term, rate = fleet.lease.term_months, fleet.figures["lease_usd_per_node_month"].typical
    price = fleet.figures[PRICE].typical
    if term > months:
        yield f"the lease of {term} months outlasts the horizon of {months}: what is left is owed there"
    if rate == 0:
        yield "machines are stated to be leased for nothing"
    elif rate * term * FAR < price:
        yield f"the lease pays {rate * term:,.0f} USD a node over its term, less than half of its price ({price:,.0f} USD)"
    elif rate * term > FAR * price:
        yield f"the lease pays {rate * term:,.0f} USD a node over its term, more than twice its price ({price:,.0f} USD)"


def _rent(fleet: RentedFleet, node: str, shared: Circumstances) -> Iterator[str]:
    months = shared.scenario.horizon_months
    if fleet.term_months is not None and fleet.term_months > months:
        yield f"the commitment of {fleet.term_months} months outlasts the horizon of {months}: what is left is owed there"
    figures = {**shared.scenario.figures, **fleet.figures}
    needed = (PEAK, "idle_power_fraction", "serving_power_fraction", "electricity_usd_per_kwh")
    if all(name in figures for name in needed):
        drawn = average_w(
            figures[PEAK].typical,
            figures["idle_power_fraction"].typical,
            figures["serving_power_fraction"].typical,
            figures["utilisation_fraction"].typical,
        )
        power = float(power_usd(energy_kwh_per_month(drawn), figures["electricity_usd_per_kwh"].typical))
        rent = fleet.figures["rent_usd_per_node_hour"].typical * HOURS_PER_MONTH
        if rent < power:
            yield f"{node} is stated to cost {rent:,.2f} USD a month, less than its electricity here ({power:,.2f} USD)"
