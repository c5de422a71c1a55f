"""Prefill and decode apart: within an exchange no more is served than either side takes."""

from solver.fleet.model.programme import FleetProgramme, Routing
from solver.fleet.model.served import taken


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
