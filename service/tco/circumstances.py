"""What all alternatives share: the request's own figures before the catalog's."""

from dataclasses import dataclass

from service.tco.defaults import Default, figures
from service.wire.tco import ComparisonIn
from solver.tco.alternatives import Scenario
from solver.tco.figures import Figure, exactly
from solver.tco.sampling import Sampling
from solver.tco.tokens import TokenDemand

PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    scenario: Scenario
    defaults: dict[str, Default]
    """Those that were used."""


def circumstances(asked: ComparisonIn, demand: TokenDemand, shared: dict[str, Default]) -> Circumstances:
    """``shared``: the catalog's figures for the operator and region. Raises CostInputError."""
    stated = _stated(asked)
    used = {name: default for name, default in shared.items() if name not in stated}
    profile = None if asked.hourly_profile is None else tuple(asked.hourly_profile)
    scenario = Scenario(asked.horizon_months, demand, {**figures(used), **stated}, profile, asked.ramp_months)
    return Circumstances(scenario, used)


def sampling_of(asked: ComparisonIn) -> Sampling:
    return Sampling(
        draws=asked.monte_carlo.draws,
        seed=asked.monte_carlo.seed,
        swing_mode=asked.sensitivity.mode,
        swing_fraction=asked.sensitivity.step_percent / PERCENT,
    )


def _stated(asked: ComparisonIn) -> dict[str, Figure]:
    electricity = asked.electricity
    stated = {
        "utilisation_fraction": asked.utilisation_fraction,
        "growth_fraction_per_month": asked.growth_percent_per_month / PERCENT,
        "discount_fraction_per_year": _fraction(asked.discount_rate_percent),
        "inflation_fraction_per_year": _fraction(asked.inflation_percent_per_year),
        "rent_change_fraction_per_year": _fraction(asked.market.rent_percent_per_year),
        "api_change_fraction_per_year": _fraction(asked.market.api_percent_per_year),
        "hardware_change_fraction_per_year": _fraction(asked.market.hardware_percent_per_year),
        "tax_fraction": _fraction(asked.tax_percent),
        "income_tax_fraction": _fraction(asked.income_tax_percent),
        "electricity_usd_per_kwh": electricity.usd_per_kwh,
        "demand_charge_usd_per_kw_month": electricity.demand_charge_usd_per_kw_month,
        "grid_kg_co2e_per_kwh": electricity.grid_kg_co2e_per_kwh,
        "power_usage_effectiveness": asked.power_usage_effectiveness,
    }
    return {name: exactly(float(value)) for name, value in stated.items() if value is not None}


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else percent / PERCENT
