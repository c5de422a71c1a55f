"""Alternatives of a request → alternatives of the cost model, with the origin of every figure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from service.problems import FieldError, InvalidFieldsError
from service.tco.apis import ApiTerms
from service.tco.defaults import CostDefaults, Default, MachineFacts, figures
from service.tco.grids import CARBON, place_of, standing_there
from service.tco.leasing import held_terms, lease_terms
from service.tco.ownership import LIFE, PEAK, PRICE, WATTS_PER_KW, purchase_terms
from service.tco.prices import ON_DEMAND, TERM_MONTHS, PriceBook, PricedFigure
from service.tco.stored_plan import StoredPlan
from service.wire.tco import AlternativeIn, MachineIn
from service.wire.tco_answers import PartOut
from solver.errors import FigureMissingError
from solver.tco.alternatives import (
    Alternative,
    ApiAccess,
    MixedFleet,
    PurchasedFleet,
    RentedFleet,
)
from solver.tco.figures import Figure, exactly

STANDING_HERE = ("purchase", "lease")
"""Acquisitions of machines that are housed and run by oneself."""
API_NOTE = "whether the API meets the latency targets, and at which precision it serves, cannot be checked here"
STATE = {PRICE: "usd_per_node", PEAK: "peak_kw_per_node"}
"""Where a request states what the catalog lacks, in ``machines`` and in ``purchase``."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of one kind that an alternative consists of, from a plan or stated. pointer: where an error belongs."""

    machine: MachineFacts
    count: int
    offer: str | None
    usd_per_node_hour: Decimal | None
    stated: bool
    pointer: str
    carries: float = 1.0
    nodes_per_step: int = 1
    busy_fraction: float | None = None
    interrupted_together: int = 1
    preempted: bool = False
    """The plan that it is of counts already what interruptions take."""
    sold_as_devices: int | None = None
    note: str | None = None


@dataclass(slots=True)
class Resolved:
    """One alternative ready to be computed, and what to tell about it."""

    asked: AlternativeIn
    alternative: Alternative
    parts: list[PartOut] = field(default_factory=list)
    defaults: dict[str, Default] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    acquisition: str | None = None
    precision: tuple[str, ...] = ()
    survives: dict[str, int] | None = None
    sunk_usd: Decimal | None = None


def nodes_of(
    asked: AlternativeIn, position: int, plans: Mapping[str, StoredPlan], machines: Mapping[str, MachineFacts]
) -> list[Nodes]:
    """The nodes an alternative consists of; lines of a plan that rent the same offer are one."""
    if asked.fleet is not None:
        return [
            Nodes(
                machines[part.node], part.count, part.offer, part.usd_per_node_hour, part.usd_per_node_hour is not None,
                f"/alternatives/{position}/fleet/{number}", asked.carries or 1.0,
            )
            for number, part in enumerate(asked.fleet)
        ]  # fmt: skip
    if asked.recommendation is None:
        return []
    pointer = f"/alternatives/{position}/recommendation"
    counted: dict[tuple[str, str], Nodes] = {}
    for line in plans[asked.recommendation].lines:
        one = counted.get((line.node, line.offer))
        nodes, usd = (0, Decimal(0)) if one is None else (one.count, (one.usd_per_node_hour or Decimal(0)) * one.count)
        count = nodes + line.nodes
        if count:
            counted[line.node, line.offer] = Nodes(
                machines[line.node], count, line.offer, (usd + line.usd_per_hour) / count, False, pointer,
                asked.carries or line.carries, line.nodes_per_step,
            )  # fmt: skip
    return list(counted.values())


def resolve(
    asked: AlternativeIn,
    position: int,
    nodes: list[Nodes],
    prices: PriceBook,
    owned: Mapping[str, Figure],
    machines: Mapping[str, MachineIn],
    api: ApiTerms | None,
) -> Resolved:
    """``owned``: figures of ownership that the request states for all alternatives; ``machines``: those of one kind of node.

    Raises InvalidFieldsError pointing at what is missing or contradictory.
    """
    if api is not None:
        notes = [API_NOTE, *api.notes]
        return Resolved(asked, ApiAccess(asked.name, api.figures), defaults=dict(api.defaults), notes=notes)
    resolved = Resolved(asked, ApiAccess(asked.name, {}), acquisition=asked.acquisition)
    if len(nodes) > 1:
        _of_one_kind(asked, position)
    built: list[RentedFleet | PurchasedFleet] = []
    for part in nodes:
        stated = machines.get(part.machine.node)
        if asked.acquisition in STANDING_HERE:
            built.append(_bought(asked, position, part, prices.defaults, resolved, owned, stated))
        else:
            built.append(_rented(asked, position, part, prices, resolved, stated))
    resolved.alternative = built[0] if len(built) == 1 else MixedFleet(asked.name, tuple(built))
    resolved.notes = list(dict.fromkeys(resolved.notes))
    return resolved


def _of_one_kind(asked: AlternativeIn, position: int) -> None:
    """Raises InvalidFieldsError for terms that machines of several kinds cannot share."""
    stated = {
        "owned/nodes": asked.owned is not None and asked.owned.nodes is not None,
        "owned/usd_paid_per_node": asked.owned is not None and asked.owned.usd_paid_per_node is not None,
        "lease/usd_per_node_month": asked.lease is not None and asked.lease.usd_per_node_month is not None,
        "lease/buyout_usd_per_node": asked.lease is not None and asked.lease.buyout_usd_per_node is not None,
    }
    detail = "is of one kind of node, and this alternative has several: leave it out, or compare them apart"
    errors = [
        FieldError(detail, pointer=f"/alternatives/{position}/{at}") for at, is_stated in stated.items() if is_stated
    ]
    if errors:
        raise InvalidFieldsError(errors)


def whole(asked: AlternativeIn, part: Nodes, defaults: CostDefaults, machines: Mapping[str, MachineIn]) -> Nodes:
    """What is bought where the plan has slices: whole servers or racks, enough for all devices, with a note that says so.

    A node that the request states a price for is bought as it is. A price for all machines of an alternative is one of
    what can be bought, so of an instance type it is that of the whole server.
    """
    machine, stated = part.machine, machines.get(part.machine.node)
    if asked.acquisition not in STANDING_HERE or (asked.purchase.usd_per_node is not None and not machine.instance):
        return part
    if stated is not None and stated.usd_per_node is not None:
        return part
    sold = defaults.whole_machine(machine)
    if sold.devices == machine.devices:
        return replace(part, machine=sold)
    needed = part.count * machine.devices
    count = math.ceil(needed / sold.devices)
    note = (
        f"{machine.node} is {machine.devices} of the {sold.devices} devices of the machine that is sold: {needed} devices "
        f"are bought as {count} whole, {count * sold.devices - needed} of them spare; colocation of a part, or a rented "
        "slice, has its own price: state it in machines"
    )
    step = math.ceil(part.nodes_per_step * machine.devices / sold.devices)
    carries = part.carries * count * sold.devices / needed
    return replace(
        part,
        machine=sold,
        count=count,
        carries=carries,
        nodes_per_step=step,
        busy_fraction=shared_over(part.busy_fraction, needed, count * sold.devices),
        sold_as_devices=sold.devices,
        note=note,
    )


def shared_over(busy_fraction: float | None, needed: int, there: int) -> float | None:
    """The mean share of time in which so many work, where only some of them are needed.

    >>> shared_over(0.8, 6, 8), shared_over(None, 6, 8)
    (0.6000000000000001, None)
    """
    return None if busy_fraction is None else busy_fraction * needed / there


def _rented(
    asked: AlternativeIn,
    position: int,
    part: Nodes,
    prices: PriceBook,
    resolved: Resolved,
    stated: MachineIn | None,
) -> RentedFleet:
    acquisition = asked.acquisition or (part.offer or "").rsplit(":", 1)[-1]
    price = _rent(asked, part, prices, acquisition)
    defaults = {**prices.defaults.rented_hall(), **prices.defaults.power(part.machine), **standing_there(part.offer)}
    own = {} if stated is None else _of_machine(stated, (PEAK,))
    if not resolved.parts:  # of the whole fleet: counted once
        own |= _beside_rent(asked, part, defaults, prices.defaults)
    if asked.commitment_used_fraction is not None:
        own["commitment_used_fraction"] = exactly(asked.commitment_used_fraction)
    if CARBON not in defaults:
        resolved.notes.append(
            f"no source says which grid feeds {part.offer or part.machine.node}: no emissions are claimed"
        )
    interruptible = acquisition == "spot" and not part.preempted
    if interruptible:
        defaults |= prices.defaults.spot()
    term = TERM_MONTHS.get(acquisition)
    upfront = 0.0
    if asked.payment != "no_upfront":
        if term is None:
            raise InvalidFieldsError(
                [FieldError(f"{acquisition} is not a commitment", pointer=f"/alternatives/{position}/payment")]
            )
        upfront = 1.0
        price = _paid_ahead(asked, part, acquisition, price, prices.defaults, resolved)
        if asked.payment == "partial_upfront":
            partial = prices.defaults.partial_upfront()
            upfront = 1.0 if partial is None else partial.figure.typical
            if partial is not None:
                resolved.defaults["upfront_fraction"] = partial
    if asked.commitment_used_fraction is not None and term is None:
        pointer = f"/alternatives/{position}/commitment_used_fraction"
        raise InvalidFieldsError([FieldError(f"{acquisition} is not a commitment", pointer=pointer)])
    if asked.follows_demand and term is not None:
        pointer = f"/alternatives/{position}/follows_demand"
        raise InvalidFieldsError([FieldError("a commitment is paid for day and night", pointer=pointer)])
    if price.default is not None:
        resolved.defaults["rent_ratio_to_on_demand"] = price.default
        resolved.notes.append(f"no price of {part.offer} under {acquisition} is stored; a sourced ratio stands in")
    resolved.defaults |= defaults
    resolved.acquisition = resolved.acquisition or acquisition
    used = {**figures({name: d for name, d in defaults.items() if name not in own}), **own}
    resolved.parts.append(_part(part, price, used))
    return RentedFleet(
        name=asked.name,
        nodes=part.count,
        devices_per_node=part.machine.devices,
        figures={**used, "rent_usd_per_node_hour": price.figure},
        term_months=term,
        upfront_fraction=upfront,
        interruptible=interruptible,
        follows_demand=asked.follows_demand,
        carries=part.carries,
        nodes_per_step=part.nodes_per_step,
        in_advance=asked.payment_timing == "in_advance",
        busy_fraction=part.busy_fraction,
        interrupted_together=part.interrupted_together,
    )


def _beside_rent(
    asked: AlternativeIn, part: Nodes, defaults: dict[str, Default], catalog: CostDefaults
) -> dict[str, Figure]:
    """Data sent out and disks, where the request states them; the price of sending is the provider's."""
    own: dict[str, Figure] = {}
    if asked.egress_gb_per_month is not None:
        own["egress_gb_per_month"] = exactly(asked.egress_gb_per_month)
        price = catalog.egress((part.offer or "").split(":", 1)[0])
        if price is not None:
            defaults["egress_usd_per_gb"] = price
    if asked.storage_usd_per_month is not None:
        own["rented_storage_usd_per_month"] = exactly(float(asked.storage_usd_per_month))
    return own


def _paid_ahead(
    asked: AlternativeIn, part: Nodes, acquisition: str, price: PricedFigure, defaults: CostDefaults, resolved: Resolved
) -> PricedFigure:
    """The price of a commitment paid (partly) upfront, where a source says how it relates to that of the same without."""
    provider = (part.offer or "").split(":", 1)[0]
    ratio = defaults.upfront_ratio(provider, asked.payment) if acquisition.endswith("_no_upfront") else None
    if price.basis == "stated" or ratio is None:
        if price.basis != "stated" and acquisition.endswith("_no_upfront"):
            resolved.notes.append(
                f"no source says what {provider or 'the seller'} takes off for paying upfront: nothing is"
            )
        return price
    resolved.defaults["upfront_price_ratio"] = ratio
    figure, times = price.figure, ratio.figure
    return replace(
        price, figure=Figure(figure.low * times.low, figure.typical * times.typical, figure.high * times.high)
    )


def _rent(asked: AlternativeIn, part: Nodes, prices: PriceBook, acquisition: str) -> PricedFigure:
    if part.stated and part.usd_per_node_hour is not None:
        return PricedFigure(exactly(float(part.usd_per_node_hour)), None, "stated")
    if part.offer is None:
        raise InvalidFieldsError(
            [FieldError("a rented fleet needs an offer or usd_per_node_hour", pointer=f"{part.pointer}/offer")]
        )
    if asked.acquisition is None and part.usd_per_node_hour is not None:
        return PricedFigure(exactly(float(part.usd_per_node_hour)), part.offer, "plan")
    found = prices.price(part.offer, asked.acquisition or ON_DEMAND, part.usd_per_node_hour)
    if found is None:
        detail = (
            f"{asked.name!r}: no price of {part.offer} under {acquisition}, and no ratio to derive one (figure_missing)"
        )
        raise InvalidFieldsError([FieldError(detail, pointer=part.pointer)])
    return found


def _bought(
    asked: AlternativeIn,
    position: int,
    part: Nodes,
    defaults: CostDefaults,
    resolved: Resolved,
    owned: Mapping[str, Figure],
    stated: MachineIn | None,
) -> PurchasedFleet:
    own = _of_machine(stated, (PRICE, PEAK, "network_usd_per_node", "storage_usd_per_node"))
    if part.note is not None:
        resolved.notes.append(part.note)
    works = asked.purchase.availability_fraction
    if works is not None and works < 1.0:
        count = math.ceil(part.count / works - 1e-9)
        resolved.notes.append(
            f"{count} of {part.machine.node} are bought so that {part.count} work on average at {works:.1%} of the time"
        )
        part = replace(
            part, count=count, carries=max(1.0, part.carries * count * works / part.count),
            busy_fraction=shared_over(part.busy_fraction, part.count, count),
        )  # fmt: skip
    try:
        terms = purchase_terms(asked.purchase, part.machine, part.count, defaults, {**owned, **own})
    except FigureMissingError as missing:
        detail = "figure_missing: no life of machines in the catalog"
        raise InvalidFieldsError([FieldError(detail, pointer=f"{part.pointer}/{LIFE}")]) from missing
    lacking = [name for name in (PRICE, PEAK) if name not in terms.figures]
    if lacking:
        wanted = " and ".join(f"{name}: state machines[].{STATE[name]} or purchase.{STATE[name]}" for name in lacking)
        detail = f"{asked.name!r}: figure_missing for {part.machine.node} (the catalog has no {wanted})"
        raise InvalidFieldsError([FieldError(detail, pointer=part.pointer)])
    lease, terms = lease_terms(asked, position, terms, defaults)
    held, terms, sunk = held_terms(asked, position, part.count, terms)
    if sunk is not None:
        resolved.sunk_usd = (resolved.sunk_usd or Decimal(0)) + sunk
    resolved.notes += terms.notes
    resolved.defaults |= terms.defaults
    resolved.parts.append(_part(part, None, terms.figures, "purchase" if lease is None else "lease"))
    return PurchasedFleet(
        name=asked.name,
        nodes=part.count,
        devices_per_node=part.machine.devices,
        figures=terms.figures,
        life_months=terms.life_months,
        lease=lease,
        held=held,
        finance_term_months=terms.finance_months,
        depreciation=asked.purchase.depreciation,
        carries=part.carries,
        nodes_per_step=part.nodes_per_step,
        lead_time_months=asked.purchase.lead_time_months,
        busy_fraction=part.busy_fraction,
    )


def _of_machine(stated: MachineIn | None, names: tuple[str, ...]) -> dict[str, Figure]:
    """What the request states of one kind of node, as figures of the cost model."""
    if stated is None:
        return {}
    kilowatts = stated.peak_kw_per_node
    values = {
        PRICE: stated.usd_per_node,
        PEAK: None if kilowatts is None else kilowatts * WATTS_PER_KW,
        "network_usd_per_node": stated.network_usd_per_node,
        "storage_usd_per_node": stated.storage_usd_per_node,
    }
    return {name: exactly(float(value)) for name in names if (value := values[name]) is not None}


def _part(part: Nodes, price: PricedFigure | None, used: Mapping[str, Figure], owned_as: str = "purchase") -> PartOut:
    peak, carbon = used.get(PEAK), used.get(CARBON)
    return PartOut(
        node=part.machine.node,
        device=part.machine.device,
        nodes=part.count,
        devices=part.count * part.machine.devices,
        sold_as_devices=part.sold_as_devices,
        carries=part.carries,
        nodes_per_step=part.nodes_per_step,
        region=None if price is None or part.offer is None else place_of(part.offer)[1],
        kg_co2e_per_kwh=None if carbon is None else carbon.typical,
        offer=None if price is None else price.offer,
        usd_per_node_hour=None if price is None else price.usd_per_node_hour,
        rent_basis=owned_as if price is None else price.basis,
        peak_kw_per_node=None if peak is None else peak.typical / WATTS_PER_KW,
    )
