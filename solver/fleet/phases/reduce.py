"""Making the problem with pools small without changing its answer: places, a draft plan, and pruning by prices."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from solver.fleet.phases.formulation import Placed, Role, RoleDeployment, RolesProblem, exchange_of
from solver.fleet.problem import OfferSlot

Placements = list[tuple[RoleDeployment, OfferSlot]]
Exchange = tuple[int, tuple[str, ...]]
"""(workload, where its pools can meet)."""


def merge_places(problem: RolesProblem) -> RolesProblem:
    """A relaxation with fewer places: one whose every offer another place has as cheap lends it its nodes.

    A plan moved there whole costs no more. Offers of the place that stays may then hold more nodes than they have: a plan
    within their own limits is the best of the full problem too, any other says nothing (see ``within_limits``).
    """
    by_place: dict[tuple[str, str], list[OfferSlot]] = defaultdict(list)
    for offer in problem.offers:
        by_place[offer.provider, offer.region].append(offer)
    extra: dict[str, int] = defaultdict(int)
    kept = dict(sorted(by_place.items()))
    for place in sorted(by_place, reverse=True):
        for other in kept:
            if other == place:
                continue
            match = _matches(problem, kept[place], kept[other])
            if match is not None:
                for offer, host in match:
                    extra[host] += (offer.max_nodes or 0) + extra.pop(offer.id, 0)
                del kept[place]
                break
    offers = tuple(
        replace(offer, max_nodes=(offer.max_nodes or 0) + extra.get(offer.id, 0))
        for members in kept.values()
        for offer in members
    )
    return replace(problem, offers=offers)


def _matches(
    problem: RolesProblem, offers: Iterable[OfferSlot], hosts: Iterable[OfferSlot]
) -> list[tuple[OfferSlot, str]] | None:
    """For each offer one of the other place on the same machine, no dearer, that admits the same workloads; None: one lacks."""
    workloads = range(len(problem.rates))
    found = []
    for offer in offers:
        able = [
            host
            for host in hosts
            if host.node_type_id == offer.node_type_id
            and host.usd_per_hour <= offer.usd_per_hour
            and host.host_power_w <= offer.host_power_w
            and all(problem.allows(w, host.id) for w in workloads if problem.allows(w, offer.id))
        ]
        if not able:
            return None
        found.append((offer, min(able, key=lambda h: (h.usd_per_hour, h.id)).id))
    return found


def within_limits(problem: RolesProblem, nodes: dict[str, int]) -> bool:
    """Does a plan of the merged problem keep to the full problem's limits?"""
    most = {offer.id: offer.max_nodes or 0 for offer in problem.offers}
    return all(count <= most[offer] for offer, count in nodes.items())


def draft_usd(problem: RolesProblem, placed: Placements) -> float:
    """The cost of a simple plan: each workload alone, each role on whole nodes of one offer. Infinite where none is at hand."""
    if problem.power_w is not None:
        return math.inf
    total = 0.0
    taken: dict[str, int] = defaultdict(int)
    device = {offer.id: offer.device_id for offer in problem.offers}
    one_device = ("device", 1) in problem.most_places
    for w, rate in enumerate(problem.rates):
        if rate <= 0:
            continue
        best: dict[tuple[Role, tuple[str, ...]], tuple[float, str, int]] = {}
        for d, offer in placed:
            if d.workload != w:
                continue
            replicas = math.ceil(rate / (d.capacity_requests_per_s * problem.utilisation[w]) - 1e-9)
            nodes = math.ceil(replicas / (offer.devices // d.devices_per_replica))
            if nodes > (offer.max_nodes or 0):
                continue
            place = (d.role, () if d.role == "aggregated" else exchange_of(d, offer))
            best[place] = min(best.get(place, (math.inf, "", 0)), (nodes * offer.usd_per_hour, offer.id, nodes))
        options = [[best[p]] for p in best if p[0] == "aggregated"]
        options += [[best[p], best["decode", p[1]]] for p in best if p[0] == "prefill" and ("decode", p[1]) in best]
        if one_device:
            options = [parts for parts in options if len({device[offer] for _, offer, _ in parts}) == 1]
        if not options:
            return math.inf
        chosen = min(options, key=lambda parts: sum(cost for cost, _, _ in parts))
        total += sum(cost for cost, _, _ in chosen)
        for _, offer_id, nodes in chosen:
            taken[offer_id] += nodes
    most = {offer.id: offer.max_nodes or 0 for offer in problem.offers}
    return total if all(count <= most[offer] for offer, count in taken.items()) else math.inf


@dataclass(frozen=True, slots=True)
class PhaseDuals:
    """Dual prices in USD/h for a request per second: of demand by workload, of each role by exchange."""

    demand: list[float]
    prefill: dict[Exchange, float]
    decode: dict[Exchange, float]

    def of(self, d: RoleDeployment, offer: OfferSlot) -> float:
        if d.role == "aggregated":
            return self.demand[d.workload]
        return (self.prefill if d.role == "prefill" else self.decode)[d.workload, exchange_of(d, offer)]


def dual_prices(problem: RolesProblem, placed: Placements) -> tuple[PhaseDuals, PhaseDuals]:
    """Two dual solutions of the relaxation with divisible nodes: π_w = min(cheapest aggregated, min_s (p_s + d_s)).

    p_s and d_s are the cheapest cost of a request per second in each role; π is split so that neither role's price
    exceeds its cheapest: first as much as possible to prefill, min(p_s, π), then as much as possible to decode.
    """
    least: dict[tuple[int, Role, tuple[str, ...]], float] = defaultdict(lambda: math.inf)
    for d, offer in placed:
        place = () if d.role == "aggregated" else exchange_of(d, offer)
        useful = d.capacity_requests_per_s * problem.utilisation[d.workload]
        each = offer.usd_per_hour * d.devices_per_replica / offer.devices / useful
        least[d.workload, d.role, place] = min(least[d.workload, d.role, place], each)
    exchanges = {(w, place) for w, role, place in least if role == "prefill"}
    demand = []
    for w in range(len(problem.rates)):
        pools = [least[w, "prefill", s] + least[w, "decode", s] for v, s in exchanges if v == w]
        demand.append(min([least[w, "aggregated", ()], *pools]))
    prefill = {(w, s): min(least[w, "prefill", s], demand[w]) for w, s in exchanges}
    decode = {(w, s): min(least[w, "decode", s], demand[w]) for w, s in exchanges}
    return (
        PhaseDuals(demand, prefill, {e: demand[e[0]] - price for e, price in prefill.items()}),
        PhaseDuals(demand, {e: demand[e[0]] - price for e, price in decode.items()}, decode),
    )


def prune(problem: RolesProblem, placed: Placements, ceiling: float) -> tuple[float, Placements]:
    """A lower bound on cost, and the placements that a plan no dearer than ``ceiling`` can contain.

    With prices π of a dual solution every plan costs at least Σ π_w λ_w; one with a replica of j on o costs at least
    c_o g_j / G − price · capacity more. Infinite where some workload has no candidate.
    """
    served = {d.workload for d, _ in placed}
    if any(rate > 0 and w not in served for w, rate in enumerate(problem.rates)):
        return math.inf, []
    both = dual_prices(problem, placed)
    bound = math.fsum(p * rate for p, rate in zip(both[0].demand, problem.rates, strict=True) if rate > 0)
    room = ceiling * (1 + 1e-9) - bound
    kept = []
    for d, offer in placed:
        if problem.rates[d.workload] <= 0:
            continue
        useful = d.capacity_requests_per_s * problem.utilisation[d.workload]
        share = offer.usd_per_hour * d.devices_per_replica / offer.devices
        if all(share - prices.of(d, offer) * useful <= room for prices in both):
            kept.append((d, offer))
    return bound, undominated(problem, kept)


def undominated(problem: RolesProblem, placed: Placements) -> Placements:
    """Without deployments that smaller ones of the same role on the same offer replace: ⌊g/g'⌋ · μ' ≥ μ, g' ≤ g.

    Exact where replicas cost nothing by themselves; under a power limit everything is kept.
    """
    if problem.power_w is not None:
        return placed
    alike: dict[tuple[object, ...], list[RoleDeployment]] = defaultdict(list)
    for d, offer in placed:
        place = exchange_of(d, offer) if d.role != "aggregated" else ()
        alike[d.workload, d.role, offer.id, place].append(d)
    kept: set[Placed] = set()
    for (_, _, offer_id, _), rows in alike.items():
        best: list[RoleDeployment] = []
        for d in sorted(rows, key=lambda d: (d.devices_per_replica, -d.capacity_requests_per_s, d.key)):
            if not any(
                d.devices_per_replica // b.devices_per_replica * b.capacity_requests_per_s >= d.capacity_requests_per_s
                for b in best
            ):
                best.append(d)
                kept.add((d.key, str(offer_id)))
    return [(d, offer) for d, offer in placed if (d.key, offer.id) in kept]
