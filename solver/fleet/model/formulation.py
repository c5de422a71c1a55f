"""The mixed-integer programme, one function a constraint.

Sets: i pairs (deployment, group[, offer]), o offers, p groups, k classes of workload w. A time index, roles or
commitments would add a subscript to the variables and a term to a row; no function here assumes a single period.
Losses to be survived add a set f of lost groups: what a pair serves after a loss is its y_ik^f, its replicas stay x_i.
Variables: x_i replicas and n_o nodes (integer), y_ik share of class k (of θ) that pair i serves (continuous),
u_p group in use (binary, only with spare nodes), f_pa arc flows (integer, only where sizes do not divide each other),
d_ps devices of group p split into instances of profile s (integer, only where replicas run on such instances), v_ws place s
used by workload w (binary, only where it may use few), f_sk share of class k that exchange s serves by prefill and decode replicas
(continuous, only where there are any).
"""

import math
from collections.abc import Mapping

import numpy as np
import pulp

from solver.fleet.deployments import AGGREGATED, DECODE, ROLES, WHOLE
from solver.fleet.groups.required import meeting
from solver.fleet.model.fault_tolerance import add_fault_tolerance, add_spare_nodes
from solver.fleet.model.limits import (
    add_budget,
    add_carbon_limit,
    add_group_availability,
    add_power_limit,
    add_quotas,
    add_spot_share,
)
from solver.fleet.model.objective import add_objective
from solver.fleet.model.places import add_places
from solver.fleet.model.prefill_decode import add_exchanges
from solver.fleet.model.programme import FleetProgramme, Terms
from solver.fleet.model.served import routed_classes, served
from solver.fleet.model.whole_nodes import add_packing, add_whole_node_replicas
from solver.fleet.reduce import ReducedProblem, workload_ranges


def build_model(reduced: ReducedProblem) -> FleetProgramme:
    """All variables, constraints and the objective; names are positions, so they never collide."""
    sense = pulp.LpMaximize if reduced.problem.objective == "throughput" else pulp.LpMinimize
    model = FleetProgramme(pulp.LpProblem("fleet", sense), reduced)
    _add_variables(model)
    add_objective(model)
    add_demand(model)
    add_exchanges(model, model.routing)
    add_capacity(model)
    add_minimum_replicas(model)
    add_most_copies(model)
    add_required(model)
    add_split_devices(model)
    add_packing(model)
    add_whole_node_replicas(model)
    add_group_availability(model)
    add_spare_nodes(model)
    add_fault_tolerance(model)
    add_places(model)
    add_quotas(model)
    add_spot_share(model)
    add_budget(model)
    add_power_limit(model)
    add_carbon_limit(model)
    return model


def _add_variables(model: FleetProgramme) -> None:
    reduced = model.reduced
    pairs, groups, add = reduced.pairs, reduced.groups, model.programme.add_variable
    most = reduced.max_nodes.tolist()
    model.group_rows = [[] for _ in groups]
    for i, (group, slots, spanned) in enumerate(
        zip(pairs.group.tolist(), pairs.slots.tolist(), pairs.nodes_per_replica.tolist(), strict=True)
    ):
        bound = most[group] * slots if slots else most[group] // spanned
        model.replicas.append(add(f"x_{i}", 0, bound, cat="Integer"))
        model.replicas_bound.append(bound)
        model.group_rows[group].append(i)
    for p, group_ in enumerate(groups):
        for offer in group_.offers:
            room = reduced.problem.offers[offer].max_nodes
            bound = most[p] if room is None else min(room, most[p])
            model.nodes[offer] = add(f"n_{offer}", 0, bound, cat="Integer")
    classes = np.array([sum(rate > 0 for rate in demand.requests_per_s) for demand in reduced.problem.demands])
    routed = (np.isfinite(pairs.load) & (pairs.load > 0)) & (classes[pairs.workload] > 1)[:, None]
    for i, k in np.argwhere(routed).tolist():
        model.routing.shares[i, k] = add(f"y_{i}_{k}", 0, None)
    _add_flows(model)
    for p, s in sorted(set(zip(pairs.group.tolist(), pairs.split.tolist(), strict=True))):
        if s != WHOLE:
            model.split_devices[p, s] = add(f"d_{p}_{s}", 0, most[p] * groups[p].devices, cat="Integer")
    if reduced.problem.objective == "throughput":
        model.multiple = add("theta", 0, reduced.problem.most_multiple)
    if reduced.problem.limits.spare_nodes:
        for p, rows in enumerate(model.group_rows):
            for offer in sorted({-1, *(int(pairs.offer[i]) for i in rows)}):
                model.in_use[p, offer] = add(f"u_{p}_{offer + 1}", 0, 1, cat="Integer")


def _add_flows(model: FleetProgramme) -> None:
    """f_sk for every exchange that has both sides."""
    pairs = model.reduced.pairs
    sides: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for i in np.flatnonzero(pairs.role != AGGREGATED).tolist():
        of = sides.setdefault((int(pairs.workload[i]), int(pairs.exchange[i])), ([], []))
        of[int(pairs.role[i] == DECODE)].append(i)
    for (w, s), (prefill, decode) in sorted(sides.items()):
        if prefill and decode:
            model.exchanges[w, s] = prefill, decode
            for k in routed_classes(model, w):
                model.routing.flows[w, s, k] = model.programme.add_variable(f"e_{w}_{s}_{k}", 0, None)


def add_demand(model: FleetProgramme) -> None:
    """All of every class is served:  Σ_{aggregated} y_ik + Σ_s f_sk = 1  (= θ for throughput).

    A workload of one class needs no shares: its replicas serve  Σ_{aggregated} ρ μ_i / λ · x_i + Σ_s f_s ≥ 1  (≥ θ).
    """
    for w, (start, end) in enumerate(workload_ranges(model.reduced.problem, model.reduced.pairs)):
        wanted = routed_classes(model, w)
        for k in wanted:
            terms = served(model, w, k, range(start, end))
            multiple = model.multiple_of(w)
            if multiple is not None:
                terms[multiple] = -1.0
            rhs = 0.0 if multiple is not None else 1.0
            state = model.equal if len(wanted) > 1 else model.at_least
            state(terms, rhs, f"demand_{w}_{k}")


def add_capacity(model: FleetProgramme) -> None:
    """Work routed to a pair fits its replicas:  Σ_k λ_k / (ρ μ_ik) · y_ik ≤ x_i."""
    load = model.reduced.pairs.load
    work: list[Terms] = [{} for _ in model.replicas]
    for (i, k), share in model.routing.shares.items():
        work[i][share] = float(load[i, k])
    for i, terms in enumerate(work):
        if terms:
            terms[model.replicas[i]] = -1.0
            model.at_most(terms, 0.0, f"capacity_{i}")


def add_minimum_replicas(model: FleetProgramme) -> None:
    """Σ_i x_i ≥ minimum, for each workload; over those that take part in a phase, for each phase, where they differ."""
    problem, role = model.reduced.problem, model.reduced.pairs.role
    for w, (start, end) in enumerate(workload_ranges(problem, model.reduced.pairs)):
        if not problem.demands[w].min_replicas or end == start:
            continue
        sides = {int(side) for side in role[start:end]} - {AGGREGATED}
        for side in sorted(sides) or [AGGREGATED]:
            terms: Terms = {model.replicas[i]: 1.0 for i in range(start, end) if role[i] in (AGGREGATED, side)}
            model.at_least(terms, problem.demands[w].min_replicas, f"replicas_{w}" + f"_{ROLES[side]}" * bool(sides))


def add_most_copies(model: FleetProgramme) -> None:
    """Σ_i k_i x_i ≤ most, k_i the copies of the model in a replica, for each workload that may have so many."""
    reduced = model.reduced
    copies = reduced.problem.deployments.copies_of_model[reduced.pairs.deployment]
    for w, (start, end) in enumerate(workload_ranges(reduced.problem, reduced.pairs)):
        most = reduced.problem.demands[w].most_copies
        if most is not None and end > start:
            terms: Terms = {model.replicas[i]: float(copies[i]) for i in range(start, end)}
            model.at_most(terms, float(most), f"copies_{w}")


def add_required(model: FleetProgramme) -> None:
    """Σ_{i named} x_i ≥ 1, for each requirement."""
    reduced = model.reduced
    for r, requirement in enumerate(reduced.problem.required):
        counted = meeting(reduced.problem, reduced.groups, reduced.pairs, requirement)
        terms: Terms = {model.replicas[i]: 1.0 for i in np.flatnonzero(counted)}
        model.at_least(terms or {model.replicas[0]: 0.0}, 1.0, f"required_{r}")


def add_split_devices(model: FleetProgramme) -> None:
    """Instances fit the devices split for them, each device for one profile of K_s:  Σ_{i in p of s} x_i ≤ K_s d_ps."""
    pairs = model.reduced.pairs
    for (p, s), split_devices in model.split_devices.items():
        rows = [i for i in model.group_rows[p] if pairs.split[i] == s]
        terms: Terms = {model.replicas[i]: 1.0 for i in rows}
        terms[split_devices] = -float(pairs.instances[rows[0]])
        model.at_most(terms, 0.0, f"split_{p}_{s}")


def split_devices_of(model: FleetProgramme, values: Mapping[pulp.LpVariable, float]) -> dict[pulp.LpVariable, float]:
    """d_ps at whole numbers of replicas: as few devices as hold their instances."""
    pairs = model.reduced.pairs
    found = {}
    for (p, s), variable in model.split_devices.items():
        rows = [i for i in model.group_rows[p] if pairs.split[i] == s]
        found[variable] = float(math.ceil(sum(values[model.replicas[i]] for i in rows) / int(pairs.instances[rows[0]])))
    return found
