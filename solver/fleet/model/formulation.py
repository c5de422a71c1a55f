"""The mixed-integer programme, one function a constraint.

Sets: i pairs (deployment, group[, offer]), o offers, p groups, k classes of workload w. A time index, roles or
commitments would add a subscript to the variables and a term to a row; no function here assumes a single period.
Losses to be survived add a set f of lost groups: what a pair serves after a loss is its y_ik^f, its replicas stay x_i.
Variables: x_i replicas and n_o nodes (integer), y_ik share of class k (of θ) that pair i serves (continuous),
u_p group in use (binary, only with spare nodes), f_pa arc flows (integer, only where sizes do not divide each other),
d_ps devices of group p split into instances of profile s (integer, only where replicas run on such instances), v_ws place s
used by workload w (binary, only where it may use few).
"""

import math
from collections.abc import Mapping

import numpy as np
import pulp

from solver.fleet.groups.required import meeting
from solver.fleet.model.packing import arcs, chain_rows, is_chain
from solver.fleet.model.places import add_places
from solver.fleet.model.programme import FleetProgramme, Terms
from solver.fleet.model.survival import add_survival
from solver.fleet.problem import WHOLE
from solver.fleet.reduce import ReducedProblem, workload_ranges
from solver.units import kg_per_hour


def build_model(reduced: ReducedProblem) -> FleetProgramme:
    """All variables, constraints and the objective; names are positions, so they never collide."""
    sense = pulp.LpMaximize if reduced.problem.objective == "throughput" else pulp.LpMinimize
    model = FleetProgramme(pulp.LpProblem("fleet", sense), reduced)
    _add_variables(model)
    add_objective(model)
    add_demand(model)
    add_capacity(model)
    add_minimum_replicas(model)
    add_required(model)
    add_split_devices(model)
    add_packing(model)
    add_whole_node_replicas(model)
    add_group_availability(model)
    add_spare_nodes(model)
    add_survival(model)
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
        model.shares[i, k] = add(f"y_{i}_{k}", 0, None)
    for p, s in sorted(set(zip(pairs.group.tolist(), pairs.split.tolist(), strict=True))):
        if s != WHOLE:
            model.split_devices[p, s] = add(f"d_{p}_{s}", 0, most[p] * groups[p].devices, cat="Integer")
    if reduced.problem.objective == "throughput":
        model.multiple = add("theta", 0, reduced.problem.most_multiple)
    if reduced.problem.limits.spare_nodes:
        for p, rows in enumerate(model.group_rows):
            for offer in sorted({-1, *(int(pairs.offer[i]) for i in rows)}):
                model.in_use[p, offer] = add(f"u_{p}_{offer + 1}", 0, 1, cat="Integer")


def add_objective(model: FleetProgramme) -> None:
    """Cost: min Σ c_o n_o.  Power: min Σ W_o n_o + Σ P_i x_i, for carbon each times γ of its place.  Throughput: max θ."""
    objective = model.reduced.problem.objective
    if model.multiple is not None:
        terms: Terms = {model.multiple: 1.0}
    elif objective == "cost":
        terms = no_idle_gifts(cost_terms(model))
    elif objective == "power":
        terms = power_terms(model)
    else:
        terms = carbon_terms(model)
    model.programme.setObjective(pulp.LpAffineExpression(terms))


LEAST_USD = 1e-5
"""An hour of a node that costs nothing, as the solver sees it: above its tolerance, far below a price."""


def no_idle_gifts(terms: Terms) -> Terms:
    """The same where nodes that cost nothing cost next to nothing, so that none stands idle in a plan."""
    return {variable: price or LEAST_USD for variable, price in terms.items()}


def cost_terms(model: FleetProgramme) -> Terms:
    """Σ c_o n_o in USD per hour."""
    offers = model.reduced.problem.offers
    return {variable: offers[o].usd_per_hour for o, variable in model.nodes.items()}


def power_terms(model: FleetProgramme) -> Terms:
    """Σ W_o n_o + Σ P_i x_i in watts."""
    offers = model.reduced.problem.offers
    terms: Terms = {variable: offers[o].host_power_w for o, variable in model.nodes.items()}
    terms.update(zip(model.replicas, model.reduced.pairs.power_w.tolist(), strict=True))
    return terms


def carbon_terms(model: FleetProgramme) -> Terms:
    """Σ γ_o W_o n_o + Σ γ_p P_i x_i in kg CO2e per hour, γ of the place in kg per Wh."""
    offers = model.reduced.problem.offers
    terms: Terms = {
        variable: kg_per_hour(offers[o].host_power_w, offers[o].kg_co2e_per_kwh) for o, variable in model.nodes.items()
    }
    terms.update(zip(model.replicas, model.reduced.pairs.takes("carbon")[1].tolist(), strict=True))
    return terms


def add_demand(model: FleetProgramme) -> None:
    """All of every class is served:  Σ_i y_ik = 1  (= θ for throughput).

    A workload of one class needs no shares: its replicas serve  Σ_i ρ μ_i / λ · x_i ≥ 1  (≥ θ).
    """
    load = model.reduced.pairs.load
    for w, (start, end) in enumerate(workload_ranges(model.reduced.problem, model.reduced.pairs)):
        wanted = [k for k, rate in enumerate(model.reduced.problem.demands[w].requests_per_s) if rate > 0]
        for k in wanted:
            if len(wanted) > 1:
                terms: Terms = {model.shares[i, k]: 1.0 for i in range(start, end) if (i, k) in model.shares}
            else:
                terms = {model.replicas[i]: 1.0 / float(load[i, k]) for i in range(start, end) if load[i, k] < np.inf}
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
    for (i, k), share in model.shares.items():
        work[i][share] = float(load[i, k])
    for i, terms in enumerate(work):
        if terms:
            terms[model.replicas[i]] = -1.0
            model.at_most(terms, 0.0, f"capacity_{i}")


def add_minimum_replicas(model: FleetProgramme) -> None:
    """Σ_i x_i ≥ minimum, for each workload."""
    problem = model.reduced.problem
    for w, (start, end) in enumerate(workload_ranges(problem, model.reduced.pairs)):
        if problem.demands[w].min_replicas and end > start:
            terms: Terms = dict.fromkeys(model.replicas[start:end], 1.0)
            model.at_least(terms, problem.demands[w].min_replicas, f"replicas_{w}")


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


def add_packing(model: FleetProgramme) -> None:
    """Replicas of one node fit the nodes of their group that no spanning replica or spare takes.

    Free nodes N_p = Σ_o n_o − Σ_spanning m_i x_i − k u_p. Where sizes divide each other (see ``chain_rows``):

        Σ_{i: g_i ≥ s} g_i x_i ≤ s ⌊G/s⌋ · N_p

    otherwise an integer flow f from device 0 to G of value N_p, whose arcs of length s number at least Σ_{g_i = s} x_i.
    Instances are not in these sums; the devices d_ps split for them are, each of size one.
    """
    pairs = model.reduced.pairs
    for p, group in enumerate(model.reduced.groups):
        inside = [i for i in model.group_rows[p] if pairs.slots[i]]
        if not inside and not any(pairs.offer[i] >= 0 for i in model.group_rows[p]):
            continue
        items = _packed(model, p, inside)
        sizes = set(items.values())
        for number, taken in enumerate(_taken_whole(model, p)):
            suffix = f"_{number}" if number else ""
            if not is_chain(sizes):
                _add_arc_flow(model, p, items, taken, suffix)
                continue
            for smallest, usable in chain_rows(sizes or {group.devices}, group.devices):
                terms: Terms = {item: float(size) for item, size in items.items() if size >= smallest}
                terms.update({variable: usable * count for variable, count in taken.items()})
                model.at_most(terms, 0.0, f"packing_{p}_{smallest}{suffix}")


def _packed(model: FleetProgramme, p: int, inside: list[int]) -> dict[pulp.LpVariable, int]:
    """What takes whole devices of a node, with how many: replicas, and devices that are split."""
    pairs = model.reduced.pairs
    items = {model.replicas[i]: int(pairs.devices[i]) for i in inside if pairs.split[i] == WHOLE}
    items.update({variable: 1 for (group, _), variable in model.split_devices.items() if group == p})
    return items


def _taken_whole(model: FleetProgramme, p: int) -> list[Terms]:
    """−N_p: nodes taken whole less all nodes of the group.

    Twice where several offers keep spares of their own (k u_o each, for replicas over nodes): those together may be
    more than the group's k u_p.
    """
    pairs, spare = model.reduced.pairs, float(model.reduced.problem.limits.spare_nodes)
    terms: Terms = {model.nodes[offer]: -1.0 for offer in model.reduced.groups[p].offers}
    for i in model.group_rows[p]:
        if not pairs.slots[i]:
            terms[model.replicas[i]] = float(pairs.nodes_per_replica[i])
    if not spare:
        return [terms]
    of_offers = [user for (group, offer), user in model.in_use.items() if group == p and offer >= 0]
    found = [{**terms, model.in_use[p, -1]: spare}]
    if len(of_offers) > 1:
        found.append({**terms, **dict.fromkeys(of_offers, spare)})
    return found


def _add_arc_flow(model: FleetProgramme, p: int, items: dict[pulp.LpVariable, int], taken: Terms, suffix: str) -> None:
    sizes, devices = set(items.values()), model.reduced.groups[p].devices
    if p in model.arc_flow:  # a further limit on the same flow's value
        starting: Terms = {variable: 1.0 for arc, variable in model.arc_flow[p].items() if arc.start == 0}
        model.at_most({**starting, **taken}, 0.0, f"flow_{p}_0{suffix}")
        return
    bound = int(model.reduced.max_nodes[p])
    flow = {
        arc: model.programme.add_variable(f"f_{p}_{arc.start}_{arc.size}", 0, bound * devices, cat="Integer")
        for arc in arcs(sizes, devices)
    }
    model.arc_flow[p] = flow
    leaving: Terms = {variable: 1.0 for arc, variable in flow.items() if arc.start == 0}
    model.at_most({**leaving, **taken}, 0.0, f"flow_{p}_0")
    for position in sorted({arc.end for arc in flow} - {devices}):
        balance: Terms = {variable: 1.0 for arc, variable in flow.items() if arc.start == position}
        balance.update({variable: -1.0 for arc, variable in flow.items() if arc.end == position})
        model.equal(balance, 0.0, f"flow_{p}_{position}")
    for size in sorted(sizes):
        terms: Terms = {item: 1.0 for item, own in items.items() if own == size}
        terms.update({variable: -1.0 for arc, variable in flow.items() if arc.size == size})
        model.at_most(terms, 0.0, f"slots_{p}_{size}")


def add_whole_node_replicas(model: FleetProgramme) -> None:
    """A replica over m nodes has all of them in one offer:  Σ_{i in o} m_i x_i + k u_o ≤ n_o."""
    pairs = model.reduced.pairs
    for p, rows in enumerate(model.group_rows):
        for offer in sorted({int(pairs.offer[i]) for i in rows if pairs.offer[i] >= 0}):
            terms: Terms = {
                model.replicas[i]: float(pairs.nodes_per_replica[i]) for i in rows if pairs.offer[i] == offer
            }
            terms[model.nodes[offer]] = -1.0
            if (p, offer) in model.in_use:
                terms[model.in_use[p, offer]] = float(model.reduced.problem.limits.spare_nodes)
            model.at_most(terms, 0.0, f"whole_{offer}")


def add_group_availability(model: FleetProgramme) -> None:
    """Σ_{o in p} n_o ≤ N_p, the most nodes of the group that a best plan can need."""
    for p, group in enumerate(model.reduced.groups):
        if len(group.offers) > 1:
            model.at_most(
                {model.nodes[o]: 1.0 for o in group.offers}, float(model.reduced.max_nodes[p]), f"available_{p}"
            )


def add_spare_nodes(model: FleetProgramme) -> None:
    """Replicas only in a group marked in use:  x_i ≤ X_i u_p,  u_o ≤ u_p.

    The k spares themselves are a term of the packing rows: any k nodes of the fleet may fail and, were they all in
    one group, that group's spares take their replicas unchanged. Conservative against re-routing to other groups.
    """
    if not model.in_use:
        return
    pairs = model.reduced.pairs
    for p, rows in enumerate(model.group_rows):
        for i in rows:
            user = model.in_use[p, int(pairs.offer[i])]
            model.at_most({model.replicas[i]: 1.0, user: -float(model.replicas_bound[i])}, 0.0, f"used_{i}")
    for (p, offer), user in model.in_use.items():
        if offer >= 0:
            model.at_most({user: 1.0, model.in_use[p, -1]: -1.0}, 0.0, f"used_group_{p}_{offer}")


def add_quotas(model: FleetProgramme) -> None:
    """Σ_{o in q} G_o n_o ≤ Q_q devices."""
    offers = model.reduced.problem.offers
    for q, quota in enumerate(model.reduced.problem.limits.quotas):
        terms: Terms = {
            variable: float(offers[o].devices) for o, variable in model.nodes.items() if offers[o].id in quota.offer_ids
        }
        if terms:
            model.at_most(terms, float(quota.max_devices), f"quota_{q}")


def add_spot_share(model: FleetProgramme) -> None:
    """Interruptible devices are at most a share of all:  Σ_{o spot} G_o n_o ≤ σ Σ_o G_o n_o."""
    share = model.reduced.problem.limits.max_spot_fraction
    offers = model.reduced.problem.offers
    if share is None or not any(offers[o].interruptible for o in model.nodes):
        return
    terms: Terms = {
        variable: offers[o].devices * ((1.0 if offers[o].interruptible else 0.0) - share)
        for o, variable in model.nodes.items()
    }
    model.at_most(terms, 0.0, "spot_share")


def add_budget(model: FleetProgramme) -> None:
    """Σ c_o n_o ≤ B."""
    budget = model.reduced.problem.limits.budget_usd_per_hour
    if budget is not None:
        model.at_most(cost_terms(model), budget, "budget")


def add_power_limit(model: FleetProgramme) -> None:
    """Σ W_o n_o + Σ P_i x_i ≤ P."""
    limit = model.reduced.problem.limits.power_w
    if limit is not None:
        model.at_most(power_terms(model), limit, "power")


def add_carbon_limit(model: FleetProgramme) -> None:
    """Σ γ_o W_o n_o + Σ γ_p P_i x_i ≤ E."""
    limit = model.reduced.problem.limits.carbon_kg_per_hour
    if limit is not None:
        model.at_most(carbon_terms(model), limit, "carbon")
