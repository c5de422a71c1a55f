"""Machines that a request names and nobody rents out, at what an hour of one costs to own.

The payments are those of a comparison of costs: price, power, space, people, upkeep and what it is sold for, over its life, for
the operator and the tariff that comparisons take where none is stated. Only a device that ``limits.devices`` names is bought, so
that no other request is answered with it.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from sqlmodel import Session

from catalog.rows import EnergyRow
from service.devices.tables import DeviceTable
from service.nodes.tables import NodeTable
from service.recommendations.bought_offers import BOUGHT_BY, PURCHASE, Bought
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.published import PublishedMachine, machines_served_by
from service.tco.defaults import CostDefaults, Default, defaults_for, figures
from service.tco.ownership import PRICE, purchase_terms
from service.tco.prepare import DEFAULT_REGION, cost_catalog, machine_facts
from service.tco.queries import energy_by_region, machines_of_devices
from service.wire.tco import PurchaseIn
from solver.errors import FigureMissingError
from solver.hardware import Node, Offer, Sale
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure, exactly
from solver.tco.owned_node import owned_node
from solver.units import HOURS_PER_MONTH

OPERATOR = "enterprise"
NO_CHANGES = {
    "utilisation_fraction": exactly(1.0),
    "growth_fraction_per_month": exactly(0.0),
    "discount_fraction_per_year": exactly(0.0),
}
"""A plan's price is of now: neither demand nor money changes its worth in it, and nodes serve around the clock."""


def with_bought(session: Session, snapshot: CatalogSnapshot, named: Collection[str]) -> CatalogSnapshot:
    """The snapshot with purchases of the devices named that nobody rents out.

    What the cost catalog has no price or power of is not bought; the missing figure stands in ``not_bought`` by device.
    """
    rented = {offer.node.device.id for offer in snapshot.offers}
    wanted = [name for name in named if name in snapshot.devices and name not in rented]
    wanted = [name for name in wanted if not machines_served_by(name)]
    if not wanted:
        return snapshot
    defaults, shared = _circumstances(session)
    found: list[Bought] = []
    lacking: dict[str, str] = {}
    for node, device in machines_of_devices(session, wanted):
        if any(node.id.startswith(f"{provider}-") for provider in snapshot.providers):
            continue  # a cloud's instance type, which nobody sells
        try:
            found.append(_bought(node, device, snapshot.nodes[node.id], defaults, shared))
        except FigureMissingError as missing:
            lacking.setdefault(device.id, missing.figure)
        except CostInputError as wrong:
            lacking.setdefault(device.id, str(wrong))
    sold = {one.offer.node.device.id for one in found}
    return replace(
        snapshot,
        offers=tuple(sorted((*snapshot.offers, *(one.offer for one in found)), key=lambda offer: offer.id)),
        bought={one.offer.id: one.how for one in found},
        not_bought={device: figure for device, figure in lacking.items() if device not in sold},
    )


def published_machines(session: Session, named: Collection[str]) -> tuple[PublishedMachine, ...]:
    """Machines of the devices named that nobody rents out and of which only speeds are published, where they have a price."""
    wanted = [name for name in named if machines_served_by(name)]
    if not wanted:
        return ()
    defaults, shared = _circumstances(session)
    found = []
    for node, device in machines_of_devices(session, wanted):
        with suppress(FigureMissingError, CostInputError):
            usd, how, _ = _hour_of(node, device, defaults, shared)
            offer = f"{BOUGHT_BY}:{node.id}:{DEFAULT_REGION}:{PURCHASE}"
            found.append(PublishedMachine(offer, node.id, device.id, DEFAULT_REGION, usd, how))
    return tuple(found)


def _circumstances(session: Session) -> tuple[CostDefaults, Mapping[str, Figure]]:
    """Of whom the catalog takes to own machines, where."""
    defaults = defaults_for(cost_catalog(), OPERATOR)
    tariff = energy_by_region(session, DEFAULT_REGION)
    energy = None if tariff is None else EnergyRow.model_validate(tariff.row)
    return defaults, figures(defaults.scenario(DEFAULT_REGION, energy)) | NO_CHANGES


def _hour_of(
    node: NodeTable, device: DeviceTable, defaults: CostDefaults, shared: Mapping[str, Figure]
) -> tuple[float, str, Default]:
    """US dollars of an hour of owning a machine, how they come about, and its price. Raises FigureMissingError, CostInputError."""
    facts = machine_facts(node, device)
    terms = purchase_terms(PurchaseIn(), facts, 1, defaults, {})
    for needed in (PRICE, "peak_w_per_node"):
        if needed not in terms.figures:
            raise FigureMissingError(node.id, needed)
    months = terms.life_months
    owned = owned_node(node.id, shared, terms.figures, facts.devices, months, terms.finance_months, months, 0)
    an_hour = owned.usd / (months * HOURS_PER_MONTH)
    price = terms.defaults[PRICE]
    how = (
        f"nobody rents it out by the hour: bought for {price.figure.typical:,.0f} USD a node ({_origins(price)}), kept for {months} "
        f"months with power, space and upkeep as a comparison of costs takes them for an {OPERATOR} in {DEFAULT_REGION}, less "
        f"what it is sold for: {an_hour:,.4f} USD an hour"
    )
    return an_hour, how, price


def _bought(
    node: NodeTable, device: DeviceTable, machine: Node, defaults: CostDefaults, shared: Mapping[str, Figure]
) -> Bought:
    """Raises FigureMissingError, CostInputError."""
    an_hour, how, price = _hour_of(node, device, defaults, shared)
    offer = Offer(
        id=f"{BOUGHT_BY}:{node.id}:{DEFAULT_REGION}:{PURCHASE}",
        node=machine,
        provider=BOUGHT_BY,
        region=DEFAULT_REGION,
        commitment=PURCHASE,
        usd_per_hour=an_hour,
        sale=Sale(device_class=device.device_class, named_place=False, confidence=_confidence(price), own=True),
    )
    return Bought(offer, how)


def _confidence(price: Default) -> str:
    """A street price is an estimate: medium where all of it was read, else low."""
    return "medium" if all(one.checked in ("read", "data_set") for one in price.origins) else "low"


def _origins(price: Default) -> str:
    return "; ".join(f"{one.source}, {one.as_of}, {one.checked}" for one in price.origins)
