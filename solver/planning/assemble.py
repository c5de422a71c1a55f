"""Screened candidates and offers → the fleet problem, and back from its plan to named entries."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened, exchange_names, one_process_is_enough, sustained_power_w
from solver.fleet import (
    ANY_SITE,
    WHOLE,
    Demand,
    DeploymentTable,
    FleetProblem,
    Limits,
    OfferSlot,
    Plan,
    Split,
)
from solver.fleet.deployments import AGGREGATED, PREFILL, ROLES
from solver.fleet.problem import MOST_NODES_PLACED
from solver.hardware import Offer, PlaceKind
from solver.planning.needed_offers import needed_offers
from solver.planning.published_in_plan import UNITS, units_in
from solver.planning.types import PlanningInput
from solver.traffic_classes import ALL_CLASSES, ClassSet
from solver.workload import ANYWHERE, Workload

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Assembly:
    """A fleet problem with the way back: deployment key → (workload, row of its space, node type).

    classes_of: index into ``class_sets`` of the traffic classes that a deployment takes. Roles are those of the table. Rows of
    ``PlanningInput.published`` have ``UNITS`` for their workload here: they are none of its candidates. offers: those that were
    assembled, with the ones that the problem leaves out because no plan needs them while nobody runs out of machines.
    """

    problem: FleetProblem
    workload_of: Integers
    row_of: Integers
    screened: tuple[Screened, ...]
    classes_of: Integers
    offers: tuple[Offer, ...]
    class_sets: tuple[ClassSet, ...] = (ALL_CLASSES,)

    def rows_in_role(self, workload: int, role: int = AGGREGATED) -> NDArray[np.bool_]:
        """Deployments of a workload that take this part in serving it."""
        mine: NDArray[np.bool_] = (self.workload_of == workload) & (self.problem.deployments.roles == role)
        return mine

    def with_capacity(self, capacity_requests_per_s: Floats) -> "Assembly":
        """The same with other capacities, by deployment and class."""
        table = replace(self.problem.deployments, capacity_requests_per_s=capacity_requests_per_s)
        return replace(self, problem=replace(self.problem, deployments=table))


def offer_slots(planning: PlanningInput) -> tuple[OfferSlot, ...]:
    """Offers as the optimiser takes them.

    Offers dearer than one without a limit on the same machine are left out: no plan needs them. Where power matters,
    nodes whose host power nobody states are left out; elsewhere they count for their devices only. So are, where
    carbon matters, offers on grids nobody names.
    """
    offers = planning.offers
    if planning.power_matters:
        offers = tuple(offer for offer in offers if not math.isnan(offer.node.host_power_w))
    if planning.carbon_matters:
        offers = tuple(offer for offer in offers if not math.isnan(offer.kg_co2e_per_kwh))
    return planning.offer_memo.slots(needed_offers(replace(planning, offers=offers)), slot_of)


def slot_of(offer: Offer) -> OfferSlot:
    """An offer as the optimiser takes it."""
    return OfferSlot(
        id=offer.id,
        node_type_id=offer.node.id,
        device_id=offer.node.device.id,
        devices=offer.node.devices,
        provider=offer.provider,
        region=offer.region,
        commitment=offer.commitment,
        usd_per_hour=offer.usd_per_hour,
        max_nodes=offer.max_nodes,
        host_power_w=known_figure(offer.node.host_power_w),
        interruptible=offer.commitment == "spot",
        kg_co2e_per_kwh=known_figure(offer.kg_co2e_per_kwh),
    )


def known_figure(figure: float) -> float:
    return 0.0 if math.isnan(figure) else figure


def assemble(
    planning: PlanningInput, screened: Sequence[Screened], slots: tuple[OfferSlot, ...] | None = None
) -> Assembly:
    """Every candidate on every node type somebody offers, in every role its workload admits, as one table.

    Roles are those of the planning's workloads; replicas that do both come first. slots: the planning's offers, if made already.
    """
    slots = offer_slots(planning) if slots is None else _without_units(planning, slots)
    node_ids = tuple(sorted({slot.node_type_id for slot in slots}))
    sites: list[frozenset[str]] = []
    splits: dict[Split, int] = {}
    exchanges: dict[str, int] = {}
    first_site = [_sites_before(one, sites) for one in screened]
    parts: list[_Part] = []
    for role in range(len(ROLES)):
        for w, (asked, one) in enumerate(zip(planning.workloads, screened, strict=True)):
            part = _candidates(planning, one, w, role, node_ids) if _admits(asked, one, role) else None
            if part is not None:
                parts.append(part)
    width = max((one.class_capacities(np.zeros(0, dtype=np.int64)).shape[1] for one in screened), default=1)

    def column(of: Callable[[_Part, Screened], NDArray[Any]]) -> Integers:
        found = [of(part, screened[part.workload]) for part in parts]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)

    def figures(of: Callable[[_Part, Screened], Floats]) -> list[Floats]:
        return [of(part, screened[part.workload]) for part in parts]

    rows, workloads = column(lambda part, _: part.rows), column(lambda part, _: np.full(len(part.rows), part.workload))
    roles = column(lambda part, _: np.full(len(part.rows), part.role))
    site = column(lambda part, one: _sites_of(one, part.rows, first_site[part.workload]))
    split = column(lambda part, one: _splits_of(one, part.rows, splits))
    travels = bool((roles != AGGREGATED).any())
    exchange = column(lambda part, one: _exchanges_of(one, part, exchanges))
    table = DeploymentTable(
        node_type_ids=node_ids,
        workload=workloads,
        node_type=column(lambda part, _: part.node_types),
        devices_per_replica=column(lambda part, one: one.space.devices_per_replica[part.rows]),
        nodes_per_replica=column(lambda part, one: one.space.nodes_per_replica[part.rows]),
        capacity_requests_per_s=stacked([np.zeros((0, width)), *figures(screened_capacity)]),
        power_w_per_replica=np.concatenate([np.zeros(0), *figures(_power_w)]),
        key=np.arange(len(rows), dtype=np.int64),
        site=site if sites else None,
        sites=tuple(sites),
        split=split if splits else None,
        splits=tuple(splits),
        role=roles if travels else None,
        exchange=exchange if travels else None,
        copies=column(lambda part, one: one.space.data_parallel[part.rows]),
    )
    demands = tuple(_demand(one.workload, slots, planning.limits.most_places) for one in screened)
    problem = FleetProblem(slots, table, demands, _limits(planning), planning.objective)
    if planning.published:
        problem = units_in(problem, planning.published, screened, planning.default_max_nodes)
        workloads = np.append(workloads, [UNITS] * len(planning.published))
        rows = np.append(rows, [0] * len(planning.published))
    classes = np.zeros(len(rows), dtype=np.int64)
    return Assembly(problem, workloads, rows, tuple(screened), classes, planning.offers)


def _without_units(planning: PlanningInput, slots: tuple[OfferSlot, ...]) -> tuple[OfferSlot, ...]:
    units = {offer.id for offer in planning.published}
    return tuple(slot for slot in slots if slot.id not in units)


@dataclass(frozen=True, slots=True)
class _Part:
    """Candidates of one workload in one role, once for each node type that is offered. node_types: numbers of those."""

    workload: int
    role: int
    rows: Integers
    node_types: Integers


def _admits(asked: Workload, one: Screened, role: int) -> bool:
    if role == AGGREGATED:
        return "aggregated" in asked.roles
    return "disaggregated" in asked.roles and one.roles is not None


def _candidates(planning: PlanningInput, one: Screened, workload: int, role: int, node_ids: tuple[str, ...]) -> _Part:
    """Rows that serve something in this role, on machines that are offered; without what needs no more processes to answer, unless as much
    is asked as can be served."""
    index = {node_id: i for i, node_id in enumerate(node_ids)}
    per_platform = [
        np.array([index[n] for n in platform.node_ids if n in index], dtype=np.int64)
        for platform in one.space.platforms
    ]
    counts = np.array([len(p) for p in per_platform], dtype=np.int64)
    serves = one.serves if role == AGGREGATED else _of_role(one, role) > 0.0
    if planning.objective != "throughput":
        serves = serves & ~one_process_is_enough(one, one.workload.requests_per_s)
    able = np.flatnonzero(serves)
    platform = one.space.platform_index[able]
    able, platform = able[counts[platform] > 0], platform[counts[platform] > 0]
    nodes = [np.zeros(0, dtype=np.int64), *(per_platform[p] for p in platform.tolist())]
    return _Part(workload, role, np.repeat(able, counts[platform]), np.concatenate(nodes))


def _of_role(one: Screened, role: int) -> Floats:
    """Requests per second by row that screening leaves a replica that prefills or decodes at most."""
    assert one.roles is not None
    return one.roles.prefill if role == PREFILL else one.roles.decode


def screened_capacity(part: "_Part", one: Screened) -> Floats:
    """(rows, classes): what screening leaves a replica at most."""
    if part.role == AGGREGATED:
        return one.class_capacities(part.rows)
    return _of_role(one, part.role)[part.rows][:, None]


def _power_w(part: _Part, one: Screened) -> Floats:
    """Of one replica at full use; one that prefills or decodes only is counted at the most its devices sustain."""
    return (one.power_w_per_replica if part.role == AGGREGATED else sustained_power_w(one.space))[part.rows]


def _exchanges_of(one: Screened, part: _Part, exchanges: dict[str, int]) -> Integers:
    """What the other side of each candidate must share, numbered in ``exchanges``."""
    if part.role == AGGREGATED:
        return np.zeros(len(part.rows), dtype=np.int64)
    names = exchange_names(one)
    return np.array([exchanges.setdefault(names[row], len(exchanges)) for row in part.rows.tolist()], dtype=np.int64)


def stacked(parts: Sequence[Floats]) -> Floats:
    """(rows, classes) tables below each other, as wide as the widest: a workload has no demand of further classes."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


def _sites_before(one: Screened, sites: list[frozenset[str]]) -> int:
    """The number of a workload's first site: the regions nearest to its users. All of its sites are appended."""
    first = len(sites)
    by_region = one.workload.network_s_by_region or {}
    sites += [
        frozenset(region for region, away in by_region.items() if away == distance)
        for distance in one.workload.distances_s
    ]
    return first


def _sites_of(one: Screened, rows: Integers, first: int) -> Integers:
    """The site of each candidate: the regions at its distance."""
    if not one.workload.network_s_by_region:
        return np.full(len(rows), ANY_SITE, dtype=np.int64)
    return first + rows // (len(one.space.rows) // one.copies)


def _splits_of(one: Screened, rows: Integers, splits: dict[Split, int]) -> Integers:
    """How the device of each candidate is split. New ways are numbered in ``splits``."""
    of_platform = np.full(len(one.space.platforms), WHOLE, dtype=np.int64)
    for p, platform in enumerate(one.space.platforms):
        if partition := platform.device.partition:
            of_platform[p] = splits.setdefault(Split(partition.profile, partition.instances), len(splits))
    found: Integers = of_platform[one.space.platform_index[rows]]
    return found


def _demand(
    workload: Workload, slots: Sequence[OfferSlot], most_places: tuple[tuple[PlaceKind, int], ...] = ()
) -> Demand:
    places, allowed = workload.places, None
    if places != ANYWHERE:
        allowed = frozenset(slot.id for slot in slots if places.admit(slot.provider, slot.region))
    rates = tuple(one.requests_per_s for one in workload.classes)
    return Demand(rates, workload.utilisation_limit_fraction, workload.min_replicas, allowed, most_places=most_places)


def _limits(planning: PlanningInput) -> Limits:
    asked = planning.limits
    return Limits(
        budget_usd_per_hour=asked.max_usd_per_hour,
        power_w=asked.max_power_w,
        carbon_kg_per_hour=asked.max_carbon_kg_per_hour,
        spare_nodes=max(asked.spare_nodes, asked.fault_tolerance.nodes),
        max_spot_fraction=asked.max_spot_fraction,
        quotas=asked.quotas,
        fault_tolerance=asked.fault_tolerance,
    )


def with_most_copies(assembly: Assembly, most: Sequence[int | None], spreads: Sequence[bool]) -> Assembly:
    """The problem in which workloads have at most so many copies of their models (None: no limit), and those whose turns all replicas
    share (``spreads``) no more than they need: each further one has its share of them, and finds less."""
    demands = tuple(
        replace(demand, most_copies=limit, fills_nodes=not shared)
        for demand, limit, shared in zip(assembly.problem.demands, most, spreads, strict=True)
    )
    return replace(assembly, problem=replace(assembly.problem, demands=demands))


def exceeds_default(plan: Plan, assembly: Assembly, default_max_nodes: int | None) -> bool:
    """Does a plan take more nodes of an offer without a limit than the default allows? Not where the default itself is lifted."""
    if default_max_nodes is None:
        return False
    unlimited = {offer.id for offer in assembly.problem.offers if offer.max_nodes is None and not offer.is_default_most}
    return any(nodes > default_max_nodes for offer, nodes in plan.nodes_by_offer().items() if offer in unlimited)


def most_nodes(planning: PlanningInput, assembly: Assembly) -> int:
    """Nodes on offer altogether."""
    default = planning.default_max_nodes or MOST_NODES_PLACED
    return sum(default if offer.max_nodes is None else offer.max_nodes for offer in assembly.problem.offers)


def fewest_nodes(assembly: Assembly) -> float:
    """Nodes that any plan needs at least: every workload on the node type that serves most of it per node."""
    table = assembly.problem.deployments
    devices_of_type = {offer.node_type_id: offer.devices for offer in assembly.problem.offers}
    devices = np.array([devices_of_type[t] for t in table.node_type_ids])[table.node_type]
    replicas = np.where(
        table.nodes_per_replica > 1,
        1.0 / table.nodes_per_replica,
        devices // table.devices_per_replica * table.instances,
    )
    per_node = table.capacity_requests_per_s * replicas[:, None]
    least = 0.0
    for w, demand in enumerate(assembly.problem.demands):
        best = per_node[table.workload == w].max(axis=0, initial=0.0) * demand.utilisation_limit_fraction
        least += sum(rate / best[k] for k, rate in enumerate(demand.requests_per_s) if best[k] > 0.0)
    return float(least)


def with_default_limits(planning: PlanningInput, assembly: Assembly) -> Assembly:
    """The same problem with every offer limited, and dearer offers back beside those that are.

    Solved only where it matters: a best plan without these limits that stays within them is the best plan with them,
    and unlimited offers make a far smaller programme. The offers are the assembly's own, which may be more than the planning's.
    """
    if planning.default_max_nodes is None:
        return assembly
    limited = tuple(
        replace(offer, max_nodes=planning.default_max_nodes) if offer.max_nodes is None else offer
        for offer in assembly.offers
    )
    devices = {slot.device_id for slot in assembly.problem.offers}
    slots = offer_slots(replace(planning, offers=limited))
    units = {offer.id for offer in planning.published}
    unlimited = {offer.id for offer in assembly.offers if offer.max_nodes is None}
    offers = tuple(replace(slot, is_default_most=slot.id in unlimited) for slot in slots if slot.device_id in devices)
    offers += tuple(slot for slot in assembly.problem.offers if slot.id in units)
    demands = tuple(
        _admitted_among(demand, one.workload, assembly.problem.offers, offers)
        for demand, one in zip(assembly.problem.demands, assembly.screened, strict=True)
    )
    return replace(assembly, problem=replace(assembly.problem, offers=offers, demands=demands))


def _admitted_among(
    demand: Demand, workload: Workload, before: tuple[OfferSlot, ...], now: tuple[OfferSlot, ...]
) -> Demand:
    """The demand among other offers, admitted to those that its workload's places admit; a question's own choice stays."""
    if demand.allowed_offer_ids != _demand(workload, before).allowed_offer_ids:
        return demand
    return replace(demand, allowed_offer_ids=_demand(workload, now).allowed_offer_ids)


def within_default_where_needed(planning: PlanningInput, assembly: Assembly) -> Assembly:
    """With every offer limited from the start where the demand takes more nodes than the default allows of any one. Without it a vast
    demand would be planned on as many nodes as serve it, placed one by one, before the limit is looked at."""
    if planning.default_max_nodes is None or fewest_nodes(assembly) <= planning.default_max_nodes:
        return assembly
    return with_default_limits(planning, assembly)
