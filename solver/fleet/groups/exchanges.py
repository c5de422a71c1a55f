"""Prefill and decode replicas that serve a workload together: what the pairs of a problem serve at least, and at what price.

An exchange is where a prompt's cache can travel: one provider, one region, and whatever else both sides must share. What it
serves of a class, its prefill replicas take in and its decode replicas answer.
"""

import itertools

import numpy as np

from solver.fleet.deployments import AGGREGATED, DECODE, PREFILL, FloatArray, IntArray
from solver.fleet.groups.offer_groups import NO_EXCHANGE, Pairs


def least_by_class(pairs: Pairs, workloads: int, unit: FloatArray) -> FloatArray:
    """(workloads, classes): least cost of serving all of a class where a replica of a pair costs ``unit``, in any part.

    π_wk = min( min_{aggregated} u_j · load_jk,  min_s (p_sk + d_sk) ),   p_sk, d_sk: least u_j · load_jk of either side of s
    """
    return _least(pairs, workloads, unit)[0]


def dual_prices(pairs: Pairs, workloads: int, unit: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """(π by workload and class, prices of a class by pair): dual solutions of the relaxation whose replicas cost ``unit``.

    A pair's price of a class is what the relaxation pays for it there: π_wk where replicas do both. The sides of an exchange
    part π_wk so that neither is paid more than its cheapest replica costs: min(p_sk, π_wk) to prefill and the rest to decode,
    or min(d_sk, π_wk) to decode and the rest to prefill. Both are dual feasible, hence two solutions where there are exchanges.
    """
    least, prefill, decode, number = _least(pairs, workloads, unit)
    whole = least[pairs.workload]
    if not pairs.has_exchanges:
        return least, [whole]
    first, second = np.minimum(prefill[number], whole), np.minimum(decode[number], whole)
    found = []
    for to_prefill, to_decode in ((first, whole - first), (whole - second, second)):
        role = pairs.role[:, None]
        found.append(np.where(role == AGGREGATED, whole, np.where(role == PREFILL, to_prefill, to_decode)))
    return least, found


def _least(pairs: Pairs, workloads: int, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """(π, p, d, number): p and d by exchange of a workload and class, number: of each pair's exchange of its workload."""
    classes = pairs.load.shape[1]
    with np.errstate(invalid="ignore"):
        whole = np.where(np.isinf(pairs.load), np.inf, unit[:, None] * pairs.load)
    least = np.full((workloads, classes), np.inf)
    alone = np.where((pairs.role == AGGREGATED)[:, None], whole, np.inf) if pairs.has_exchanges else whole
    edges = np.searchsorted(pairs.workload, np.arange(workloads + 1))
    for w, (start, end) in enumerate(itertools.pairwise(edges.tolist())):
        if end > start:
            least[w] = alone[start:end].min(axis=0)
    if not pairs.has_exchanges:
        return least, least, least, pairs.workload
    place = pairs.workload * (2 + pairs.exchange.max(initial=0)) + pairs.exchange - NO_EXCHANGE
    places, number = np.unique(place, return_inverse=True)
    sides = []
    for side in (PREFILL, DECODE):
        cheapest = np.full((len(places), classes), np.inf)
        np.minimum.at(cheapest, number[pairs.role == side], whole[pairs.role == side])
        sides.append(cheapest)
    of_workload = np.zeros(len(places), dtype=np.int64)
    of_workload[number] = pairs.workload
    np.minimum.at(least, of_workload, sides[0] + sides[1])
    return least, sides[0], sides[1], number
