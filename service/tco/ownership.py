"""What buying and running a machine takes: the request's figures before the catalog's."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.tco.defaults import DESKTOP_KINDS, CostDefaults, Default, MachineFacts, figures
from service.wire.tco import PurchaseIn
from solver.errors import FigureMissingError
from solver.tco.figures import Figure, exactly

PRICE = "purchase_usd_per_node"
PEAK = "peak_w_per_node"
LIFE = "depreciation_months"
WATTS_PER_KW = 1000.0


@dataclass(frozen=True, slots=True)
class PurchaseTerms:
    """What buying and running a machine takes. defaults: figures that are the catalog's, by input."""

    figures: dict[str, Figure]
    life_months: int
    finance_months: int | None
    defaults: dict[str, Default]
    notes: tuple[str, ...]


def purchase_terms(
    purchase: PurchaseIn, machine: MachineFacts, nodes: int, defaults: CostDefaults, owned: Mapping[str, Figure]
) -> PurchaseTerms:
    """The request's figures before the catalog's; ``owned``: those it states for all machines.

    Raises FigureMissingError for machines without a life; without a price or power the figure is not among ``figures``.
    """
    stated = {**_stated(purchase), **owned}
    found = {name: d for name, d in defaults.ownership(machine, nodes).items() if name not in stated}
    if "residual_fraction" in stated:
        found = {name: d for name, d in found.items() if not name.startswith("residual_fraction")}
    life = defaults.life_months()
    months = purchase.depreciation_months
    if months is None:
        if life is None:
            raise FigureMissingError(machine.node, LIFE)
        months = round(life.figure.typical)
        found[LIFE] = life
    financed = purchase.finance_rate_percent is not None or purchase.finance_months is not None
    if not financed:
        found.pop("finance_fraction_per_year", None)
    table = {**figures({n: d for n, d in found.items() if n != LIFE}), **stated}
    notes = []
    if machine.kind in DESKTOP_KINDS:
        notes.append(f"{machine.node} stands by a desk: no colocation, cluster network or staff of its own is charged")
    for optional in ("network_usd_per_node", "storage_usd_per_node"):
        if optional not in table:
            table[optional] = exactly(0.0)
            notes.append(f"no figure for {optional} of {machine.node}: none is added")
    term = (purchase.finance_months or months) if financed else None
    return PurchaseTerms(table, months, term, found, tuple(notes))


def _stated(purchase: PurchaseIn) -> dict[str, Figure]:
    """What the request states itself; it has no range."""
    stated = {
        PRICE: purchase.usd_per_node,
        PEAK: None if purchase.peak_kw_per_node is None else purchase.peak_kw_per_node * WATTS_PER_KW,
        "network_usd_per_node": purchase.network_usd_per_node,
        "storage_usd_per_node": purchase.storage_usd_per_node,
        "software_usd_per_device_year": purchase.software_usd_per_device_year,
        "decommissioning_usd_per_node": purchase.decommissioning_usd_per_node,
        "residual_fraction": purchase.residual_fraction,
        "staff_fte_per_node": purchase.staff_fte_per_node,
        "maintenance_fraction_per_year": share_of(purchase.maintenance_percent_per_year),
        "finance_fraction_per_year": share_of(purchase.finance_rate_percent),
    }
    return {name: exactly(float(value)) for name, value in stated.items() if value is not None}


def share_of(percent: float | None) -> float | None:
    return None if percent is None else percent / 100.0
