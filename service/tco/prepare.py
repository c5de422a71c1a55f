"""Everything a comparison is made of, read in one transaction and checked, every wrong name pointed at."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from sqlmodel import Session

from catalog.read_costs import CostCatalog, read_costs
from catalog.rows import EnergyRow
from service.catalog_release.queries import require_release
from service.devices.tables import DeviceTable
from service.nodes.queries import node_ids
from service.nodes.tables import NodeTable
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.create import PlanningContext, read_inputs
from service.recommendations.plan import PlanningInputs
from service.tco.apis import api_terms
from service.tco.circumstances import Circumstances, circumstances
from service.tco.defaults import CostDefaults, Default, MachineFacts, defaults_for
from service.tco.fairness import agreed_workloads, fleet_planning, token_demand, usable_recommendations
from service.tco.placement import check_site
from service.tco.prices import PriceBook, under
from service.tco.queries import (
    energy_by_region,
    energy_regions,
    machines_by_ids,
    offering_providers,
    priced_offers,
    recommendations_by_ids,
)
from service.tco.refusals import pointed
from service.tco.resolve import STANDING_HERE, Resolved, nodes_of, resolve, whole
from service.tco.stored_plan import PlannedNodes, losses_survived
from service.tco.trained import (
    TrainedNodes,
    TrainingDemand,
    nodes_that_train,
    notes_on_training,
    trained_plans,
    training_demand,
    with_runs,
)
from service.tco.warnings import warnings_of
from service.wire.recommendations import LimitsIn, RecommendationIn, WorkloadIn
from service.wire.tco import ComparisonIn
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure, exactly

Planned: TypeAlias = Mapping[str, Sequence[PlannedNodes | TrainedNodes]]
"""Nodes of stored plans, by plan."""
DEFAULT_REGION = "us"
"""Whose average tariff and carbon are taken when neither a place nor a tariff is stated."""


@dataclass(frozen=True)
class PreparedComparison:
    """planning: explicit fleets still to be checked against the workloads, by position."""

    price_as_of: dt.datetime
    catalog_digest: str
    cost_catalog_digest: str
    workloads: Sequence[WorkloadIn]
    resolved: list[Resolved]
    shared: Circumstances
    warnings: list[str]
    trained: TrainingDemand | None
    planning: list[tuple[int, PlanningInputs]]


@cache
def cost_catalog() -> CostCatalog:
    """Read once: the files do not change while the service runs."""
    return read_costs()


def prepare(
    session: Session, asked: ComparisonIn, price_as_of: dt.datetime, context: PlanningContext
) -> PreparedComparison:
    """Raises InvalidFieldsError."""
    costs = cost_catalog()
    _check_currency(asked, costs)
    _check_alternatives(asked)
    defaults = _operator(asked, costs)
    stored = recommendations_by_ids(session, (a.recommendation for a in asked.alternatives if a.recommendation))
    plans = usable_recommendations(asked, stored)
    training = trained_plans(session, asked)
    trained = training_demand(training)
    asked = with_runs(asked, trained)
    workloads = agreed_workloads(asked, plans) if trained is None else ()
    lines_of = {name: plan.lines for name, plan in plans.items()} | {
        name: plan.lines for name, plan in training.items()
    }
    machines = _machines(session, asked, lines_of)
    prices = PriceBook(priced_offers(session, _offers_of(asked, lines_of), price_as_of), defaults)
    _check_offers(asked, prices)
    try:
        demand = token_demand(workloads) if trained is None else trained.at_peak
        shared = circumstances(asked, demand, _place(session, asked, defaults))
    except CostInputError as error:
        raise pointed(asked, error) from error
    owned = _owned(asked)
    stated = {machine.node: machine for machine in asked.machines}
    nodes = [
        [
            whole(alternative, part, defaults, stated)
            for part in (
                nodes_of(alternative, position, plans, machines)
                if trained is None or alternative.training_plan is None
                else nodes_that_train(training[alternative.training_plan], trained, machines, position)
            )
        ]
        for position, alternative in enumerate(asked.alternatives)
    ]
    resolved = [
        resolve(
            alternative,
            position,
            nodes[position],
            prices,
            owned,
            stated,
            None
            if alternative.api is None
            else api_terms(alternative.api, demand, price_as_of.date(), f"/alternatives/{position}/api/model"),
        )
        for position, alternative in enumerate(asked.alternatives)
    ]
    for own, parts in zip(resolved, nodes, strict=True):
        if own.asked.training_plan is not None:
            own.precision = training[own.asked.training_plan].precision
            own.notes += notes_on_training(own.asked, parts)
        if own.asked.recommendation is not None:
            plan = plans[own.asked.recommendation]
            own.precision, own.survives = plan.precision, losses_survived(plan.limits)
    check_site(asked, nodes, shared.scenario.figures, defaults)
    return PreparedComparison(
        price_as_of=price_as_of,
        catalog_digest=require_release(session).digest,
        cost_catalog_digest=costs.digest,
        workloads=workloads,
        resolved=resolved,
        shared=shared,
        warnings=warnings_of(asked, resolved, shared, defaults),
        trained=trained,
        planning=_fleet_checks(session, asked, workloads, price_as_of, context),
    )


def _fleet_checks(
    session: Session,
    asked: ComparisonIn,
    workloads: Sequence[WorkloadIn],
    price_as_of: dt.datetime,
    context: PlanningContext,
) -> list[tuple[int, PlanningInputs]]:
    fleets = [position for position, a in enumerate(asked.alternatives) if a.fleet is not None]
    if not fleets:
        return []
    question = RecommendationIn(
        workloads=tuple(workloads), limits=LimitsIn(commitments=None, sourcing="any"), alternatives=0
    )
    inputs = read_inputs(session, question, price_as_of, context)
    return [(p, fleet_planning(asked.alternatives[p], workloads, inputs, p)) for p in fleets]


def _operator(asked: ComparisonIn, costs: CostCatalog) -> CostDefaults:
    try:
        return defaults_for(costs, asked.operator)
    except CostInputError as error:
        raise InvalidFieldsError([FieldError(str(error), pointer="/operator")]) from error


def _owned(asked: ComparisonIn) -> dict[str, Figure]:
    """What the request states about ownership for all alternatives."""
    stated = {
        "colocation_usd_per_kw_month": asked.colocation_usd_per_kw_month,
        "power_usage_effectiveness": asked.power_usage_effectiveness,  # before that of a rack's liquid cooling
    }
    return {name: exactly(float(value)) for name, value in stated.items() if value is not None}


def _place(session: Session, asked: ComparisonIn, defaults: CostDefaults) -> dict[str, Default]:
    """Figures of the operator, and of the place named; of DEFAULT_REGION where no tariff is stated either."""
    region = asked.electricity.region
    if region is None and asked.electricity.usd_per_kwh is None:
        region = DEFAULT_REGION
    if region is None:  # a tariff of nowhere in particular says nothing about carbon
        return defaults.scenario(None, None)
    row = energy_by_region(session, region)
    if row is None:
        detail = unknown_name("electricity region", region, energy_regions(session))
        raise InvalidFieldsError([FieldError(detail, pointer="/electricity/region")])
    return defaults.scenario(region, EnergyRow.model_validate(row.row))


def _machines(session: Session, asked: ComparisonIn, planned: Planned) -> dict[str, MachineFacts]:
    """Facts about every node named. Raises InvalidFieldsError for fleets of nodes nobody knows."""
    named = {
        (part.node, f"/alternatives/{position}/fleet/{number}/node")
        for position, alternative in enumerate(asked.alternatives)
        for number, part in enumerate(alternative.fleet or [])
    } | {(machine.node, f"/machines/{number}/node") for number, machine in enumerate(asked.machines)}
    rows = machines_by_ids(
        session, {node for node, _ in named} | {line.node for own in planned.values() for line in own}
    )
    missing = sorted((pointer, node) for node, pointer in named if node not in rows)
    if missing:
        known = node_ids(session)
        raise InvalidFieldsError(
            [FieldError(unknown_name("node", node, known), pointer=pointer) for pointer, node in missing]
        )
    sellers = tuple(f"{provider}-" for provider in offering_providers(session))
    return {
        node_id: machine_facts(node, device, instance=node_id.startswith(sellers))
        for node_id, (node, device) in rows.items()
    }


def machine_facts(node: NodeTable, device: DeviceTable, instance: bool = False) -> MachineFacts:
    """What costs depend on, of a stored node. instance: it is a cloud's, and bears its provider's name."""
    return MachineFacts(
        node=node.id,
        device=node.device_id,
        devices=node.devices,
        kind=node.kind,
        device_power_limit_w=device.row["power_limit_w"],
        host_power_w=node.row["host_power_w"],
        psu_w=node.row["psu_w"],
        pcie_lanes_per_device=node.row["pcie_lanes_per_device"],
        instance=instance,
    )


def _offers_of(asked: ComparisonIn, planned: Planned) -> set[str]:
    """Ids of every offer whose price may be needed: those named, the same on demand, and as acquired."""
    wanted = set()
    for alternative in asked.alternatives:
        named = {part.offer for part in alternative.fleet or [] if part.offer is not None}
        plan = alternative.recommendation or alternative.training_plan
        if plan is not None:
            named |= {line.offer for line in planned[plan]}
        for offer in named:
            wanted |= {offer, under(offer, "on_demand"), under(offer, alternative.acquisition or "on_demand")}
    return wanted


def _check_offers(asked: ComparisonIn, prices: PriceBook) -> None:
    errors = []
    for position, alternative in enumerate(asked.alternatives):
        for number, part in enumerate(alternative.fleet or []):
            pointer = f"/alternatives/{position}/fleet/{number}/offer"
            if part.offer is None:
                continue
            found = prices.offers.get(part.offer)
            if found is None:
                errors.append(FieldError(f"no offer {part.offer[:80]!r}", pointer=pointer))
            elif found[0].node_id != part.node:
                detail = f"{part.offer!r} is of node {found[0].node_id!r}, not {part.node!r}"
                errors.append(FieldError(detail, pointer=pointer))
    if errors:
        raise InvalidFieldsError(errors)


def _check_currency(asked: ComparisonIn, costs: CostCatalog) -> None:
    if asked.currency is not None and asked.currency.code not in costs.currencies:
        detail = unknown_name("currency", asked.currency.code, costs.currencies)
        raise InvalidFieldsError([FieldError(detail, pointer="/currency/code")])


def _check_alternatives(asked: ComparisonIn) -> None:
    """Names apart; what follows the day needs the day."""
    errors = []
    kinds = [machine.node for machine in asked.machines]
    errors += [
        FieldError(f"{node!r} is stated twice", pointer=f"/machines/{number}/node")
        for number, node in enumerate(kinds)
        if node in kinds[:number]
    ]
    first: dict[str, int] = {}
    for position, alternative in enumerate(asked.alternatives):
        if alternative.name in first:
            detail = f"two alternatives are called {alternative.name!r}"
            errors.append(FieldError(detail, pointer=f"/alternatives/{position}/name"))
        first.setdefault(alternative.name, position)
        if alternative.follows_demand and (asked.hourly_profile is None or alternative.acquisition in STANDING_HERE):
            detail = "needs hourly_profile, and machines that can be given back"
            errors.append(FieldError(detail, pointer=f"/alternatives/{position}/follows_demand"))
    if errors:
        raise InvalidFieldsError(errors)
