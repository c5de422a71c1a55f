"""Offers grouped where they are interchangeable for capacity, and the pairs (deployment, group) that may be used.

Offers of one node type, equally interruptible, open to the same workloads and deployments, under the same quotas, named
by the same requirements and, where a loss of providers or regions is to be survived, lost together, where workloads may
use few places of a kind or caches travel, of the same place, and where carbon matters, on equally clean electricity, differ in price and
number only: capacity is decided for the group and split back, cheapest first. Replicas over several nodes must stay inside
one offer, so their pairs name the offer too.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solver.fleet.deployments import AGGREGATED, ANY_SITE, DECODE, PREFILL, WHOLE, BoolArray, FloatArray, IntArray
from solver.fleet.problem import FleetProblem, Resource
from solver.hardware import PlaceKind
from solver.units import kg_per_hour

ANY_OFFER = -1
"""``Pairs.offer`` of a replica inside one node: any offer of the group will do."""
NO_EXCHANGE = -1
"""``Pairs.exchange`` of an aggregated replica."""


@dataclass(frozen=True, slots=True)
class OfferGroup:
    """offers: positions in ``problem.offers``, cheapest first. max_nodes: of all offers together, None unlimited.

    domains: what the group is lost with, one name for each of ``FaultTolerance.losses``; empty where nothing is to be survived.
    sites: those of ``DeploymentTable.sites`` that it belongs to. kg_co2e_per_kwh: where carbon matters, else 0.
    places: of the kinds in ``kinds_of_places``, in that order.
    """

    node_type_id: str
    devices: int
    host_power_w: float
    interruptible: bool
    workloads: frozenset[int]
    quotas: frozenset[int]
    offers: tuple[int, ...]
    usd_per_hour: float
    max_nodes: int | None
    domains: tuple[str, ...] = ()
    sites: frozenset[int] = frozenset()
    kg_co2e_per_kwh: float = 0.0
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Columns over (deployment row, group, offer), sorted by workload.

    split: of the devices in ``DeploymentTable.splits``, into ``instances`` each; WHOLE and 1 where devices are not divided.
    node_fraction: nodes one replica takes (g / (G · instances), or m). slots: replicas in one node (0 when it spans nodes).
    load: replicas' worth of work in all the demand of each class, λ / (ρ μ); inf where it cannot be served, 0 where
    there is no demand. role: see ``DeploymentTable``. exchange: a number of where a side's prompts' caches can travel: one
    provider and region, and whatever else both sides must share.
    """

    deployment: IntArray
    group: IntArray
    offer: IntArray
    workload: IntArray
    devices: IntArray
    split: IntArray
    instances: IntArray
    nodes_per_replica: IntArray
    node_fraction: FloatArray
    slots: IntArray
    load: FloatArray
    usd_per_node_hour: FloatArray
    host_power_w: FloatArray
    power_w: FloatArray
    kg_co2e_per_kwh: FloatArray
    role: IntArray
    exchange: IntArray

    def __len__(self) -> int:
        return len(self.deployment)

    @property
    def has_exchanges(self) -> bool:
        """Is there anything but aggregated replicas?"""
        return bool((self.role != AGGREGATED).any())

    def take(self, rows: BoolArray | IntArray) -> "Pairs":
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__slots__})

    def takes(self, resource: Resource) -> tuple[FloatArray, FloatArray]:
        """(by a node, by a replica beyond that) of each pair's: USD per hour, W, or kg CO2e per hour."""
        match resource:
            case "cost":
                return self.usd_per_node_hour, np.zeros(len(self))
            case "power":
                return self.host_power_w, self.power_w
            case "carbon":
                host, replica = (kg_per_hour(w, self.kg_co2e_per_kwh) for w in (self.host_power_w, self.power_w))
                return host, replica


def group_offers(problem: FleetProblem) -> list[OfferGroup]:
    """Group offers; drop those dearer than an unlimited one of the same group (never needed)."""
    wanted = set(problem.deployments.node_type_ids)
    members: dict[tuple[Any, ...], list[int]] = {}
    table = problem.deployments
    nowhere: frozenset[int] = frozenset()
    losses, kinds = problem.limits.fault_tolerance.losses, kinds_of_places(problem)
    everyone = frozenset(range(len(problem.demands)))
    restricted = [(w, d.allowed_offer_ids) for w, d in enumerate(problem.demands) if d.allowed_offer_ids is not None]
    tells_quotas, required, is_carbon = problem.limits.quotas, problem.required, problem.matters("carbon")
    # Thousands of offers are told apart by little in most problems: what is not asked for is not looked up.
    by_own = bool(restricted or tells_quotas or required or losses or table.sites or is_carbon)
    alike = (everyone, nowhere, (), nowhere, nowhere, 0.0)
    of_offer: dict[tuple[str, str, str], tuple[str, ...]] = {}
    usable = [
        (offer.usd_per_hour, offer.id, position)
        for position, offer in enumerate(problem.offers)
        if offer.node_type_id in wanted and offer.max_nodes != 0
    ]
    usable.sort()
    for _, _, position in usable:  # so that each group's are in the order of their prices
        offer = problem.offers[position]
        where = (offer.provider, offer.region, offer.device_id)
        places = of_offer.get(where)
        if places is None:
            places = of_offer[where] = tuple([offer.place(kind) for kind in kinds])
        if by_own:
            workloads = (
                everyone - {w for w, allowed in restricted if offer.id not in allowed} if restricted else everyone
            )
            if not workloads:
                continue
            quotas = frozenset(q for q, quota in enumerate(tells_quotas) if offer.id in quota.offer_ids)
            named = frozenset(r for r, one in enumerate(required) if offer.id in (one.offer_ids or ()))
            domains = tuple(offer.domain(kind) for kind, _ in losses)
            sites = table.sites_of(offer.region) if table.sites else nowhere
            kg = offer.kg_co2e_per_kwh if is_carbon else 0.0
            members.setdefault(
                (offer.node_type_id, offer.interruptible, places, workloads, quotas, domains, named, sites, kg), []
            ).append(position)
        else:
            members.setdefault((offer.node_type_id, offer.interruptible, places), []).append(position)
    groups = []
    for (node_type_id, interruptible, places, *own), positions in members.items():
        workloads, quotas, domains, _, sites, kg = own or alike
        kept: list[int] = []
        total: int | None = 0
        for position in positions:
            kept.append(position)
            most = problem.offers[position].max_nodes
            if most is None:
                total = None
                break
            total = (total or 0) + most
        first = problem.offers[kept[0]]
        groups.append(
            OfferGroup(
                node_type_id,
                first.devices,
                first.host_power_w,
                interruptible,
                workloads,
                quotas,
                tuple(kept),
                first.usd_per_hour,
                total,
                domains,
                sites,
                kg,
                places,
            )
        )
    listed = {found: sorted(found) for one in groups for found in (one.workloads, one.quotas, one.sites)}
    groups.sort(
        key=lambda p: (
            p.node_type_id,
            p.interruptible,
            listed[p.workloads],
            listed[p.quotas],
            p.domains,
            listed[p.sites],
            p.kg_co2e_per_kwh,
            p.places,
            p.offers,
        )
    )
    return groups


def kinds_of_places(problem: FleetProblem) -> tuple[PlaceKind, ...]:
    """Kinds of places by which offers are told apart: of which some workload may use few, or within which caches travel."""
    kinds = {kind for demand in problem.demands for kind, _ in demand.most_places}
    travel: set[PlaceKind] = set() if problem.deployments.role is None else {"region"}
    return tuple(sorted(kinds | travel))


def pair_up(problem: FleetProblem, groups: list[OfferGroup]) -> Pairs:
    """Every deployment with every group it may run in, where it serves something and fits the node."""
    table = problem.deployments
    load = loads(problem)
    serves = (np.isfinite(load) & (load > 0)).any(axis=1)
    node_type_index = {node_type: i for i, node_type in enumerate(table.node_type_ids)}
    rows_of_type = _rows_by_value(table.node_type, len(table.node_type_ids))
    workload_limits = any(len(group.workloads) < len(problem.demands) for group in groups)
    needed = np.array([d.min_replicas > 0 and not any(d.requests_per_s) for d in problem.demands])
    usable: BoolArray = serves | needed[table.workload]
    rows_of_type = [rows[usable[rows]] for rows in rows_of_type]
    rows_of_group: list[IntArray] = []
    for group in groups:
        rows = rows_of_type[node_type_index[group.node_type_id]]
        if workload_limits:
            rows = rows[np.isin(table.workload[rows], sorted(group.workloads))]
        if table.site is not None:
            rows = rows[np.isin(table.site[rows], [ANY_SITE, *sorted(group.sites)])]
        rows_of_group.append(rows)
    every = np.concatenate([np.zeros(0, dtype=np.int64), *rows_of_group])
    group_of_row = np.repeat(np.arange(len(groups)), [len(rows) for rows in rows_of_group])
    spans = table.nodes_per_replica[every] > 1
    devices = np.array([group.devices for group in groups], dtype=np.int64)
    inside = ~spans & (table.devices_per_replica[every] <= devices[group_of_row]) if len(groups) else spans
    deployments, group_column = [every[inside]], [group_of_row[inside]]
    offer_column = [np.full(len(deployments[0]), ANY_OFFER)]
    for p in np.unique(group_of_row[spans]).tolist():
        spanning = every[spans & (group_of_row == p)]
        for offer in groups[p].offers:
            deployments.append(spanning)
            group_column.append(np.full(len(spanning), p))
            offer_column.append(np.full(len(spanning), offer))
    deployment, group_of, offer_of = map(np.concatenate, (deployments, group_column, offer_column))
    order = np.lexsort((offer_of, table.key[deployment], group_of, table.workload[deployment]))
    return _with_partners(_columns(problem, groups, deployment[order], group_of[order], offer_of[order], load))


def _with_partners(pairs: Pairs) -> Pairs:
    """Without prefill replicas where nothing decodes, and decode replicas where nothing prefills."""
    if not pairs.has_exchanges:
        return pairs
    place = pairs.workload * (1 + pairs.exchange.max()) + pairs.exchange
    meets = np.isin(place, np.intersect1d(place[pairs.role == PREFILL], place[pairs.role == DECODE]))
    return pairs.take((pairs.role == AGGREGATED) | meets)


def _exchanges(problem: FleetProblem, groups: list[OfferGroup], deployment: IntArray, group: IntArray) -> IntArray:
    """By pair: see ``Pairs.exchange``."""
    table = problem.deployments
    if table.exchange is None:
        return np.full(len(deployment), NO_EXCHANGE, dtype=np.int64)
    position = kinds_of_places(problem).index("region")
    names = sorted({one.places[position] for one in groups})
    place = np.array([names.index(one.places[position]) for one in groups], dtype=np.int64)
    number = place[group] * (1 + table.exchange.max(initial=0)) + table.exchange[deployment]
    return np.where(table.roles[deployment] == AGGREGATED, NO_EXCHANGE, number)


def _columns(
    problem: FleetProblem,
    groups: list[OfferGroup],
    deployment: IntArray,
    group: IntArray,
    offer: IntArray,
    load: FloatArray,
) -> Pairs:
    table = problem.deployments
    devices_in_node = np.array([p.devices for p in groups], dtype=np.int64)[group]
    devices = table.devices_per_replica[deployment]
    nodes = table.nodes_per_replica[deployment]
    instances = table.instances[deployment]
    spans = nodes > 1
    price_of_offer = np.array([o.usd_per_hour for o in problem.offers])
    price_of_group = np.array([p.usd_per_hour for p in groups])
    price = np.where(offer >= 0, price_of_offer[offer], price_of_group[group]) if len(group) else np.zeros(0)
    return Pairs(
        deployment=deployment,
        group=group,
        offer=offer,
        workload=table.workload[deployment],
        devices=devices,
        split=np.full(len(deployment), WHOLE) if table.split is None else table.split[deployment],
        instances=instances,
        nodes_per_replica=nodes,
        node_fraction=np.where(spans, nodes.astype(np.float64), devices / (devices_in_node * instances)),
        slots=np.where(spans, 0, devices_in_node // np.maximum(devices, 1) * instances),
        load=load[deployment],
        usd_per_node_hour=price,
        host_power_w=np.array([p.host_power_w for p in groups])[group] if len(group) else np.zeros(0),
        power_w=table.power_w_per_replica[deployment],
        kg_co2e_per_kwh=np.array([p.kg_co2e_per_kwh for p in groups])[group] if len(group) else np.zeros(0),
        role=table.roles[deployment],
        exchange=_exchanges(problem, groups, deployment, group),
    )


def demand_matrix(problem: FleetProblem) -> FloatArray:
    """λ: workloads × classes of the deployment table, zero padded."""
    rates = np.zeros((len(problem.demands), problem.deployments.capacity_requests_per_s.shape[1]))
    for w, demand in enumerate(problem.demands):
        rates[w, : len(demand.requests_per_s)] = demand.requests_per_s
    return rates


def loads(problem: FleetProblem) -> FloatArray:
    """Replicas' worth of work in all the demand of each class, λ / (ρ μ), by deployment: see ``Pairs.load``."""
    table = problem.deployments
    rates = demand_matrix(problem)[table.workload]
    limit = np.array([d.utilisation_limit_fraction for d in problem.demands])[table.workload]
    usable = limit[:, None] * table.capacity_requests_per_s
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        load: FloatArray = np.where(rates > 0, np.where(usable > 0, rates / usable, np.inf), 0.0)
    return load


def _rows_by_value(values: IntArray, count: int) -> list[IntArray]:
    order = np.argsort(values, kind="stable")
    edges = np.searchsorted(values[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]


def lost_together(groups: list[OfferGroup], pairs: Pairs) -> list[tuple[tuple[str, ...], Pairs]]:
    """(domains, pairs) of all groups that are lost together."""
    of_group = [group.domains for group in groups]
    names = sorted(set(of_group))
    number = np.array([names.index(domains) for domains in of_group], dtype=np.int64)
    return [(domains, pairs.take(number[pairs.group] == n)) for n, domains in enumerate(names)]
