"""Constraints that keep a workload to few places of a kind."""

import numpy as np
import pulp

from solver.fleet.groups.offer_groups import NO_EXCHANGE
from solver.fleet.groups.places import limited_kinds, place_of_pairs
from solver.fleet.model.programme import FleetProgramme, Terms
from solver.fleet.model.served import routed_classes, served
from solver.fleet.reduce import workload_ranges
from solver.hardware import PlaceKind


def add_places(model: FleetProgramme) -> None:
    """Replicas of w are in places marked as its own, and those are few:  x_i ≤ X_i v_ws for i in s,  Σ_s v_ws ≤ K_w.

    Where K_w is 1, the place serves everything, which no mixture of places does in part:  Σ_{i in s} served by i ≥ v_ws,
    Σ_s v_ws = 1. That row cuts off no plan and gives the relaxation the bound of the best single place.
    """
    problem, pairs = model.reduced.problem, model.reduced.pairs
    for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
        for kind, most in limited_kinds(problem, w).items():
            names, place = place_of_pairs(problem, model.reduced.groups, pairs.group[start:end], kind)
            present = np.unique(place).tolist()
            if len(present) <= most:
                continue
            chosen: Terms = {}
            for s in present:
                own = model.programme.add_variable(f"v_{w}_{kind}_{s}", 0, 1, cat="Integer")
                model.own_places[w, kind, names[s]] = own
                chosen[own] = 1.0
                rows = (np.flatnonzero(place == s) + start).tolist()
                for i in rows:
                    model.at_most(
                        {model.replicas[i]: 1.0, own: -float(model.replicas_bound[i])}, 0.0, f"place_{kind}_{i}"
                    )
                if most == 1:
                    _serves_all(model, w, rows, own, f"{w}_{kind}_{s}")
            if most == 1 and any(problem.demands[w].requests_per_s):
                model.equal(chosen, 1.0, f"places_{w}_{kind}")
            else:
                model.at_most(chosen, float(most), f"places_{w}_{kind}")


def _serves_all(model: FleetProgramme, w: int, rows: list[int], own: pulp.LpVariable, name: str) -> None:
    if model.multiple_of(w) is not None:
        return
    exchanges = {int(s) for s in model.reduced.pairs.exchange[rows] if s != NO_EXCHANGE}
    here = set(rows)
    if any(not here.issuperset(side) for s in exchanges for side in model.exchanges.get((w, s), ())):
        return  # what an exchange serves is no place's alone
    for k in routed_classes(model, w):
        terms = served(model, w, k, rows)
        terms[own] = -1.0
        model.at_least(terms, 0.0, f"all_in_{name}_{k}")


def places_of(model: FleetProgramme, values: dict[pulp.LpVariable, float]) -> dict[pulp.LpVariable, float]:
    """v_ws at whole numbers of replicas."""
    problem, pairs = model.reduced.problem, model.reduced.pairs
    used: set[tuple[int, PlaceKind, str]] = set()
    for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
        for kind in limited_kinds(problem, w):
            names, place = place_of_pairs(problem, model.reduced.groups, pairs.group[start:end], kind)
            used |= {(w, kind, names[place[i - start]]) for i in range(start, end) if values[model.replicas[i]]}
    return {variable: float(key in used) for key, variable in model.own_places.items()}
