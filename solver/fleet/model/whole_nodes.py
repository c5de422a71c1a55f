"""Replicas on whole nodes: what shares a node must fit it, and a replica larger than a node takes nodes whole."""

import pulp

from solver.fleet.deployments import WHOLE
from solver.fleet.model.packing import arcs, chain_rows, is_chain
from solver.fleet.model.programme import FleetProgramme, Terms


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
