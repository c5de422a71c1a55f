"""Sites where machines may be bought → purchases for the planner: what the comparison of costs knows, month by month."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlmodel import Session

from catalog.read_costs import CostCatalog
from catalog.rows import EnergyRow
from service.fleets.queries import machines_known
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.money import usd
from service.tco.defaults import (
    CPU_SERVER,
    DESKTOP_KINDS,
    MARKET_CHANGES,
    CostDefaults,
    Default,
    MachineFacts,
    defaults_for,
    figures,
)
from service.tco.ownership import PurchaseTerms, purchase_terms
from service.tco.placement import limits_of, needs_of, room_of
from service.tco.prepare import DEFAULT_REGION, machine_facts
from service.tco.present import present_defaults
from service.tco.queries import energy_by_region, energy_regions
from service.tco.refusals import POINTERS
from service.wire.fleet_answers import CommitmentLeftOutOut
from service.wire.fleets import FleetIn
from service.wire.owning import DiscountOut, OwnedMachineOut, OwnMachineIn, OwnSiteIn, OwnUsedOut
from service.wire.tco import SiteIn
from solver.errors import FigureMissingError
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure, exactly
from solver.tco.owned_node import OwnedNode, owned_node
from solver.tco.site import MachineNeeds, Room, machine_checks, nodes_per_rack, room_it_limit_w
from solver.units import HOURS_PER_MONTH

if TYPE_CHECKING:  # what plans loads libraries that listing the catalog does without
    from solver.horizon.assemble import Purchase
    from solver.horizon.problem import SharedLimit

PERCENT = 100.0
FOR_NO_HALL = DESKTOP_KINDS | {CPU_SERVER}
"""Kinds of machines that are bought where the request names them or their devices only."""
PURCHASE = "purchase"
DISCOUNT = "discount_fraction_per_year"
UNDISCOUNTED = DiscountOut(percent_per_year=0.0, source="no rate is stated")


@dataclass(frozen=True, slots=True)
class Buying:
    """What a request says of machines that may be bought: sites, devices that it is limited to, the months after which what still
    stands is sold, and a rate of its own. Fleets over time and training plans have it alike.
    """

    own: Sequence[OwnSiteIn]
    devices: Sequence[str] | None
    months: int
    discount_percent_per_year: float | None


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """A machine that may be bought at a site. nodes: what one costs, by month of purchase."""

    id: str
    facts: MachineFacts
    region: str
    max_nodes: int | None
    nodes: tuple[OwnedNode, ...]


@dataclass(slots=True)
class Owned:
    """Everything about owning that a plan needs, and what to tell of it."""

    machines: list[OwnMachine] = field(default_factory=list)
    rooms: "list[SharedLimit]" = field(default_factory=list)
    used: list[OwnUsedOut] = field(default_factory=list)
    left_out: list[CommitmentLeftOutOut] = field(default_factory=list)
    discount: DiscountOut = field(default_factory=lambda: UNDISCOUNTED)

    def node(self, machine: str, start_month: int) -> OwnedNode | None:
        """What one node bought in a month costs; None for what is not bought."""
        found = (node for one in self.machines if one.id == machine for node in one.nodes)
        return next((node for node in found if node.start_month == start_month), None)

    def purchases(self) -> "tuple[Purchase, ...]":
        from solver.horizon.assemble import Purchase

        return tuple(
            Purchase(
                one.id, one.facts.node, one.facts.devices, one.region, bought.start_month, bought.term_months,
                bought.payments, one.max_nodes,
            )
            for one in self.machines
            for bought in one.nodes
        )  # fmt: skip


def buying(asked: FleetIn) -> Buying:
    return Buying(asked.own, asked.limits.devices, asked.horizon.months, asked.discount_rate_percent_per_year)


def read_owned(session: Session, asked: Buying, snapshot: CatalogSnapshot, costs: CostCatalog) -> Owned:
    """Raises InvalidFieldsError for names nobody knows, contradictions, and machines named that lack a figure."""
    found = Owned()
    facts = {node.id: machine_facts(node, device) for node, device in machines_known(session)} if asked.own else {}
    errors: list[FieldError] = []
    rates: dict[str, Default] = {}
    for position in range(len(asked.own)):
        try:
            _read_site(session, asked, position, snapshot, costs, facts, found, rates)
        except InvalidFieldsError as wrong:
            errors += wrong.field_errors
    found.discount = _discount(asked, rates, errors)
    if errors:
        raise InvalidFieldsError(errors)
    return found


def site_errors(asked: FleetIn) -> list[FieldError]:
    """Sites against the horizon, against limits, and against round trips that workloads state."""
    errors = []
    months, regions = asked.horizon.months, asked.limits.regions
    for position, site in enumerate(asked.own):
        pointer = f"/own/{position}"
        if regions is not None and site.region not in regions:
            detail = f"limits.regions leaves out {site.region!r}, where machines may be bought"
            errors.append(FieldError(detail, pointer=f"{pointer}/region"))
        errors += [
            FieldError(
                f"month {month} is not one of the {months} of the horizon, which count from 0",
                pointer=f"{pointer}/purchase_months/{n}",
            )
            for n, month in enumerate(site.purchase_months or ())
            if month >= months
        ]
        for w, workload in enumerate(asked.workloads):
            away, kept = workload.network_ms_by_region, workload.regions
            may = (kept.only is None or site.region in kept.only) and site.region not in kept.never
            if away is not None and may and site.region not in away:
                detail = f"no figure for {site.region}, where machines may be bought; state it, or use regions.never"
                errors.append(FieldError(detail, pointer=f"/workloads/{w}/network_ms_by_region"))
    return errors


def _read_site(
    session: Session,
    asked: Buying,
    position: int,
    snapshot: CatalogSnapshot,
    costs: CostCatalog,
    facts: Mapping[str, MachineFacts],
    found: Owned,
    rates: dict[str, Default],
) -> None:
    site, pointer = asked.own[position], f"/own/{position}"
    try:
        defaults = defaults_for(costs, site.operator)
    except CostInputError as error:
        raise InvalidFieldsError([FieldError(str(error), pointer=f"{pointer}/operator")]) from error
    place = _place(session, site, defaults, pointer)
    stated = _stated(site)
    used = {name: default for name, default in place.items() if name not in stated}
    if DISCOUNT in place:
        rates[site.operator] = place[DISCOUNT]
    shared = {**figures(used), **stated}
    wanted = _wanted(asked, position, snapshot, facts)
    machines: list[OwnMachine] = []
    shown: list[OwnedMachineOut] = []
    missing: dict[str, list[str]] = {}
    errors: list[FieldError] = []
    for machine, one, where in wanted:
        try:
            owned, terms = _machine(asked, site, machine, one, defaults, shared)
            _check_machine(site, machine, defaults)
        except (FigureMissingError, CostInputError, _DoesNotFitError) as wrong:
            if isinstance(wrong, CostInputError) and wrong.field in stated:  # of the site, and so of every machine
                raise InvalidFieldsError([FieldError(str(wrong), pointer=pointer + POINTERS[wrong.field])]) from wrong
            reason = f"figure_missing: {wrong.figure}" if isinstance(wrong, FigureMissingError) else str(wrong)
            if where is None:
                missing.setdefault(reason, []).append(machine.node)
            else:
                errors.append(FieldError(f"{machine.node}: {reason}", pointer=where))
            continue
        machines.append(owned)
        shown.append(_shown(owned, terms, defaults))
    if errors:
        raise InvalidFieldsError(errors)
    found.machines += machines
    found.rooms += _room_limits(site, shared, machines, defaults)
    found.left_out += [
        CommitmentLeftOutOut(commitment=PURCHASE, why=f"{', '.join(sorted(names))} in {site.region}: {reason}")
        for reason, names in sorted(missing.items())
    ]
    found.used.append(
        OwnUsedOut(
            region=site.region,
            operator=site.operator,
            utilisation_fraction=site.utilisation_fraction,
            defaults=present_defaults(None, {name: d for name, d in used.items() if name != DISCOUNT}),
            machines=shown,
        )
    )


def _place(session: Session, site: OwnSiteIn, defaults: CostDefaults, pointer: str) -> dict[str, Default]:
    """Figures of the operator and of the place whose tariff is paid; of DEFAULT_REGION where neither is stated."""
    region = site.electricity.region
    if region is None and site.electricity.usd_per_kwh is None:
        region = DEFAULT_REGION
    if region is None:
        return defaults.scenario(None, None)
    row = energy_by_region(session, region)
    if row is None:
        detail = unknown_name("electricity region", region, energy_regions(session))
        raise InvalidFieldsError([FieldError(detail, pointer=f"{pointer}/electricity/region")])
    return defaults.scenario(region, EnergyRow.model_validate(row.row))


def _stated(site: OwnSiteIn) -> dict[str, Figure]:
    electricity = site.electricity
    stated = {
        "utilisation_fraction": site.utilisation_fraction,
        "growth_fraction_per_month": 0.0,  # of demand, which the horizon states itself
        **dict.fromkeys(MARKET_CHANGES, 0.0),  # what is rented keeps its price over the horizon, so what is bought does
        "inflation_fraction_per_year": _fraction(site.inflation_percent_per_year),
        "tax_fraction": _fraction(site.tax_percent),
        "electricity_usd_per_kwh": electricity.usd_per_kwh,
        "demand_charge_usd_per_kw_month": electricity.demand_charge_usd_per_kw_month,
        "grid_kg_co2e_per_kwh": electricity.grid_kg_co2e_per_kwh,
        "power_usage_effectiveness": site.power_usage_effectiveness,
    }
    return {name: exactly(float(value)) for name, value in stated.items() if value is not None}


def _wanted(
    asked: Buying, position: int, snapshot: CatalogSnapshot, facts: Mapping[str, MachineFacts]
) -> list[tuple[MachineFacts, OwnMachineIn, str | None]]:
    """Machines with their terms, and where the request names them."""
    site, pointer, devices = asked.own[position], f"/own/{position}", asked.devices
    if site.machines is None:
        # A provider's instance type bears its name, as in aws-p5.48xlarge; nobody sells those.
        instances = {o.node.id for o in snapshot.offers if o.node.id.startswith(f"{o.provider}-")}
        return [
            (machine, OwnMachineIn(node=node), None)
            for node, machine in sorted(facts.items())
            if node in snapshot.nodes
            and node not in instances
            and (machine.kind not in FOR_NO_HALL if devices is None else machine.device in devices)
        ]
    found: list[tuple[MachineFacts, OwnMachineIn, str | None]] = []
    errors = []
    for number, one in enumerate(site.machines):
        where = f"{pointer}/machines/{number}/node"
        machine = facts.get(one.node)
        if machine is None:
            errors.append(FieldError(unknown_name("node", one.node, facts), pointer=where))
        elif one.node not in snapshot.nodes:
            lacks = snapshot.refused.get(machine.device, "a figure of its device")
            errors.append(FieldError(f"{one.node}: figure_missing: {lacks}", pointer=where))
        elif devices is not None and machine.device not in devices:
            detail = f"{one.node} holds {machine.device}, which limits.devices leaves out"
            errors.append(FieldError(detail, pointer=where))
        else:
            found.append((machine, one, where))
    if errors:
        raise InvalidFieldsError(errors)
    return found


def _machine(
    asked: Buying,
    site: OwnSiteIn,
    machine: MachineFacts,
    one: OwnMachineIn,
    defaults: CostDefaults,
    shared: Mapping[str, Figure],
) -> tuple[OwnMachine, PurchaseTerms]:
    """Raises FigureMissingError, CostInputError."""
    space = site.colocation_usd_per_kw_month
    owned = {} if space is None else {"colocation_usd_per_kw_month": exactly(float(space))}
    if site.power_usage_effectiveness is not None:  # before that of a rack's liquid cooling
        owned["power_usage_effectiveness"] = exactly(site.power_usage_effectiveness)
    terms = purchase_terms(one.purchase or site.purchase, machine, site.staffed_nodes, defaults, owned)
    months = asked.months
    # What is paid does not depend on the rate; the cost model asks for one all the same.
    shared = {**shared, DISCOUNT: exactly(0.0)}
    nodes = tuple(
        owned_node(
            machine.node, shared, terms.figures, machine.devices, terms.life_months, terms.finance_months, months, start
        )
        for start in sorted(set(site.purchase_months or range(months)))
    )
    most = site.max_nodes if one.max_nodes is None else one.max_nodes
    return OwnMachine(f"own:{site.region}:{machine.node}", machine, site.region, most, nodes), terms


class _DoesNotFitError(Exception):
    """A machine breaks a limit of the site."""


def _check_machine(site: OwnSiteIn, machine: MachineFacts, defaults: CostDefaults) -> None:
    checks = machine_checks(needs_of(machine, defaults), limits_of(site.site or SiteIn(), machine, defaults))
    broken = [check.reason for check in checks if not check.holds]
    if broken:
        raise _DoesNotFitError(f"does not fit: {'; '.join(broken)}")


def _room_limits(
    site: OwnSiteIn, shared: Mapping[str, Figure], machines: Sequence[OwnMachine], defaults: CostDefaults
) -> "list[SharedLimit]":
    """Power and racks of a site's room, shared by all that stands in it; machines of several kinds may share a rack."""
    from solver.horizon.problem import SharedLimit

    if site.site is None:
        return []
    room: Room = room_of(site.site, shared)
    needs: list[tuple[str, MachineNeeds]] = [(one.id, needs_of(one.facts, defaults)) for one in machines]
    limits = []
    power_w = room_it_limit_w(room)
    if power_w is not None:
        each = tuple((name, need.node_power_w) for name, need in needs if need.node_power_w is not None)
        limits.append(SharedLimit(f"W in {site.region}", each, power_w))
    per_rack = [(name, nodes_per_rack(need, room)) for name, need in needs]
    stated = [(name, count) for name, count in per_rack if count is not None]
    if room.racks is not None and stated:
        shares = tuple((name, 1.0 / count if count else room.racks + 1.0) for name, count in stated)
        limits.append(SharedLimit(f"racks in {site.region}", shares, float(room.racks)))
    return limits


def _shown(owned: OwnMachine, terms: PurchaseTerms, defaults: CostDefaults) -> OwnedMachineOut:
    first = owned.nodes[0]
    peak = defaults.power(owned.facts).get("peak_w_per_node")
    return OwnedMachineOut(
        node=owned.facts.node,
        region=owned.region,
        life_months=terms.life_months,
        usd_per_node=usd(first.usd),
        usd_per_node_hour=usd(first.usd / (first.term_months * HOURS_PER_MONTH)),
        lines={line: usd(amount) for line, amount in first.lines.items()},
        peak_kw_per_node=None if peak is None else peak.figure.typical / 1000.0,
        defaults=present_defaults(None, terms.defaults),
        notes=list(terms.notes),
    )


def _discount(asked: Buying, rates: Mapping[str, Default], errors: list[FieldError]) -> DiscountOut:
    """The request's rate; else, where machines may be bought, the cost of capital of who buys them; else none."""
    stated = asked.discount_percent_per_year
    if stated is not None:
        return DiscountOut(percent_per_year=stated, source="the request")
    if not asked.own:
        return UNDISCOUNTED
    found = {rate.figure.typical for rate in rates.values()}
    if len(found) != 1 and not errors:
        detail = "sites of several operators have several costs of capital; state discount_rate_percent_per_year"
        errors.append(FieldError(detail, pointer="/discount_rate_percent_per_year"))
    if len(found) != 1:
        return UNDISCOUNTED
    operator, rate = next(iter(rates.items()))
    origins = "; ".join(f"{one.source} ({one.as_of}, {one.checked})" for one in rate.origins)
    return DiscountOut(
        percent_per_year=rate.figure.typical * PERCENT, source=f"cost of capital of the operator {operator}: {origins}"
    )


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else percent / PERCENT
