"""That no plan of one workload costs less than a known one, by the whole nodes that it takes: without grouping offers or solving."""

import math
from collections.abc import Iterator

import numpy as np

from solver.fleet.decomposition.covering import Coverer, least_cover
from solver.fleet.groups.offer_groups import loads
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.problem import FleetProblem, OfferSlot


def is_least(problem: FleetProblem, usd_per_hour: float) -> bool:
    """Is it certain that no plan costs less than one that is known, to the precision of a proof?

    One workload of one traffic class is served by whole nodes, each at its price and with at most what fits it of work, and by
    replicas over several nodes: a covering knapsack (``least_cover``). Where all of it is in one place of a kind, by those of one such
    place. Other limits only raise what plans cost. False, too, for several workloads or classes, and where machines cost nothing.
    """
    demand, table = problem.demands[0], problem.deployments
    is_one = len(problem.demands) == 1 and len(demand.requests_per_s) == 1 and demand.requests_per_s[0] > 0.0
    if not is_one or table.role is not None or table.splits or any(o.usd_per_hour <= 0.0 for o in problem.offers):
        return False
    kinds = [kind for kind, most in demand.most_places if most == 1]
    places: dict[tuple[str, ...], list[OfferSlot]] = {}
    for offer in problem.offers:
        if offer.max_nodes != 0:
            places.setdefault(tuple(offer.place(kind) for kind in kinds), []).append(offer)
    most_work = _most_work(problem)
    enough = usd_per_hour * (1.0 - PROVEN_GAP_FRACTION)
    return all(
        least_cover([one for offer in offers for one in _coverers(offer, most_work)], 1.0, usd_per_hour) >= enough
        for offers in places.values()
    )


def _most_work(problem: FleetProblem) -> dict[str, dict[int, float]]:
    """By node type and nodes that are taken together: the largest share of all demand that they can serve.

    Of replicas on g of a node's G devices, as many as fit: W(n) = max_g W(n − g) + 1/load_g, the knapsack of the node.
    """
    table, load = problem.deployments, loads(problem)[:, 0]
    devices = {offer.node_type_id: offer.devices for offer in problem.offers}
    served = np.where(load > 0.0, 1.0 / np.maximum(load, 1e-300), 0.0)
    best: dict[str, dict[tuple[int, int], float]] = {}
    for node_type, nodes, own, share in zip(
        table.node_type.tolist(), table.nodes_per_replica.tolist(), table.devices_per_replica.tolist(),
        served.tolist(), strict=True,
    ):  # fmt: skip
        of_type = best.setdefault(table.node_type_ids[node_type], {})
        key = (nodes, 0 if nodes > 1 else own)
        of_type[key] = max(of_type.get(key, 0.0), share)
    found: dict[str, dict[int, float]] = {}
    for name, of_type in best.items():
        most = [0.0] * (devices.get(name, 0) + 1)
        for room in range(1, len(most)):
            fitting = [
                most[room - own] + share for (nodes, own), share in of_type.items() if nodes == 1 and own <= room
            ]
            most[room] = max(most[room - 1], max(fitting, default=0.0))
        found[name] = {nodes: share for (nodes, _), share in of_type.items() if nodes > 1} | {1: most[-1]}
    return found


def _coverers(offer: OfferSlot, most_work: dict[str, dict[int, float]]) -> Iterator[Coverer]:
    """What can be taken of an offer: its nodes one by one, or as many together as replicas span."""
    for nodes, share in most_work.get(offer.node_type_id, {}).items():
        if share > 0.0:
            most = math.inf if offer.max_nodes is None else offer.max_nodes // nodes
            yield Coverer(nodes * offer.usd_per_hour, share, most)
