"""From whole numbers (nodes of offers, replicas of deployments in groups) to a plan: who runs on which node, and what
traffic goes where. Everything here is arithmetic and deterministic; the same numbers give the same plan."""

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from solver.fleet.alike_nodes import AlikeNodes, count_alike, fill_paths, first_fit_decreasing
from solver.fleet.deployments import ROLES, FloatArray
from solver.fleet.groups.losses import worst_losses
from solver.fleet.groups.offer_groups import OfferGroup, loads
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.taken import PlacementKey
from solver.fleet.plan import NodeGroup, Plan, Route
from solver.fleet.problem import FleetProblem
from solver.fleet.routing import Placed, route
from solver.fleet.splits import divide, fills_items, put_on_instances, splits_of

Slots = Mapping[int, Sequence[tuple[tuple[int, ...], int]]]
"""Sizes on a node, and how many nodes, by group (its first offer), where the solver had to choose how nodes are cut up."""

LOAD_TOLERANCE = 1e-6
"""Relative excess of load over capacity that is the solvers' feasibility tolerance."""


class PlanBrokenError(Exception):
    """The whole numbers do not make a plan: the solver's tolerance hid a violated constraint."""


def realise(problem: FleetProblem, groups: Sequence[OfferGroup], draft: Draft, slots: Slots) -> tuple[Plan, float]:
    """(plan, θ). θ is 1 unless throughput is the objective. Raises PlanBrokenError."""
    load = loads(problem)
    replicas = _without_surplus(problem, load, draft.replicas)
    node_groups = _place(problem, groups, draft.nodes, replicas, slots)
    return _route(problem, load, node_groups)


def _place(
    problem: FleetProblem,
    groups: Sequence[OfferGroup],
    nodes: Mapping[int, int],
    replicas: Mapping[PlacementKey, int],
    slots: Slots,
) -> tuple[NodeGroup, ...]:
    table = problem.deployments
    row_of_key = {int(table.key[row]): row for row, _, _ in replicas}
    group_of_anchor = {group.offers[0]: group for group in groups}
    left = dict(nodes)
    spare = problem.limits.spare_nodes
    reserved = {offer: spare for _, _, offer in replicas if offer >= 0 and spare}
    inside: dict[int, dict[int, int]] = {}
    node_groups: Counter[tuple[int, int, tuple[tuple[int, int], ...]]] = Counter()
    for (row, anchor, offer), count in sorted(replicas.items()):
        if offer < 0:
            inside.setdefault(anchor, {})[row] = count
            continue
        spanned = int(table.nodes_per_replica[row])
        left[offer] = left.get(offer, 0) - count * spanned
        node_groups[offer, spanned, ((int(table.key[row]), 1),)] += count
    if any(count < 0 for count in left.values()):
        raise PlanBrokenError("replicas span more nodes than an offer gives")
    fills = _that_fill(problem, [row for row, _, _ in replicas])
    for anchor, wanted in sorted(inside.items()):
        group = group_of_anchor[anchor]
        wanted, instances = divide(table, wanted)
        sizes = {row: int(table.devices_per_replica[row]) if row >= 0 else 1 for row in wanted}
        room = {offer: left.get(offer, 0) - reserved.get(offer, 0) for offer in group.offers}
        free = min(sum(room.values()), sum(left.get(offer, 0) for offer in group.offers) - spare)
        packed = first_fit_decreasing(wanted, sizes, group.devices)
        if count_alike(packed) > free and anchor in slots:
            packed = fill_paths(wanted, sizes, slots[anchor])
        if count_alike(packed) > free:
            raise PlanBrokenError(f"{count_alike(packed)} nodes of {group.node_type_id} are needed, {free} taken")
        more = fills_items(wanted, instances, fills)
        packed = [AlikeNodes(_filled(one.content, sizes, group.devices, more), one.nodes) for one in packed]
        packed = put_on_instances(table, packed, instances, fills)
        contents = sorted(
            (tuple(sorted((int(table.key[row]), count) for row, count in one.content.items())), one.nodes)
            for one in packed
        )
        places = [offer for offer in reversed(group.offers) if room[offer] > 0]
        for content, waiting in contents:
            while waiting and places:
                offer = places[-1]
                here = min(waiting, room[offer])
                node_groups[offer, 1, content] += here
                left[offer] -= here
                room[offer] -= here
                waiting -= here
                if not room[offer]:
                    places.pop()
    for offer, count in left.items():
        if count:
            node_groups[offer, 1, ()] += count
    return tuple(
        NodeGroup(problem.offers[offer].id, units, size, content, splits_of(table, row_of_key, content))
        for (offer, size, content), units in sorted(node_groups.items())
        if units
    )


def _that_fill(problem: FleetProblem, rows: Iterable[int]) -> frozenset[int]:
    """Deployments of which devices that are paid for run more than what is needed."""
    if problem.matters("power") or problem.matters("carbon"):
        return frozenset()
    demands, workload = problem.demands, problem.deployments.workload
    of = {row: demands[int(workload[row])] for row in rows}
    return frozenset(row for row, demand in of.items() if demand.fills_nodes and demand.most_copies is None)


def _filled(node: Mapping[int, int], sizes: Mapping[int, int], devices: int, items: Container[int]) -> dict[int, int]:
    """What a node runs where devices that are paid for run one more replica of what is there already, among these items."""
    filled = dict(node)
    free = devices - sum(sizes[row] * count for row, count in node.items())
    for row in sorted((r for r in node if r in items), key=lambda r: (-sizes[r], r)):
        more = free // sizes[row]
        filled[row] += more
        free -= more * sizes[row]
    return filled


def _without_surplus(
    problem: FleetProblem, load: FloatArray, replicas: Mapping[PlacementKey, int]
) -> dict[PlacementKey, int]:
    """Leave out deployments the demand does not need; an optimum may contain them where nodes are paid for anyway."""
    kept = {key: count for key, count in replicas.items() if count > 0}
    if problem.objective == "throughput" or problem.required:
        return kept
    table, rows_of = problem.deployments, dict[int, list[int]]()
    devices_of = table.devices_per_replica / table.instances
    for row in sorted({key[0] for key in kept}):
        rows_of.setdefault(int(table.workload[row]), []).append(row)
    for w, rows in rows_of.items():
        if len(rows) < 2:
            continue
        count = {row: sum(c for key, c in kept.items() if key[0] == row) for row in rows}
        for row in sorted(rows, key=lambda r: (count[r] * devices_of[r], r)):
            others = [r for r in rows if r != row]
            if not others or not _has_replicas(problem, w, {r: count[r] for r in others}):
                continue
            fewer = {key: c for key, c in kept.items() if key[0] != row}
            mine = _on_offers({key: c for key, c in fewer.items() if key[0] in others})
            if route(problem, load, mine)[0] <= 1.0 and _survives(problem, load, _on_offers(fewer)):
                rows, kept = others, fewer
    return kept


def _on_offers(replicas: Mapping[PlacementKey, int]) -> dict[Placed, int]:
    """Replicas by row and an offer: their own, or the first of their group, which is lost and reached as all of it is."""
    found: Counter[Placed] = Counter()
    for (row, anchor, offer), count in replicas.items():
        found[row, offer if offer >= 0 else anchor] += count
    return dict(found)


def _has_replicas(problem: FleetProblem, w: int, count: Mapping[int, int]) -> bool:
    """Do enough replicas of a workload take part in each phase?"""
    role, least = problem.deployments.roles, problem.demands[w].min_replicas
    both, prefill, decode = (sum(n for row, n in count.items() if role[row] == side) for side in range(len(ROLES)))
    return both + prefill >= least and both + decode >= least


def _survives(problem: FleetProblem, load: FloatArray, replicas: Mapping[Placed, int]) -> bool:
    limit = problem.limits.fault_tolerance.utilisation_limit_fraction
    return all(loss.utilisation_fraction <= limit for loss in worst_losses(problem, load, replicas))


def _route(problem: FleetProblem, load: FloatArray, node_groups: tuple[NodeGroup, ...]) -> tuple[Plan, float]:
    table = problem.deployments
    placed = Plan(node_groups, ()).replicas()
    row_of_key = {int(table.key[row]): row for row in _rows_of_keys(problem, {key for key, _ in placed})}
    position = {offer.id: o for o, offer in enumerate(problem.offers)}
    on_offers = {(row_of_key[key], position[offer_id]): count for (key, offer_id), count in placed.items()}
    after_loss = _busiest_after_loss(problem, load, on_offers)
    routed: dict[Placed, FloatArray] = {}
    multiple = math.inf if problem.most_multiple is None else problem.most_multiple
    for w, demand in enumerate(problem.demands):
        mine = {one: count for one, count in on_offers.items() if int(table.workload[one[0]]) == w}
        if not mine:
            if any(demand.requests_per_s):
                raise PlanBrokenError(f"workload {w} has no replica")
            continue
        busiest, shares = route(problem, load, mine)
        busiest = max(busiest, after_loss.get(w, 0.0))
        if problem.objective == "throughput" and not demand.is_fixed:
            multiple = min(multiple, math.inf if busiest == 0 else 1.0 / busiest)
        elif busiest > 1.0 + LOAD_TOLERANCE:
            raise PlanBrokenError(f"the busiest deployment carries {busiest:.9g} times what it may")
        routed |= shares
    if problem.objective != "throughput":
        multiple = 1.0
    elif math.isinf(multiple):
        multiple = 0.0
    served_of = problem.multiples(multiple)
    routes = []
    for (row, offer), part in routed.items():
        w = int(table.workload[row])
        for k, rate in enumerate(problem.demands[w].requests_per_s):
            served = rate * served_of[w] * float(part[k])
            if served > 0:
                routes.append(Route(int(table.key[row]), problem.offers[offer].id, w, k, served))
    return Plan(node_groups, tuple(routes)), multiple


def _busiest_after_loss(problem: FleetProblem, load: FloatArray, replicas: Mapping[Placed, int]) -> dict[int, float]:
    """By workload, load of the busiest replicas after the worst loss to be survived, of what they may carry then."""
    busiest: dict[int, float] = {}
    if not problem.limits.fault_tolerance.losses:
        return busiest
    limit = problem.limits.fault_tolerance.utilisation_limit_fraction
    for loss in worst_losses(problem, load, replicas):
        busiest[loss.workload] = max(busiest.get(loss.workload, 0.0), loss.utilisation_fraction / limit)
    return busiest


def _rows_of_keys(problem: FleetProblem, keys: set[int]) -> list[int]:
    rows: list[int] = np.flatnonzero(np.isin(problem.deployments.key, sorted(keys))).tolist()
    return rows
