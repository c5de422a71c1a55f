"""What replicas serve of a class, as terms of a row: those that do both by themselves, the others exchange by exchange."""

from collections.abc import Iterable, Mapping

import pulp

from solver.fleet.deployments import AGGREGATED
from solver.fleet.model.programme import FleetProgramme, Routing, Terms


def routed_classes(model: FleetProgramme, w: int) -> list[int]:
    """Traffic classes of which there is any."""
    return [k for k, rate in enumerate(model.reduced.problem.demands[w].requests_per_s) if rate > 0]


def served(model: FleetProgramme, w: int, k: int, rows: Iterable[int], routing: Routing | None = None) -> Terms:
    """What these pairs serve of class k, in units of its demand; exchanges count where a side of theirs is among the pairs.

        Σ_{aggregated} y_ik + Σ_s f_sk;     where w has one class, replicas serve what they can:  Σ x_i / load_ik + Σ_s f_sk

    routing: None is that of normal operation.
    """
    pairs, routing = model.reduced.pairs, model.routing if routing is None else routing
    rows = list(rows)
    terms = taken(model, w, k, (i for i in rows if pairs.role[i] == AGGREGATED), routing.shares)
    for s in sorted({int(pairs.exchange[i]) for i in rows if pairs.role[i] != AGGREGATED}):
        if (w, s, k) in routing.flows:
            terms[routing.flows[w, s, k]] = 1.0
    return terms


def taken(
    model: FleetProgramme, w: int, k: int, rows: Iterable[int], shares: Mapping[tuple[int, int], pulp.LpVariable]
) -> Terms:
    """Σ y_ik over these pairs; where w has one class, what their replicas can take: Σ x_i / load_ik."""
    if len(routed_classes(model, w)) > 1:
        return {shares[i, k]: 1.0 for i in rows if (i, k) in shares}
    load = model.reduced.pairs.load
    return {model.replicas[i]: 1.0 / float(load[i, k]) for i in rows if 0 < load[i, k] < float("inf")}
