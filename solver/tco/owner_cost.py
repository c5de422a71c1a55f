"""What one hour of one owned device costs, by line: capital recovered over its life, and all it takes to run it.

The annual view of the purchase whose cash flows ``cash_flows`` lays out; comparable with published owner's costs.
"""

from dataclasses import dataclass
from typing import TypeAlias

from solver.errors import FigureMissingError
from solver.tco import electricity, operating
from solver.tco.capital import capital_recovery_usd_per_month, residual_fraction_at
from solver.tco.figures import FigureTable, check_figures
from solver.units import HOURS_PER_MONTH

OwnerLines: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True)
class OwnerCost:
    """USD per device-hour by line; ``capital_usd_per_device`` is what was paid for it all."""

    lines: OwnerLines
    capital_usd_per_device: float

    @property
    def usd_per_device_hour(self) -> float:
        return sum(self.lines.values())


def owner_cost_per_device_hour(
    subject: str, figures: FigureTable, devices_per_node: int, life_months: int, utilisation_fraction: float = 1.0
) -> OwnerCost:
    """All lines at the typical value of every figure, per hour of calendar time.

    ``discount_fraction_per_year`` is the cost of capital. Raises FigureMissingError, CostInputError.
    """
    check_figures(figures, subject)

    def typical(name: str) -> float:
        if name not in figures:
            raise FigureMissingError(subject, name)
        return figures[name].typical

    machines = typical("purchase_usd_per_node") * (1.0 + typical("spare_fraction"))
    capital = machines + typical("network_usd_per_node") + typical("storage_usd_per_node")
    residual = machines * float(
        residual_fraction_at(
            life_months, typical("residual_fraction_after_3_years"), typical("residual_fraction_after_5_years")
        )
    )
    recovered = capital_recovery_usd_per_month(capital, residual, typical("discount_fraction_per_year"), life_months)
    peak_w = typical("peak_w_per_node")
    effectiveness, tariff = typical("power_usage_effectiveness"), typical("electricity_usd_per_kwh")
    mean_w = electricity.average_w(
        peak_w, typical("idle_power_fraction"), typical("serving_power_fraction"), utilisation_fraction
    )
    it_kwh = electricity.energy_kwh_per_month(mean_w)
    per_month = {
        "capital": recovered,
        "power": electricity.power_usd(it_kwh, tariff),
        "cooling": electricity.cooling_usd(it_kwh, effectiveness, tariff),
        "space": electricity.space_usd_per_month(peak_w, typical("colocation_usd_per_kw_month")),
        "maintenance": operating.yearly_share_usd_per_month(capital, typical("maintenance_fraction_per_year")),
        "insurance": operating.yearly_share_usd_per_month(capital, typical("insurance_fraction_per_year")),
        "staff": operating.staff_usd_per_month(typical("staff_fte_per_node"), typical("staff_usd_per_fte_year")),
    }
    device_hours = devices_per_node * HOURS_PER_MONTH
    return OwnerCost({line: float(usd) / device_hours for line, usd in per_month.items()}, capital / devices_per_node)
