"""A plan's replicas as candidates with their share of the traffic, and as named entries."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import sustained_power_w
from solver.deployment.configuration import Configuration
from solver.fleet import OfferSlot, Plan
from solver.fleet.deployments import ROLES, Role
from solver.planning.assemble import Assembly, known_figure
from solver.planning.published_in_plan import UNITS, published_entries
from solver.planning.published_offers import PublishedEntry
from solver.planning.types import ClassLoad, PlanEntry, PlanningInput, SplitDevices
from solver.traffic_classes import ALL_CLASSES, ClassSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Placement:
    """Replicas of one candidate on one offer, and the traffic routed to them.

    class_requests_per_s: of it, by traffic class; a workload without has one. capacity_requests_per_s: of one
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
    role: Role = "aggregated"
    exchange: tuple[str, str, int] | None = None
    """Where the other side of a prefill or decode replica is: provider, region, what both share."""

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
    offers = {offer.id: offer for offer in assembly.problem.offers}
    found = [
        _placement(assembly, key, offers[offer_id], replicas, routed.get((key, offer_id), np.zeros(width)))
        for (key, offer_id), replicas in plan.replicas().items()
        if assembly.workload_of[key] != UNITS
    ]
    return sorted(
        found,
        key=lambda p: (p.workload, p.exchange or (), ROLES.index(p.role), -p.requests_per_s, p.offer_id, p.row),
    )


def _placement(assembly: Assembly, key: int, offer: OfferSlot, replicas: int, rates: Floats) -> Placement:
    workload = int(assembly.workload_of[key])
    one = assembly.screened[workload]
    capacity = assembly.problem.deployments.capacity_requests_per_s[key]
    streams = len(one.classes)
    by_class = tuple(rates[:streams].tolist())
    total, within = math.fsum(by_class), mix_capacity(capacity[:streams], rates[:streams])
    table, exchange = assembly.problem.deployments, None
    role = ROLES[int(table.roles[key])]
    if table.exchange is not None and role != "aggregated":
        exchange = offer.provider, offer.region, int(table.exchange[key])
    return Placement(
        workload, int(assembly.row_of[key]), offer.id, replicas, total, within, by_class,
        assembly.class_sets[int(assembly.classes_of[key])], role, exchange,
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
        each_w = one.power_w_per_replica if place.role == "aggregated" else sustained_power_w(one.space)
        power = float(each_w[place.row]) * place.replicas
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
                power_w=power + known_figure(offer.node.host_power_w) * nodes[place.offer_id] * share,
                estimate=None,
                role=place.role,
                network_s=one.network_of(place.row) if one.workload.network_s_by_region else None,
                classes=tuple(
                    ClassLoad(each.name, rate, float(rate / served[place.workload][k]))
                    for k, (each, rate) in enumerate(zip(one.workload.classes, place.class_requests_per_s, strict=True))
                    if rate > 0.0
                ),
            )
        )
    return tuple(entries)


def entries_of_units(planning: PlanningInput, plan: Plan) -> tuple[PublishedEntry, ...]:
    """What a plan takes of offers that rest on published speeds."""
    rates = {one.name: one.requests_per_s for one in planning.workloads}
    return published_entries(planning.published, plan, rates)


def machines_of(planning: PlanningInput, plan: Plan) -> dict[str, int]:
    """Nodes of a plan by offer, without units of offers that rest on published speeds."""
    units = {offer.id for offer in planning.published}
    return {offer_id: nodes for offer_id, nodes in plan.nodes_by_offer().items() if offer_id not in units}


def admitted_requests(configuration: Configuration) -> int:
    """Requests that the engine of one replica has in progress at once, at most: its seats, of every copy of its attention."""
    return configuration.engine.max_sequences * configuration.layout.data_parallel


def _served_by_class(assembly: Assembly, found: Sequence[Placement]) -> list[Floats]:
    """What the plan serves of every workload's classes."""
    served = [np.zeros(len(one.classes)) for one in assembly.screened]
    for place in found:
        if place.role != "prefill":
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
