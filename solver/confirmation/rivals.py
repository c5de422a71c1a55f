"""Which candidates are worth simulating once no bound rules a plan out: those that could serve a workload alone for less.

Every candidate is believed to sustain as much as screening cannot rule out, so the cheapest on paper come first and most
turn out not to hold. The first that carries what it would have to, on as few nodes as it was believed to need, is the
cheapest way to serve the workload with one kind of replica on one offer; all others are then known to need more nodes than
that, or not to carry their share. What combinations can do is left to the optimiser.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.confirmation.brackets import Brackets
from solver.planning.assemble import Assembly

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Offered:
    """One workload's candidates on machines that are offered.

    alike: the first row of each one's like. replicas: on one node, below 1 where one spans several. price: USD an hour of the
    cheapest such node. load: requests per second that all replicas have to sustain, headroom included.
    """

    rows: Integers
    alike: Integers
    spans: Integers
    replicas: Floats
    price: Floats
    load: float


def offered_to(assembly: Assembly, workload: int) -> Offered:
    """What replicas that prefill and decode a workload of one traffic class may run on."""
    table, demand = assembly.problem.deployments, assembly.problem.demands[workload]
    prices = _least_price(assembly)
    mine = np.flatnonzero(assembly.rows_in_role(workload) & np.isfinite(prices))
    one, rows, spans = assembly.screened[workload], assembly.row_of[mine], table.nodes_per_replica[mine]
    return Offered(
        rows=rows,
        alike=one.all_alike(rows),
        spans=spans,
        replicas=np.where(spans > 1, 1.0 / spans, _replicas_per_node(assembly)[mine]),
        price=prices[mine],
        load=demand.requests_per_s[0] / demand.utilisation_limit_fraction,
    )


def simulate_rivals(
    assembly: Assembly, brackets: Brackets, in_time: Callable[[], bool], most_usd_per_hour: float = math.inf
) -> None:
    """Close the brackets of candidates that would be cheapest for a workload alone, and for less than ``most_usd_per_hour``;
    ``brackets`` learn."""
    if assembly.problem.objective == "throughput":
        return
    for workload, _ in brackets.workloads:
        _simulate(offered_to(assembly, workload), brackets, workload, in_time, most_usd_per_hour)


def _simulate(
    one: Offered, brackets: Brackets, workload: int, in_time: Callable[[], bool], most_usd_per_hour: float
) -> None:
    if not len(one.rows):
        return
    cost = _cost(one.load, brackets.all_at_most(workload, one.rows, one.alike), one.replicas, one.price, one.spans)
    while in_time():
        k = int(np.argmin(cost))
        if not math.isfinite(cost[k]) or cost[k] >= most_usd_per_hour:
            return
        needed = one.load / (round(cost[k] / one.price[k]) * one.replicas[k])
        bracket = brackets.carry(workload, int(one.rows[k]), needed, in_time)
        if bracket.holds >= needed * (1.0 - 1e-12):
            return
        same = np.flatnonzero(one.alike == one.alike[k])
        at_most = np.full(len(same), bracket.at_most)
        cost[same] = _cost(one.load, at_most, one.replicas[same], one.price[same], one.spans[same])


def _cost(load: float, sustained: Floats, replicas: Floats, price: Floats, spans: Integers) -> Floats:
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
