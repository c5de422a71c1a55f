"""A small fleet with round figures, rented, committed, bought and by API."""

from dataclasses import replace

from solver.tco.alternatives import Alternative, ApiAccess, HeldMachines, Lease, PurchasedFleet, RentedFleet, Scenario
from solver.tco.figures import Figure, exactly
from solver.tco.tokens import TokenDemand

DEMAND = TokenDemand(requests_per_s=20.0, input_tokens=1200.0, output_tokens=300.0, cached_fraction=0.25)

SHARED = {
    "utilisation_fraction": exactly(0.6),
    "growth_fraction_per_month": exactly(0.0),
    "discount_fraction_per_year": exactly(0.08),
    "inflation_fraction_per_year": exactly(0.0),
    "electricity_usd_per_kwh": Figure(0.08, 0.10, 0.12),
    "power_usage_effectiveness": Figure(1.1, 1.25, 1.54),
    "demand_charge_usd_per_kw_month": exactly(0.0),
    "grid_kg_co2e_per_kwh": exactly(0.369),
    "water_l_per_kwh": exactly(1.8),
    "rent_change_fraction_per_year": exactly(0.0),
    "api_change_fraction_per_year": exactly(0.0),
    "hardware_change_fraction_per_year": exactly(0.0),
    "tax_fraction": exactly(0.0),
}
OWNED = {
    "purchase_usd_per_node": Figure(300_000.0, 340_000.0, 420_000.0),
    "network_usd_per_node": Figure(20_000.0, 35_000.0, 50_000.0),
    "storage_usd_per_node": exactly(10_000.0),
    "spare_fraction": exactly(0.05),
    "residual_fraction_after_3_years": Figure(0.2, 0.45, 0.7),
    "residual_fraction_after_5_years": Figure(0.0, 0.1, 0.2),
    "peak_w_per_node": exactly(10_960.0),
    "idle_power_fraction": exactly(0.4),
    "serving_power_fraction": Figure(0.55, 0.75, 0.93),
    "colocation_usd_per_kw_month": Figure(150.0, 184.0, 220.0),
    "maintenance_fraction_per_year": Figure(0.01, 0.04, 0.10),
    "support_fraction_per_year": exactly(0.0),
    "insurance_fraction_per_year": exactly(0.007),
    "staff_fte_per_node": exactly(0.25),
    "staff_usd_per_fte_year": Figure(150_000.0, 200_000.0, 300_000.0),
    "software_usd_per_device_year": exactly(0.0),
}
SPOT = {
    "spot_interruptions_per_node_month": Figure(0.1, 0.5, 2.0),
    "spot_lost_hours_per_interruption": Figure(0.1, 0.25, 0.5),
}
API = {
    "api_usd_per_million_input_tokens": exactly(0.60),
    "api_usd_per_million_output_tokens": exactly(0.80),
    "api_usd_per_million_cached_tokens": exactly(0.10),
}


def scenario(months: int = 36, **figures: float) -> Scenario:
    return Scenario(months, DEMAND, {**SHARED, **{name: exactly(value) for name, value in figures.items()}})


def rented(name: str = "rent", nodes: int = 2, usd_per_hour: float = 30.0) -> RentedFleet:
    return RentedFleet(name, nodes, 8, {"rent_usd_per_node_hour": exactly(usd_per_hour)})


def committed(name: str = "reserve", nodes: int = 2, term_months: int = 36, upfront: float = 0.0) -> RentedFleet:
    return replace(rented(name, nodes, 18.0), term_months=term_months, upfront_fraction=upfront)


def bought(name: str = "buy", nodes: int = 2, **figures: float) -> PurchasedFleet:
    stated = {key: exactly(value) for key, value in figures.items()}
    return PurchasedFleet(name, nodes, 8, {**OWNED, **stated}, life_months=60)


def leased(
    name: str = "lease", nodes: int = 2, term: int = 36, keep: int = 0, advance: bool = False, **figures: float
) -> PurchasedFleet:
    """keep: months for which machines are kept after they are bought out; 0: they go back."""
    stated = {"lease_usd_per_node_month": 9_500.0, **({"buyout_usd_per_node": 30_000.0} if keep else {}), **figures}
    terms = Lease(term, bought_out=keep > 0, in_advance=advance)
    return replace(bought(name, nodes, **stated), life_months=term + keep, lease=terms)


def kept(name: str = "keep", nodes: int = 2, held: int = 1, age: int = 20, **figures: float) -> PurchasedFleet:
    return replace(bought(name, nodes, **{"held_usd_per_node": 310_000.0, **figures}), held=HeldMachines(held, age))


def api(name: str = "api") -> ApiAccess:
    return ApiAccess(name, API)


def ten_alternatives() -> list[Alternative]:
    return [
        rented(),
        replace(rented("spot", usd_per_hour=14.0), interruptible=True, figures={**rented().figures, **SPOT}),
        committed("reserve 1 year", term_months=12),
        committed("reserve 3 years"),
        committed("reserve upfront", upfront=1.0),
        bought(),
        replace(bought("buy on credit", finance_fraction_per_year=0.11), finance_term_months=48),
        bought("buy dear", purchase_usd_per_node=500_000.0),
        replace(bought("buy short-lived"), life_months=36),
        api(),
    ]
