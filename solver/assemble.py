"""Screened candidates and offers → the fleet problem, and back from its plan to named entries."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.configuration import Configuration
from solver.fleet import (
    ANY_SITE,
    WHOLE,
    Demand,
    DeploymentTable,
    FleetProblem,
    Limits,
    OfferSlot,
    PlaceKind,
    Plan,
    Quota,
    Split,
    Survive,
)
from solver.hardware import Offer
from solver.planning import ClassLoad, Losses, PlanEntry, PlanningInput, SplitDevices
from solver.search import Screened
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


def needed_offers(planning: PlanningInput) -> list[Offer]:
    """Offers without those dearer than an unlimited one that can stand in for them whatever the limits are, and where
    carbon matters is no less clean."""
    unlimited: dict[tuple[object, ...], list[_Rank]] = {}
    stand_ins = _stand_ins(planning)
    ranks = {offer.id: _rank(planning, offer) for offer in planning.offers}
    for offer in sorted((o for o in planning.offers if o.max_nodes is None), key=lambda o: ranks[o.id]):
        better = unlimited.setdefault(stand_ins(offer), [])
        if not _beaten(ranks[offer.id], better):
            better.append(ranks[offer.id])
    kept = [o for o in planning.offers if not _beaten(ranks[o.id], unlimited.get(stand_ins(o), []))]
    return without_beaten_places(planning, kept)


def without_beaten_places(planning: PlanningInput, offers: list[Offer]) -> list[Offer]:
    """Where workloads may be in few places: offers without places whose every machine another place has, no dearer and without
    a limit.

    What is in such a place moves to the other whole, at no more cost. The other is of the same provider, unless one place of
    each kind is all there may be: elsewhere the move could add a provider, or join two that must be lost apart.
    """
    kinds, losses = dict(planning.limits.most_places), planning.limits.survive
    if not kinds.keys() & {"provider", "region"} or losses.regions:
        return offers
    alike = _stand_ins(replace(planning, limits=replace(planning.limits, most_places=(), survive=Losses())))
    by_region = "region" in kinds
    asks: dict[tuple[str, str], dict[tuple[object, ...], list[_Rank]]] = {}
    has: dict[tuple[str, str], dict[tuple[object, ...], list[_Rank]]] = {}
    for offer in offers:
        place, key, rank = _place(offer, by_region), alike(offer), _rank(planning, offer)
        asks.setdefault(place, {}).setdefault(key, []).append(rank)
        if offer.max_nodes is None:
            has.setdefault(place, {}).setdefault(key, []).append(rank)
    one_of_each = all(most == 1 for most in kinds.values()) and not losses.providers

    def covers(other: tuple[str, str], place: tuple[str, str]) -> bool:
        own = has.get(other, {})
        if other == place or not (one_of_each or other[0] == place[0]) or not own.keys() >= asks[place].keys():
            return False
        return all(
            any(better[0] <= rank[0] and better[2] <= rank[2] for better in own[key])
            for key, ranks in asks[place].items()
            for rank in ranks
        )

    beaten = {
        place
        for place in asks
        if any(covers(other, place) and (other < place or not covers(place, other)) for other in has)
    }
    return [o for o in offers if _place(o, by_region) not in beaten]


def _place(offer: Offer, by_region: bool) -> tuple[str, str]:
    return offer.provider, offer.region if by_region else ""


_Rank = tuple[float, str, float]


def _beaten(rank: _Rank, by: Sequence[_Rank]) -> bool:
    return any(other[:2] < rank[:2] and other[2] <= rank[2] for other in by)


def _rank(planning: PlanningInput, offer: Offer) -> _Rank:
    """(price, id, how much its electricity emits where that matters)."""
    return offer.usd_per_hour, offer.id, offer.kg_co2e_per_kwh if planning.carbon_matters else 0.0


def _stand_ins(planning: PlanningInput) -> Callable[[Offer], tuple[object, ...]]:
    """Offers with equal keys can stand in for each other: one machine, equally interruptible, and alike in whatever
    the request tells offers apart by: quotas, places of workloads and how many they may be in, losses to be survived."""
    limits, losses = planning.limits, planning.limits.survive
    quotas = [quota.offer_ids for quota in limits.quotas]
    places = [workload.places for workload in planning.workloads if workload.places != ANYWHERE]
    distances = [w.network_s_by_region for w in planning.workloads if w.network_s_by_region]
    kinds = {kind for kind, _ in limits.most_places}
    by_provider = bool(losses.providers or "provider" in kinds or "region" in kinds)
    by_region = bool(losses.regions or "region" in kinds)
    if not (quotas or places or distances or by_provider or by_region):
        return lambda offer: (offer.node.id, offer.commitment == "spot")

    def key(offer: Offer) -> tuple[object, ...]:
        return (
            offer.node.id,
            offer.commitment == "spot",
            tuple(offer.id in ids for ids in quotas),
            tuple(place.admit(offer.provider, offer.region) for place in places),
            tuple(away.get(offer.region) for away in distances),
            offer.provider if by_provider else None,
            offer.region if by_region else None,
        )

    return key


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
