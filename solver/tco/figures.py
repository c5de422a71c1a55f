"""Inputs of the cost model: a quantity's domain, and a figure as low, typical, high."""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.tco.errors import CostInputError

Array: TypeAlias = NDArray[np.float64]
Quantity: TypeAlias = float | Array
"""One number, or one per draw (and month)."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a quantity makes sense. ``above_lower``: the lower end itself is excluded."""

    unit: str
    lower: float
    upper: float
    above_lower: bool = False

    def check(self, name: str, value: float, alternative: str | None = None) -> None:
        """Raises CostInputError naming ``name`` when ``value`` is not finite or outside."""
        if not math.isfinite(value):
            raise CostInputError(name, "must be a finite number", alternative)
        if value < self.lower or value > self.upper or (self.above_lower and value == self.lower):
            start = "above" if self.above_lower else "at least"
            raise CostInputError(
                name,
                f"must be {start} {self.lower:g} and at most {self.upper:g} {self.unit}; got {value:g}",
                alternative,
            )


MOST_USD = 1e9
"""No price of one node, month or megawatt comes near; beyond it a unit was mistaken."""

_FRACTION = Domain("(fraction)", 0.0, 1.0)
_YEARLY_SHARE = Domain("per year", 0.0, 1.0)
_CHANGE = Domain("per year", -0.9, 1.0)


def _usd(unit: str) -> Domain:
    return Domain(unit, 0.0, MOST_USD)


QUANTITIES: Mapping[str, Domain] = MappingProxyType(
    {
        "utilisation_fraction": _FRACTION,
        "growth_fraction_per_month": Domain("per month", -0.5, 1.0),
        "discount_fraction_per_year": Domain("per year", -0.5, 1.0),
        "inflation_fraction_per_year": Domain("per year", -0.2, 1.0),
        "electricity_usd_per_kwh": Domain("USD/kWh", 0.0, 10.0),
        "demand_charge_usd_per_kw_month": _usd("USD/kW-month"),
        "power_usage_effectiveness": Domain("(ratio)", 1.0, 5.0),
        "grid_kg_co2e_per_kwh": Domain("kg/kWh", 0.0, 3.0),
        "water_l_per_kwh": Domain("L/kWh", 0.0, 50.0),
        "rent_usd_per_node_hour": _usd("USD/h"),
        "spot_interruptions_per_node_month": Domain("per month", 0.0, 1000.0),
        "spot_lost_hours_per_interruption": Domain("h", 0.0, 24.0),
        "rent_change_fraction_per_year": _CHANGE,
        "api_change_fraction_per_year": _CHANGE,
        "hardware_change_fraction_per_year": _CHANGE,
        "egress_gb_per_month": Domain("GB per month", 0.0, 1e12),
        "egress_usd_per_gb": _usd("USD/GB"),
        "rented_storage_usd_per_month": _usd("USD/month"),
        "commitment_used_fraction": Domain("(fraction)", 0.0, 1.0, above_lower=True),
        "purchase_usd_per_node": _usd("USD"),
        "lease_usd_per_node_month": _usd("USD/month"),
        "buyout_usd_per_node": _usd("USD"),
        "held_usd_per_node": _usd("USD"),
        "network_usd_per_node": _usd("USD"),
        "storage_usd_per_node": _usd("USD"),
        "spare_fraction": _FRACTION,
        "residual_fraction": _FRACTION,
        "residual_fraction_after_3_years": _FRACTION,
        "residual_fraction_after_5_years": _FRACTION,
        "finance_fraction_per_year": Domain("per year", 0.0, 1.0),
        "peak_w_per_node": Domain("W", 0.0, 1e8),
        "idle_power_fraction": _FRACTION,
        "serving_power_fraction": _FRACTION,
        "colocation_usd_per_kw_month": _usd("USD/kW-month"),
        "maintenance_fraction_per_year": _YEARLY_SHARE,
        "support_fraction_per_year": _YEARLY_SHARE,
        "insurance_fraction_per_year": _YEARLY_SHARE,
        "tax_fraction": _FRACTION,
        "income_tax_fraction": _FRACTION,
        "staff_fte_per_node": Domain("FTE", 0.0, 100.0),
        "staff_usd_per_fte_year": _usd("USD/year"),
        "software_usd_per_device_year": _usd("USD/year"),
        "decommissioning_usd_per_node": _usd("USD"),
        "api_usd_per_million_input_tokens": _usd("USD"),
        "api_usd_per_million_cached_tokens": _usd("USD"),
        "api_usd_per_million_output_tokens": _usd("USD"),
    }
)
"""Every input by name. The limits are definitions (a share of one, PUE) or guards against a mistaken unit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One input: the value used (``typical``) and the range that draws are taken from.

    A figure the caller states has no range: low = typical = high.
    """

    low: float
    typical: float
    high: float

    def stepped(self, factor: float, domain: Domain) -> float:
        """``typical · factor``, kept inside the domain."""
        return min(max(self.typical * factor, domain.lower), domain.upper)


FigureTable: TypeAlias = Mapping[str, Figure]


def exactly(value: float) -> Figure:
    """A figure without uncertainty.

    >>> exactly(1.3)
    Figure(low=1.3, typical=1.3, high=1.3)
    """
    return Figure(value, value, value)


def check_figures(figures: FigureTable, alternative: str | None = None) -> None:
    """Every name known, every value in its domain, every range in order. Raises CostInputError."""
    for name, figure in figures.items():
        domain = QUANTITIES.get(name)
        if domain is None:
            raise CostInputError(name, "is not an input of the cost model", alternative)
        for value in (figure.low, figure.typical, figure.high):
            domain.check(name, value, alternative)
        if not figure.low <= figure.typical <= figure.high:
            raise CostInputError(name, "low, typical and high are not in order", alternative)


MARKET = "market"
MARKET_FIGURES = frozenset(
    (
        "rent_change_fraction_per_year",
        "api_change_fraction_per_year",
        "hardware_change_fraction_per_year",
        "residual_fraction_after_3_years",
        "residual_fraction_after_5_years",
    )
)
"""Where prices go. One draw moves them all: a machine that earns less rent fetches less when it is sold, and who rents
cheaper machines sells cheaper tokens. Drawn apart, owned machines would lose their value in a market that pays for them
as before."""


def draw(figure: Figure, name: str, draws: int, seed: int) -> Array:
    """Draws from low to high, half of them on either side of typical, denser towards it.

    The median is the typical value: what is computed from typical values then stands in the middle of the draws. (A
    triangle with its mode there has most of its mass on the longer side.) The generator is seeded by the input's name, so
    a figure's draws do not depend on which others are drawn, and every alternative sees the same future.
    """
    if figure.low == figure.high:
        return np.full(draws, figure.typical)
    stream = MARKET if name in MARKET_FIGURES else name
    generator = np.random.default_rng([seed, zlib.crc32(stream.encode())])
    return quantile(figure, generator.random(draws))


def quantile(figure: Figure, share: Quantity) -> Array:
    """The value that a share of the draws lies below: two right triangles that meet at typical.

    >>> [round(float(x), 3) for x in quantile(Figure(0.0, 1.0, 3.0), np.array([0.0, 0.125, 0.5, 0.875, 1.0]))]
    [0.0, 0.5, 1.0, 2.0, 3.0]
    """
    share = np.asarray(share)
    below = figure.low + (figure.typical - figure.low) * np.sqrt(2.0 * np.minimum(share, 0.5))
    above = figure.high - (figure.high - figure.typical) * np.sqrt(2.0 * (1.0 - np.maximum(share, 0.5)))
    return np.asarray(np.where(share < 0.5, below, above))
