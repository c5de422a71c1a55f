"""Alternatives of a request → alternatives of the cost model, with the origin of every figure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from service.problems import FieldError, InvalidFieldsError
from service.tco.defaults import CostDefaults, Default, MachineFacts, figures
from service.tco.prices import ON_DEMAND, TERM_MONTHS, PriceBook, Priced
from service.tco.stored_plan import StoredPlan
from service.wire.tco import AlternativeIn, PurchaseIn
from service.wire.tco_answers import PartOut
from solver.errors import FigureMissingError
from solver.tco.alternatives import Alternative, ApiAccess, MixedFleet, PurchasedFleet, RentedFleet
from solver.tco.figures import Figure, exactly

PURCHASE = "purchase"
PRICE = "purchase_usd_per_node"
LIFE = "depreciation_months"
API_NOTE = "whether the API meets the latency targets cannot be checked here"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of one kind that an alternative consists of, from a plan or stated. pointer: where an error belongs."""

    machine: MachineFacts
    count: int
    offer: str | None
    usd_per_node_hour: Decimal | None
    stated: bool
    pointer: str


@dataclass(slots=True)
class Resolved:
    """One alternative ready to be computed, and what to tell about it."""

    asked: AlternativeIn
    alternative: Alternative
    parts: list[PartOut] = field(default_factory=list)
    defaults: dict[str, Default] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    acquisition: str | None = None


def nodes_of(
    asked: AlternativeIn, position: int, plans: Mapping[str, StoredPlan], machines: Mapping[str, MachineFacts]
) -> list[Nodes]:
    """The nodes an alternative consists of; lines of a plan that rent the same offer are one."""
    if asked.fleet is not None:
        return [
            Nodes(
                machines[part.node], part.count, part.offer, part.usd_per_node_hour, part.usd_per_node_hour is not None,
                f"/alternatives/{position}/fleet/{number}",
            )
            for number, part in enumerate(asked.fleet)
        ]  # fmt: skip
    if asked.recommendation is None:
        return []
    counted: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for line in plans[asked.recommendation].lines:
        nodes, usd = counted.get((line.node, line.offer), (0, Decimal(0)))
        counted[line.node, line.offer] = nodes + line.nodes, usd + line.usd_per_hour
    pointer = f"/alternatives/{position}/recommendation"
    return [
        Nodes(machines[node], count, offer, usd / count, False, pointer)
        for (node, offer), (count, usd) in counted.items()
        if count
    ]


def resolve(
    asked: AlternativeIn, position: int, nodes: list[Nodes], prices: PriceBook, owned: Mapping[str, Figure]
) -> Resolved:
    """``owned``: figures of ownership that the request states for all alternatives.

    Raises InvalidFieldsError pointing at what is missing or contradictory.
    """
    if asked.api is not None:
        return _api(asked)
    resolved = Resolved(asked, ApiAccess(asked.name, {}), acquisition=asked.acquisition)
    built: list[RentedFleet | PurchasedFleet] = []
    for part in nodes:
        if asked.acquisition == PURCHASE:
            built.append(_bought(asked, part, prices.defaults, resolved, owned))
        else:
            built.append(_rented(asked, position, part, prices, resolved))
    resolved.alternative = built[0] if len(built) == 1 else MixedFleet(asked.name, tuple(built))
    return resolved


def _api(asked: AlternativeIn) -> Resolved:
    prices = asked.api
    assert prices is not None
    cached = prices.usd_per_million_cached_tokens
    notes = [API_NOTE]
    if cached is None:
        cached = prices.usd_per_million_input_tokens
        notes.append("no price of cached input is stated: it costs as much as other input")
    table = {
        "api_usd_per_million_input_tokens": exactly(float(prices.usd_per_million_input_tokens)),
        "api_usd_per_million_cached_tokens": exactly(float(cached)),
        "api_usd_per_million_output_tokens": exactly(float(prices.usd_per_million_output_tokens)),
    }
    return Resolved(asked, ApiAccess(asked.name, table), notes=notes)


def _rented(asked: AlternativeIn, position: int, part: Nodes, prices: PriceBook, resolved: Resolved) -> RentedFleet:
    acquisition = asked.acquisition or (part.offer or "").rsplit(":", 1)[-1]
    price = _rent(asked, part, prices, acquisition)
    defaults = prices.defaults.power(part.machine)
    if acquisition == "spot":
        defaults |= prices.defaults.spot()
    term = TERM_MONTHS.get(acquisition)
    upfront = 0.0
    if asked.payment != "no_upfront":
        if term is None:
            raise InvalidFieldsError(
                [FieldError(f"{acquisition} is not a commitment", pointer=f"/alternatives/{position}/payment")]
            )
        upfront = 1.0
        if asked.payment == "partial_upfront":
            partial = prices.defaults.partial_upfront()
            upfront = 1.0 if partial is None else partial.figure.typical
            if partial is not None:
                resolved.defaults["upfront_fraction"] = partial
    if asked.follows_demand and term is not None:
        pointer = f"/alternatives/{position}/follows_demand"
        raise InvalidFieldsError([FieldError("a commitment is paid for day and night", pointer=pointer)])
    if price.default is not None:
        resolved.defaults["rent_ratio_to_on_demand"] = price.default
        resolved.notes.append(f"no price of {part.offer} under {acquisition} is stored; a sourced ratio stands in")
    resolved.defaults |= defaults
    resolved.acquisition = resolved.acquisition or acquisition
    resolved.parts.append(_part(part, price, defaults))
    return RentedFleet(
        name=asked.name,
        nodes=part.count,
        devices_per_node=part.machine.devices,
        figures={**figures(defaults), "rent_usd_per_node_hour": price.figure},
        term_months=term,
        upfront_fraction=upfront,
        interruptible=acquisition == "spot",
        follows_demand=asked.follows_demand,
    )


def _rent(asked: AlternativeIn, part: Nodes, prices: PriceBook, acquisition: str) -> Priced:
    if part.stated and part.usd_per_node_hour is not None:
        return Priced(exactly(float(part.usd_per_node_hour)), None, "stated")
    if part.offer is None:
        raise InvalidFieldsError(
            [FieldError("a rented fleet needs an offer or usd_per_node_hour", pointer=f"{part.pointer}/offer")]
        )
    if asked.acquisition is None and part.usd_per_node_hour is not None:
        return Priced(exactly(float(part.usd_per_node_hour)), part.offer, "plan")
    found = prices.price(part.offer, asked.acquisition or ON_DEMAND, part.usd_per_node_hour)
    if found is None:
        detail = (
            f"{asked.name!r}: no price of {part.offer} under {acquisition}, and no ratio to derive one (figure_missing)"
        )
        raise InvalidFieldsError([FieldError(detail, pointer=part.pointer)])
    return found


def _bought(
    asked: AlternativeIn, part: Nodes, defaults: CostDefaults, resolved: Resolved, owned: Mapping[str, Figure]
) -> PurchasedFleet:
    try:
        terms = purchase_terms(asked.purchase, part.machine, part.count, defaults, owned)
    except FigureMissingError as missing:
        if missing.figure == LIFE:
            detail = "figure_missing: no life of machines in the catalog"
            raise InvalidFieldsError([FieldError(detail, pointer=f"{part.pointer}/depreciation_months")]) from missing
        detail = (
            f"{asked.name!r}: no price of {part.machine.node} in the catalog (figure_missing); state "
            "purchase.usd_per_node"
        )
        raise InvalidFieldsError([FieldError(detail, pointer=part.pointer)]) from missing
    resolved.notes += terms.notes
    resolved.defaults |= terms.defaults
    resolved.parts.append(_part(part, None, terms.defaults))
    return PurchasedFleet(
        name=asked.name,
        nodes=part.count,
        devices_per_node=part.machine.devices,
        figures=terms.figures,
        life_months=terms.life_months,
        finance_term_months=terms.finance_months,
        depreciation=asked.purchase.depreciation,
    )


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

    Raises FigureMissingError for a machine without a price, or without a life.
    """
    stated = {**owned, **_stated(purchase)}
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
    if PRICE not in table:
        raise FigureMissingError(machine.node, PRICE)
    notes = []
    for optional in ("network_usd_per_node", "storage_usd_per_node"):
        if optional not in table:
            table[optional] = exactly(0.0)
            notes.append(f"no figure for {optional} of {machine.node}: none is added")
    term = (purchase.finance_months or months) if financed else None
    return PurchaseTerms(table, months, term, found, tuple(notes))


def _stated(purchase: PurchaseIn) -> dict[str, Figure]:
    """What the request states itself; it has no range."""
    rate = purchase.finance_rate_percent
    stated = {
        "purchase_usd_per_node": purchase.usd_per_node,
        "network_usd_per_node": purchase.network_usd_per_node,
        "storage_usd_per_node": purchase.storage_usd_per_node,
        "software_usd_per_device_year": purchase.software_usd_per_device_year,
        "residual_fraction": purchase.residual_fraction,
        "finance_fraction_per_year": None if rate is None else rate / 100.0,
    }
    return {name: exactly(float(value)) for name, value in stated.items() if value is not None}


def _part(part: Nodes, price: Priced | None, defaults: Mapping[str, Default]) -> PartOut:
    peak = defaults.get("peak_w_per_node")
    return PartOut(
        node=part.machine.node,
        device=part.machine.device,
        nodes=part.count,
        devices=part.count * part.machine.devices,
        offer=None if price is None else price.offer,
        usd_per_node_hour=None if price is None else price.usd_per_node_hour,
        rent_basis="purchase" if price is None else price.basis,
        peak_kw_per_node=None if peak is None else peak.figure.typical / 1000.0,
    )
