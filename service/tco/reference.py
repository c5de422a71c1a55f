"""Our owner's cost per device-hour beside published ones, from the same defaults and formulas for every device."""

from dataclasses import dataclass

from catalog.read_costs import CostCatalog
from catalog.rows import EnergyRow
from service.tco.defaults import MachineFacts, defaults_for, figures
from solver.errors import FigureMissingError
from solver.tco.owner_cost import OwnerCost, owner_cost_per_device_hour

REFERENCE = "reference_usd_per_device_hour"
REFERENCE_REGION = "us"
"""The published figures name no tariff; the national average stands for it."""
RACK_DEVICES = 72
BOARD_DEVICES = 8


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """One published figure and ours; ``missing`` names the figure that keeps us from having one."""

    device: str
    operator: str
    published_usd_per_device_hour: float
    ours: OwnerCost | None
    missing: str | None = None

    @property
    def difference_fraction(self) -> float | None:
        if self.ours is None:
            return None
        return self.ours.usd_per_device_hour / self.published_usd_per_device_hour - 1.0


def reference_rows(costs: CostCatalog, tariff: EnergyRow) -> list[ReferenceRow]:
    """Every published owner's cost, by operator class and device. Rental prices are not an owner's cost.

    tariff: of REFERENCE_REGION, unless another place is looked at.
    """
    rows = []
    for subject in costs.subjects(REFERENCE):
        device, operator = subject.split(":")
        published = costs.find(REFERENCE, subject)
        if operator in costs.operators and published is not None:
            rows.append(_row(costs, tariff, device, operator, published.typical))
    return sorted(rows, key=lambda row: (row.operator, row.device))


def machine_of(device: str) -> MachineFacts:
    """The box the published figures are about: an 8-device board, or a 72-device rack."""
    if device.endswith("nvl72"):
        return MachineFacts(device, device, RACK_DEVICES, "nvl_rack")
    return MachineFacts(device, device, BOARD_DEVICES, "hgx_8")


def _row(costs: CostCatalog, tariff: EnergyRow, device: str, operator: str, published: float) -> ReferenceRow:
    defaults = defaults_for(costs, operator)
    machine = machine_of(device)
    life = defaults.life_months()
    if life is None:
        return ReferenceRow(device, operator, published, None, "it_life_years")
    inputs = defaults.scenario(tariff.region, tariff) | defaults.ownership(machine, nodes=1)
    try:
        ours = owner_cost_per_device_hour(device, figures(inputs), machine.devices, round(life.figure.typical))
    except FigureMissingError as missing:
        return ReferenceRow(device, operator, published, None, missing.figure)
    return ReferenceRow(device, operator, published, ours)
