"""Running owned machines: maintenance, staff, licences, insurance, taxes. And what a built hall costs."""

import math

from solver.tco.capital import MONTHS_PER_YEAR
from solver.tco.errors import CostInputError
from solver.tco.figures import Quantity


def yearly_share_usd_per_month(installed_usd: Quantity, fraction_per_year: Quantity) -> Quantity:
    """Maintenance, support or insurance: a yearly share of what the installed machines cost.

    >>> yearly_share_usd_per_month(300_000.0, 0.04)
    1000.0
    """
    return installed_usd * fraction_per_year / MONTHS_PER_YEAR


def staff_usd_per_month(fte: Quantity, usd_per_fte_year: Quantity) -> Quantity:
    """
    >>> staff_usd_per_month(0.5, 200_000.0)
    8333.333333333334
    """
    return fte * usd_per_fte_year / MONTHS_PER_YEAR


def staff_fte(
    devices: float, small_fte_per_device: float, small_devices: float, large_fte_per_device: float, large_devices: float
) -> float:
    """People who keep so many devices running. Proportional up to ``small_devices`` and from ``large_devices`` on,
    a power law through both ends between: teams grow slower than fleets.

    >>> staff_fte(8, 0.25 / 8, 32, 0.004, 1000), staff_fte(2000, 0.25 / 8, 32, 0.004, 1000)
    (0.25, 8.0)
    >>> round(staff_fte(178.885, 0.25 / 8, 32, 0.004, 1000), 3)
    2.0
    """
    if not 0 < small_devices < large_devices:
        raise CostInputError("staff", "the small fleet must be smaller than the large one")
    if devices <= small_devices or small_fte_per_device <= 0 or large_fte_per_device <= 0:
        return devices * small_fte_per_device
    if devices >= large_devices:
        return devices * large_fte_per_device
    low, high = small_fte_per_device * small_devices, large_fte_per_device * large_devices
    exponent = math.log(high / low) / math.log(large_devices / small_devices)
    return float(low * (devices / small_devices) ** exponent)


def software_usd_per_month(devices: Quantity, usd_per_device_year: Quantity) -> Quantity:
    """
    >>> software_usd_per_month(16.0, 4500.0)
    6000.0
    """
    return devices * usd_per_device_year / MONTHS_PER_YEAR


def tax_usd(taxed_usd: Quantity, tax_fraction: Quantity) -> Quantity:
    """Tax on what is bought from others.

    >>> tax_usd(200.0, 0.19)
    38.0
    """
    return taxed_usd * tax_fraction
