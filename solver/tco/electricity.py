"""Power, energy, cooling, space, carbon and water."""

from solver.tco.figures import Quantity
from solver.units import HOURS_PER_MONTH

WATTS_PER_KW = 1000.0
"""Tariffs and colocation are priced by the kilowatt."""


def average_w(
    peak_w: Quantity, idle_fraction: Quantity, serving_fraction: Quantity, utilisation_fraction: Quantity
) -> Quantity:
    """Average draw of machines that are always on: peak · (idle + (serving − idle) · utilisation).

    >>> round(average_w(10_000.0, 0.4, 0.8, 0.5), 6)
    6000.0
    """
    return peak_w * (idle_fraction + (serving_fraction - idle_fraction) * utilisation_fraction)


def energy_kwh_per_month(average_w: Quantity) -> Quantity:
    """
    >>> energy_kwh_per_month(1370.0)
    1000.1
    """
    return average_w / WATTS_PER_KW * HOURS_PER_MONTH


def power_usd(it_kwh: Quantity, usd_per_kwh: Quantity) -> Quantity:
    """Electricity of the machines themselves.

    >>> power_usd(1000.0, 0.09)
    90.0
    """
    return it_kwh * usd_per_kwh


def cooling_usd(it_kwh: Quantity, power_usage_effectiveness: Quantity, usd_per_kwh: Quantity) -> Quantity:
    """Electricity of everything else in the building, which is what PUE counts: (PUE − 1) · IT energy · tariff.

    >>> round(cooling_usd(1000.0, 1.3, 0.09), 9)
    27.0
    """
    return it_kwh * (power_usage_effectiveness - 1.0) * usd_per_kwh


def demand_charge_usd_per_month(
    peak_w: Quantity, power_usage_effectiveness: Quantity, usd_per_kw_month: Quantity
) -> Quantity:
    """Charge on the month's highest draw at the meter.

    >>> demand_charge_usd_per_month(100_000.0, 1.25, 10.0)
    1250.0
    """
    return peak_w / WATTS_PER_KW * power_usage_effectiveness * usd_per_kw_month


def space_usd_per_month(peak_w: Quantity, colocation_usd_per_kw_month: Quantity) -> Quantity:
    """Colocation bills contracted (peak) IT power; electricity is passed through on top.

    >>> space_usd_per_month(10_200.0, 184.0)
    1876.8
    """
    return peak_w / WATTS_PER_KW * colocation_usd_per_kw_month


def grid_kg_co2e(facility_kwh: Quantity, kg_per_kwh: Quantity) -> Quantity:
    """Location-based emissions of the electricity used; making the machines is not in it.

    >>> grid_kg_co2e(1000.0, 0.369)
    369.0
    """
    return facility_kwh * kg_per_kwh


def water_l(it_kwh: Quantity, l_per_kwh: Quantity) -> Quantity:
    """Water used on site: IT energy times water usage effectiveness.

    >>> water_l(1000.0, 1.8)
    1800.0
    """
    return it_kwh * l_per_kwh
