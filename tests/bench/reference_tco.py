"""Prints our owner's cost per device-hour beside the published ones: ``python -m tests.bench.reference_tco``.

Every device goes through the same formulas; only the operator class (hyperscaler, neocloud) chooses among the rows of
the cost catalog. The published figures come without a breakdown, so the gap is shown as the capital per device that
would close it.
"""

from dataclasses import replace
from decimal import Decimal

from rich.console import Console
from rich.table import Table

from catalog.cost_rows import CostFigureRow
from catalog.read import read_catalog
from catalog.read_costs import CostCatalog, read_costs
from catalog.rows import EnergyRow
from service.tco.reference import REFERENCE_REGION, ReferenceRow, reference_rows

DRIVERS = (
    "device_purchase_usd", "system_all_in_usd", "system_purchase_usd", "server_parts_usd", "server_nvme_usd",
    "network_usd_per_device", "all_in_power_kw_per_device", "serving_power_fraction",
    "power_usage_effectiveness", "colocation_usd_per_kw_month", "it_life_years", "residual_fraction_after_5_years",
    "cost_of_capital_fraction_per_year", "insurance_fraction_per_year", "maintenance_fraction_per_year",
    "spare_fraction", "staff_fte_per_1000_devices", "staff_usd_per_fte_year",
)  # fmt: skip
STEP_FRACTION = 0.2


def main() -> None:
    console = Console(width=170)
    costs = read_costs()
    tariff = read_catalog().energy[REFERENCE_REGION]
    rows = reference_rows(costs, tariff)
    console.print(_lines(rows))
    console.print(_drivers(costs, tariff, rows))


def _lines(rows: list[ReferenceRow]) -> Table:
    names = ("capital", "power", "cooling", "space", "maintenance", "insurance", "staff")
    table = Table(title="Owner's cost, USD per device-hour")
    for heading in (
        "operator",
        "device",
        *names,
        "ours",
        "published",
        "difference",
        "capital",
        "capital that closes it",
    ):
        table.add_column(heading, justify="left" if heading in ("operator", "device") else "right")
    for row in rows:
        if row.ours is None or row.difference_fraction is None:
            published = f"{row.published_usd_per_device_hour:.2f}"
            table.add_row(row.operator, row.device, *["" for _ in names], "no price", published, "", "", "")
            continue
        ours = row.ours
        per_dollar = ours.lines["capital"] / ours.capital_usd_per_device
        gap = row.published_usd_per_device_hour - ours.usd_per_device_hour
        table.add_row(
            row.operator,
            row.device,
            *(f"{ours.lines[name]:.3f}" for name in names),
            f"{ours.usd_per_device_hour:.2f}",
            f"{row.published_usd_per_device_hour:.2f}",
            f"{row.difference_fraction:+.1%}",
            f"{ours.capital_usd_per_device:,.0f}",
            f"{ours.capital_usd_per_device + gap / per_dollar:,.0f}",
        )
    return table


def _drivers(costs: CostCatalog, tariff: EnergyRow, rows: list[ReferenceRow]) -> Table:
    """How far our mean figure moves when one input goes up by a fifth, everywhere."""
    base = _mean(rows)
    dear = tariff.model_copy(update={"usd_per_kwh": tariff.usd_per_kwh * (1 + Decimal(str(STEP_FRACTION)))})
    raised = {name: reference_rows(_raised(costs, name), tariff) for name in DRIVERS}
    raised["electricity_usd_per_kwh"] = reference_rows(costs, dear)
    effects = sorted(((name, _mean(rows) / base - 1.0) for name, rows in raised.items()), key=lambda e: -abs(e[1]))
    table = Table(title=f"What drives it: mean change when an input rises by {STEP_FRACTION:.0%}")
    table.add_column("input")
    table.add_column("change", justify="right")
    for name, effect in effects:
        table.add_row(name, f"{effect:+.1%}")
    return table


def _mean(rows: list[ReferenceRow]) -> float:
    known = [row.ours.usd_per_device_hour for row in rows if row.ours is not None]
    return sum(known) / len(known)


def _raised(costs: CostCatalog, name: str) -> CostCatalog:
    def raised(row: CostFigureRow) -> CostFigureRow:
        most = 1.0 if row.name.endswith("_fraction") else float("inf")
        ends = {end: min(most, getattr(row, end) * (1.0 + STEP_FRACTION)) for end in ("low", "typical", "high")}
        return row.model_copy(update=ends) if row.name == name else row

    return replace(costs, figures={key: raised(row) for key, row in costs.figures.items()})


if __name__ == "__main__":
    main()
