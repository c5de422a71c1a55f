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


def add_exchanges(model: FleetProgramme, routing: Routing, kept: set[int] | None = None, name: str = "") -> None:
    """What an exchange serves, its prefill replicas take in and its decode replicas answer:

        f_sk ≤ Σ_{prefill in s} y_ik,   f_sk ≤ Σ_{decode in s} y_ik         (with one class Σ x_i / load_ik for Σ y_ik)

    kept: pairs that are left after a loss; None is all.
    """
    for (w, s, k), flow in routing.flows.items():
        for side, members in zip(("prefill", "decode"), model.exchanges[w, s], strict=True):
            rows = [i for i in members if kept is None or i in kept]
            terms = {variable: -part for variable, part in taken(model, w, k, rows, routing.shares).items()}
            terms[flow] = 1.0
            model.at_most(terms, 0.0, f"{side}{name}_{w}_{s}_{k}")
