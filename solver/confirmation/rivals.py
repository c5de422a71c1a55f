"""Which candidates are worth simulating once no bound rules a plan out: those that could serve a workload alone for less.

Every candidate is believed to sustain as much as screening cannot rule out, so the cheapest on paper come first and most
turn out not to hold. The first that carries what it would have to, on as few nodes as it was believed to need, is the
cheapest way to serve the workload with one kind of replica on one offer; all others are then known to need more nodes than
that, or not to carry their share. What combinations can do is left to the optimiser.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solver.confirmation.brackets import Brackets
from solver.planning.assemble import Assembly

Floats = NDArray[np.float64]


def simulate_rivals(assembly: Assembly, brackets: Brackets, in_time: Callable[[], bool]) -> None:
    """Close the brackets of candidates that would be cheapest for a workload alone; ``brackets`` learn."""
    prices = _least_price(assembly)
    for workload, one in enumerate(assembly.screened):
        if not one.classes:
            _simulate(assembly, brackets, workload, prices, in_time)


def _simulate(
    assembly: Assembly, brackets: Brackets, workload: int, prices: Floats, in_time: Callable[[], bool]
) -> None:
    table, demand = assembly.problem.deployments, assembly.problem.demands[workload]
    mine = np.flatnonzero(assembly.workload_of == workload)
    mine = mine[np.isfinite(prices[mine])]
    if not len(mine) or assembly.problem.objective == "throughput":
        return
    rows = assembly.row_of[mine]
    one = assembly.screened[workload]
    base = len(one.space.rows) // one.copies
    alike = rows // base * base + one.space.twin[rows]
    spans = table.nodes_per_replica[mine]
    replicas = np.where(spans > 1, 1.0 / spans, _replicas_per_node(assembly)[mine])
    price = prices[mine]
    load = demand.requests_per_s[0] / demand.utilisation_limit_fraction
    cost = _cost(load, brackets.all_at_most(workload, rows, alike), replicas, price, spans)
    while in_time():
        k = int(np.argmin(cost))
        if not math.isfinite(cost[k]):
            return
        row = int(rows[k])
        needed = load / (round(cost[k] / price[k]) * replicas[k])
        bracket = brackets.carry(workload, row, needed)
        if bracket.holds >= needed * (1.0 - 1e-12):
            return
        same = np.flatnonzero(alike == alike[k])
        cost[same] = _cost(load, np.full(len(same), bracket.at_most), replicas[same], price[same], spans[same])


def _cost(load: float, sustained: Floats, replicas: Floats, price: Floats, spans: NDArray[np.int64]) -> Floats:
    """USD an hour of the whole nodes that carry the load, each with ``replicas`` (below 1 where one spans several)."""
    with np.errstate(divide="ignore"):
        needed = np.where(sustained > 0.0, load / np.maximum(sustained, 1e-300), np.inf)
    whole = np.where(spans > 1, np.ceil(needed - 1e-9) * spans, np.ceil(needed / replicas - 1e-9))
    return np.asarray(np.maximum(whole, 1.0) * price)


def _least_price(assembly: Assembly) -> Floats:
    """By deployment: the least a node costs on which it runs."""
    table = assembly.problem.deployments
    number = {name: i for i, name in enumerate(table.node_type_ids)}
    least = np.full(len(table.node_type_ids), np.inf)
    for offer in assembly.problem.offers:
        if offer.max_nodes != 0:
            i = number[offer.node_type_id]
            least[i] = min(least[i], max(offer.usd_per_hour, LEAST_USD))
    return np.asarray(least[table.node_type])


LEAST_USD = 1e-6
"""An hour of what costs nothing: its nodes are still counted."""


def _replicas_per_node(assembly: Assembly) -> Floats:
    table = assembly.problem.deployments
    devices_of = {offer.node_type_id: offer.devices for offer in assembly.problem.offers}
    devices = np.array([devices_of.get(name, 1) for name in table.node_type_ids])[table.node_type]
    return np.asarray(devices // np.maximum(table.devices_per_replica, 1) * table.instances, dtype=float)
