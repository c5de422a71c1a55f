"""What a plan for no more than a known price can contain: the rest of a problem need not be looked at.

Where a plan is known that a changed problem admits as well, only a cheaper one is asked for. Bounds over whole offers and
deployments then leave little of the catalog before anything is grouped or paired. What is left often says by itself that there is
none (``solver.fleet.decomposition.whole_nodes``).
"""

from dataclasses import replace

import numpy as np

from solver.fleet.deployments import FloatArray
from solver.fleet.groups.offer_groups import loads
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.problem import FleetProblem


def within_reach(problem: FleetProblem, usd_per_hour: float) -> FleetProblem:
    """The problem without offers and deployments that no plan for at most this price can contain.

    With nodes divisible and each at the least price of its type, serving all of class k of workload w on deployment j takes
    a_jk = p f_j · load_jk, so that every plan costs at least

        L = Σ_wk π_wk,   π_wk = min_j a_jk

    A replica of j saves at most v_j = max_k π_wk / load_jk of it and a node at most b = max_j v_j / f_j over the deployments of its
    type; so a plan with a replica of j costs at least L + p f_j − v_j, and one with a node at a price p' at least L + p' − b, and p'.
    Other limits only raise what plans cost. A plan for that price must exist, or what is left may admit none.
    """
    table, demands = problem.deployments, problem.demands
    prices = np.array([offer.usd_per_hour for offer in problem.offers])
    number = {name: i for i, name in enumerate(table.node_type_ids)}
    type_of = np.array([number.get(offer.node_type_id, -1) for offer in problem.offers], dtype=np.int64)
    usable = np.array([offer.max_nodes != 0 for offer in problem.offers], dtype=np.bool_) & (type_of >= 0)
    if not usable.any() or not len(table) or table.role is not None:  # of prefill and decode apart both sides count
        return problem
    least_price = np.full(len(number), np.inf)
    np.minimum.at(least_price, type_of[usable], prices[usable])
    devices = np.ones(len(number))
    devices[type_of[usable]] = np.array([offer.devices for offer in problem.offers])[usable]
    nodes = np.where(
        table.nodes_per_replica > 1,
        table.nodes_per_replica,
        table.devices_per_replica / (devices[table.node_type] * table.instances),
    )
    unit = least_price[table.node_type] * nodes
    load = loads(problem)
    offered = np.isfinite(unit)[:, None] & np.isfinite(load)
    with np.errstate(invalid="ignore"):
        whole: FloatArray = np.where(offered, unit[:, None] * load, np.inf)
    least = np.full((len(demands), load.shape[1]), np.inf)
    np.minimum.at(least, table.workload, whole)
    if not np.isfinite(least).all():
        return problem  # somebody cannot be served at all: not for a price to say
    with np.errstate(divide="ignore", invalid="ignore"):
        saved = np.where(offered & (load > 0.0), least[table.workload] / load, 0.0).max(axis=1, initial=0.0)
    of_node = np.zeros(len(number))
    np.maximum.at(of_node, table.node_type, np.where(np.isfinite(unit), saved / nodes, 0.0))
    lower = float(least.sum())
    room = usd_per_hour * (1.0 + PROVEN_GAP_FRACTION)
    kept_rows = np.isfinite(unit) & (lower + np.maximum(unit - saved, 0.0) <= room)
    with_one = np.maximum(prices, lower + np.maximum(prices - of_node[type_of], 0.0))
    kept_offers = usable & (with_one <= room)
    offers = tuple(offer for offer, kept in zip(problem.offers, kept_offers.tolist(), strict=True) if kept)
    return replace(problem, offers=offers, deployments=table.take(kept_rows))
