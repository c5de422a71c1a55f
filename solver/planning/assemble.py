"""Screened candidates and offers → the fleet problem, and back from its plan to named entries."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened
from solver.deployment.configuration import Configuration
from solver.fleet import (
    ANY_SITE,
    WHOLE,
    Demand,
    DeploymentTable,
    FleetProblem,
    Limits,
    OfferSlot,
    Plan,
    Quota,
    Split,
    Survive,
)
from solver.hardware import Offer, PlaceKind
from solver.planning.needed_offers import needed_offers
from solver.planning.types import ClassLoad, PlanEntry, PlanningInput, SplitDevices
from solver.traffic_classes import ALL_CLASSES, ClassSet, streams_of
from solver.workload import ANYWHERE, Workload

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Assembly:
    """A fleet problem with the way back: deployment key → (workload, row of its space, node type).

    classes_of: index into ``class_sets`` of the traffic classes that a deployment takes.
    """

    problem: FleetProblem
    workload_of: Integers
    row_of: Integers
    screened: tuple[Screened, ...]
    classes_of: Integers
    class_sets: tuple[ClassSet, ...] = (ALL_CLASSES,)


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
    return tuple(slot_of(offer) for offer in needed_offers(replace(planning, offers=offers)))


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
        host_power_w=_known(offer.node.host_power_w),
        interruptible=offer.commitment == "spot",
        kg_co2e_per_kwh=_known(offer.kg_co2e_per_kwh),
    )


def _known(figure: float) -> float:
    return 0.0 if math.isnan(figure) else figure


def assemble(
    planning: PlanningInput, screened: Sequence[Screened], slots: tuple[OfferSlot, ...] | None = None
) -> Assembly:
    """Every candidate on every node type somebody offers, as one table. slots: the planning's offers, if made already."""
    slots = offer_slots(planning) if slots is None else slots
    offered = {slot.node_type_id for slot in slots}
    node_ids = tuple(sorted(offered))
    index = {node_id: i for i, node_id in enumerate(node_ids)}
    workload_of: list[Integers] = []
    row_of: list[Integers] = []
    node_of: list[Integers] = []
    site_of: list[Integers] = []
    sites: list[frozenset[str]] = []
    for w, one in enumerate(screened):
        per_platform = [
            np.array([index[n] for n in platform.node_ids if n in index], dtype=np.int64)
            for platform in one.space.platforms
        ]
        counts = np.array([len(p) for p in per_platform], dtype=np.int64)
        able = np.flatnonzero(one.most_requests_per_s > 0.0)
        able = able[counts[one.space.platform_index[able]] > 0]
        repeats = counts[one.space.platform_index[able]]
        row_of.append(np.repeat(able, repeats))
        node_of.append(
            np.concatenate([per_platform[p] for p in one.space.platform_index[able].tolist()])
            if len(able)
            else np.zeros(0, dtype=np.int64)
        )
        workload_of.append(np.full(int(repeats.sum()), w, dtype=np.int64))
        site_of.append(_sites_of(one, row_of[-1], sites))
    workloads, rows, nodes = (np.concatenate(part) for part in (workload_of, row_of, node_of))

    def column(name: str) -> NDArray[np.int64]:
        parts = [np.asarray(getattr(one.space, name))[row_of[w]] for w, one in enumerate(screened)]
        return np.concatenate(parts).astype(np.int64)

    splits: dict[Split, int] = {}
    split = [_splits_of(one, row_of[w], splits) for w, one in enumerate(screened)]
    capacity = stacked([one.class_capacities(row_of[w]) for w, one in enumerate(screened)])
    power = np.concatenate([one.power_w_per_replica[row_of[w]] for w, one in enumerate(screened)])
    table = DeploymentTable(
        node_type_ids=node_ids,
        workload=workloads,
        node_type=nodes,
        devices_per_replica=column("devices_per_replica"),
        nodes_per_replica=column("nodes_per_replica"),
        capacity_requests_per_s=capacity,
        power_w_per_replica=power,
        key=np.arange(len(rows), dtype=np.int64),
        site=np.concatenate(site_of) if sites else None,
        sites=tuple(sites),
        split=np.concatenate(split) if splits else None,
        splits=tuple(splits),
    )
    demands = tuple(_demand(one.workload, slots, planning.limits.most_places) for one in screened)
    problem = FleetProblem(slots, table, demands, _limits(planning), planning.objective)
    return Assembly(problem, workloads, rows, tuple(screened), np.zeros(len(rows), dtype=np.int64))


def stacked(parts: Sequence[Floats]) -> Floats:
    """(rows, classes) tables below each other, as wide as the widest: a workload has no demand of further classes."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


def _sites_of(one: Screened, rows: Integers, sites: list[frozenset[str]]) -> Integers:
    """The site of each candidate: the regions at its distance. New ones are appended to ``sites``."""
    by_region = one.workload.network_s_by_region
    if not by_region:
        return np.full(len(rows), ANY_SITE, dtype=np.int64)
    first = len(sites)
    sites += [
        frozenset(region for region, away in by_region.items() if away == distance)
        for distance in one.workload.distances_s
    ]
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
    rates = tuple(one.requests_per_s for one in streams_of(workload))
    return Demand(rates, workload.utilisation_limit_fraction, workload.min_replicas, allowed, most_places=most_places)


def _limits(planning: PlanningInput) -> Limits:
    asked = planning.limits
    return Limits(
        budget_usd_per_hour=asked.max_usd_per_hour,
        power_w=asked.max_power_w,
        carbon_kg_per_hour=asked.max_carbon_kg_per_hour,
        spare_nodes=max(asked.spare_nodes, asked.survive.nodes),
        max_spot_fraction=asked.max_spot_fraction,
        quotas=tuple(Quota(quota.name, quota.offer_ids, quota.max_devices) for quota in asked.quotas),
        survive=Survive(asked.survive.providers, asked.survive.regions, asked.survive.utilisation_limit_fraction),
    )


def exceeds_default(plan: Plan, assembly: Assembly, default_max_nodes: int | None) -> bool:
    """Does a plan take more nodes of an offer without a limit than the default allows?"""
    if default_max_nodes is None:
        return False
    unlimited = {offer.id for offer in assembly.problem.offers if offer.max_nodes is None}
    return any(nodes > default_max_nodes for offer, nodes in plan.nodes_by_offer().items() if offer in unlimited)


MOST_NODES = 20_000
"""Of an offer in a request without a default limit."""


def most_nodes(planning: PlanningInput, assembly: Assembly) -> int:
    """Nodes on offer altogether."""
    default = planning.default_max_nodes or MOST_NODES
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
    and unlimited offers make a far smaller programme.
    """
    if planning.default_max_nodes is None:
        return assembly
    limited = tuple(
        replace(offer, max_nodes=planning.default_max_nodes) if offer.max_nodes is None else offer
        for offer in planning.offers
    )
    devices = {slot.device_id for slot in assembly.problem.offers}
    slots = offer_slots(replace(planning, offers=limited))
    offers = tuple(slot for slot in slots if slot.device_id in devices)
    demands = tuple(
        replace(demand, allowed_offer_ids=_demand(one.workload, offers).allowed_offer_ids)
        for demand, one in zip(assembly.problem.demands, assembly.screened, strict=True)
    )
    return replace(assembly, problem=replace(assembly.problem, offers=offers, demands=demands))


@dataclass(frozen=True, slots=True)
class Placement:
    """Replicas of one candidate on one offer, and the traffic routed to them.

    class_requests_per_s: of it, by traffic class; empty where the workload has none. capacity_requests_per_s: of one
    replica, at the mix that it is sent. classes: those it takes.
    """

    workload: int
    row: int
    offer_id: str
    replicas: int
    requests_per_s: float
    capacity_requests_per_s: float
    class_requests_per_s: tuple[float, ...] = ()
    classes: ClassSet = ALL_CLASSES

    @property
    def rate_per_replica(self) -> float:
        return self.requests_per_s / self.replicas


def placements(assembly: Assembly, plan: Plan) -> list[Placement]:
    """A plan's replicas with their share of the traffic, largest first within a workload."""
    routed: dict[tuple[int, str], Floats] = {}
    width = assembly.problem.deployments.capacity_requests_per_s.shape[1]
    for route in plan.routes:
        rates = routed.setdefault((route.key, route.offer_id), np.zeros(width))
        rates[route.traffic_class] += route.requests_per_s
    found = [
        _placement(assembly, key, offer_id, replicas, routed.get((key, offer_id), np.zeros(width)))
        for (key, offer_id), replicas in plan.replicas().items()
    ]
    return sorted(found, key=lambda p: (p.workload, -p.requests_per_s, p.offer_id, p.row))


def _placement(assembly: Assembly, key: int, offer_id: str, replicas: int, rates: Floats) -> Placement:
    workload = int(assembly.workload_of[key])
    one = assembly.screened[workload]
    capacity = assembly.problem.deployments.capacity_requests_per_s[key]
    total, by_class = float(rates[0]), ()
    within = float(capacity[0])
    if one.classes:
        by_class = tuple(rates[: len(one.classes)].tolist())
        total, within = math.fsum(by_class), mix_capacity(capacity[: len(one.classes)], rates[: len(one.classes)])
    return Placement(
        workload, int(assembly.row_of[key]), offer_id, replicas, total, within, by_class,
        assembly.class_sets[int(assembly.classes_of[key])],
    )  # fmt: skip


def mix_capacity(capacity_requests_per_s: Floats, rates: Floats) -> float:
    """What a replica serves of a mix: Σ r_k / Σ (r_k/μ_k); of its best class where it gets no traffic.

    >>> mix_capacity(np.array([4.0, 1.0]), np.array([2.0, 1.0]))
    2.0
    """
    if not rates.any():
        return float(capacity_requests_per_s.max(initial=0.0))
    taken = rates > 0.0
    return float(rates[taken].sum() / (rates[taken] / capacity_requests_per_s[taken]).sum())


def plan_entries(planning: PlanningInput, assembly: Assembly, plan: Plan) -> tuple[PlanEntry, ...]:
    """Named entries of a plan, without predictions. A node shared by several entries is split by devices used."""
    offers = {offer.id: offer for offer in planning.offers}
    nodes = plan.nodes_by_offer()
    found = placements(assembly, plan)
    used: dict[str, float] = {}
    for place in found:
        used[place.offer_id] = used.get(place.offer_id, 0.0) + place.replicas * _devices(assembly, place)
    entries = []
    served = _served_by_class(assembly, found)
    for place in found:
        one = assembly.screened[place.workload]
        offer = offers[place.offer_id]
        share = place.replicas * _devices(assembly, place) / used[place.offer_id]
        power = float(one.power_w_per_replica[place.row]) * place.replicas
        configuration = one.space.configuration(place.row)
        entries.append(
            PlanEntry(
                workload=one.workload.name,
                offer=offer,
                nodes=max(1, round(nodes[place.offer_id] * share)) if share < 1.0 else nodes[place.offer_id],
                replicas=place.replicas,
                configuration=configuration,
                max_concurrency=admitted_requests(configuration),
                serves_requests_per_s=place.requests_per_s,
                capacity_requests_per_s=place.capacity_requests_per_s * place.replicas,
                utilisation_fraction=place.rate_per_replica / max(place.capacity_requests_per_s, 1e-12),
                usd_per_hour=offer.usd_per_hour * nodes[place.offer_id] * share,
                power_w=power + _known(offer.node.host_power_w) * nodes[place.offer_id] * share,
                estimate=None,
                network_s=one.network_of(place.row) if one.workload.network_s_by_region else None,
                classes=tuple(
                    ClassLoad(each.name, rate, float(rate / served[place.workload][k]))
                    for k, (each, rate) in enumerate(zip(one.workload.classes, place.class_requests_per_s, strict=True))
                    if rate > 0.0
                ),
            )
        )
    return tuple(entries)


def admitted_requests(configuration: Configuration) -> int:
    """Requests that the engine of one replica has in progress at once, at most: its seats, of every copy of its attention."""
    return configuration.engine.max_sequences * configuration.layout.data_parallel


def _served_by_class(assembly: Assembly, found: Sequence[Placement]) -> list[Floats]:
    """What the plan serves of every workload's classes."""
    served = [np.zeros(len(one.workload.classes)) for one in assembly.screened]
    for place in found:
        served[place.workload] += np.array(place.class_requests_per_s)
    return served


def _devices(assembly: Assembly, place: Placement) -> float:
    """Devices that one replica occupies: 1/K for an instance of a device split in K."""
    space = assembly.screened[place.workload].space
    partition = space.platforms[int(space.platform_index[place.row])].device.partition
    return float(space.devices_per_replica[place.row]) / (partition.instances if partition else 1)


def needed_devices(entry: PlanEntry) -> float:
    """Devices that all replicas of a line occupy."""
    partition = entry.configuration.device.partition
    return float(entry.replicas * entry.configuration.layout.devices) / (partition.instances if partition else 1)


def split_devices(assembly: Assembly, plan: Plan) -> tuple[SplitDevices, ...]:
    """Nodes of a plan some of whose devices are split, by offer and profile."""
    splits = assembly.problem.deployments.splits
    found: Counter[tuple[str, int, int]] = Counter()
    for group in plan.groups:
        for split, devices in group.splits:
            found[group.offer_id, split, devices] += group.nodes
    return tuple(
        SplitDevices(offer_id, splits[split].name, splits[split].instances, devices, nodes)
        for (offer_id, split, devices), nodes in sorted(found.items())
    )
