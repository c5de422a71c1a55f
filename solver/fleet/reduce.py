"""Making the problem small without changing its answer.

Three exact steps: groups (``groups/offer_groups.py``), candidates whose use costs more than a plan already in hand
(``bound_candidates``), and deployments that another of the same workload and node type replaces at no cost
(``undominated``).
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from solver.fleet.bounds import Bounds, bound_candidates, bounds_of_resources
from solver.fleet.deployments import AGGREGATED, ANY_SITE, WHOLE, BoolArray, FloatArray, IntArray
from solver.fleet.groups.exchanges import least_by_class
from solver.fleet.groups.losses import headroom_factor, least_capacity
from solver.fleet.groups.offer_groups import OfferGroup, Pairs, demand_matrix, group_offers, pair_up
from solver.fleet.groups.required import met_by_none, named_rows
from solver.fleet.heuristic.greedy import Draft, draft_plan, draft_throughput
from solver.fleet.heuristic.known import draft_of
from solver.fleet.plan import PROVEN_GAP_FRACTION, Plan
from solver.fleet.problem import FleetProblem, Resource
from solver.units import kg_per_hour

MOST_NODES = 1_000_000
"""Integers above this cannot be told from their neighbours at the solver's tolerance of 1e-6."""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedProblem:
    """What is left to decide. max_nodes: by group. bound: of the objective. reasons: why nothing can work."""

    problem: FleetProblem
    groups: list[OfferGroup]
    pairs: Pairs
    max_nodes: IntArray
    bound: float
    draft: Draft | None
    candidates: int
    reasons: tuple[str, ...] = field(default=())


def reduce_problem(problem: FleetProblem, exact_steps: bool = True, known: Plan | None = None) -> ReducedProblem:
    """Group, prune and bound. ``exact_steps=False`` keeps every pair: the tests compare the two.

    known: a plan that serves all demand within all limits; the draft where none better is found.
    """
    groups = group_offers(problem)
    pairs = pair_up(problem, groups)
    offers_in_group = np.array([len(group.offers) for group in groups], dtype=np.int64)
    candidates = int(np.where(pairs.offer < 0, offers_in_group[pairs.group], 1).sum()) if len(pairs) else 0
    reasons = (
        _unservable(problem, pairs) or _too_few_domains(problem, groups, pairs) or met_by_none(problem, groups, pairs)
    )
    if reasons:
        return ReducedProblem(
            problem, groups, pairs, np.zeros(len(groups), np.int64), math.inf, None, candidates, reasons
        )
    bounds = bounds_of_resources(problem, groups, pairs)
    if problem.objective != "throughput":
        reasons = _beyond_limits(problem, bounds)
    bound = _most_throughput(problem, bounds) if problem.objective == "throughput" else bounds[problem.objective].lower
    if reasons or not exact_steps:
        most = most_nodes(problem, groups, pairs, None, bound)
        return ReducedProblem(problem, groups, pairs, most, bound, None, candidates, reasons)

    draft = None if problem.objective == "throughput" else draft_plan(problem, groups, pairs, thorough=False)
    if known is not None and problem.objective != "throughput":
        draft = _lesser(draft, draft_of(problem, groups, known))
    pairs = pairs.take(_worth_keeping(problem, bounds, draft))
    pairs = pairs.take(undominated(problem, pairs))
    if problem.objective == "throughput":
        draft = draft_throughput(problem, groups, pairs, bound)
    else:
        draft = _lesser(draft, draft_plan(problem, groups, pairs))
    most = np.zeros(len(groups), dtype=np.int64)
    reduced = prune(ReducedProblem(problem, groups, pairs, most, bound, draft, candidates))
    if draft is None and (
        _unservable(problem, reduced.pairs) or _too_few_domains(problem, reduced.groups, reduced.pairs)
    ):
        # Some workload's every candidate alone exceeds what the limits of the whole leave.
        return replace(reduced, reasons=(f"no plan within {_limits_of_the_whole(problem)}",))
    return reduced


def _lesser(one: Draft | None, other: Draft | None) -> Draft | None:
    """Of two plans the one that costs less, the other where they cost the same."""
    if one is None or other is None:
        return one or other
    return one if one.objective < other.objective else other


def prune(reduced: ReducedProblem) -> ReducedProblem:
    """Drop pairs, groups and offers that no plan as good as the draft can contain."""
    problem, groups, pairs = reduced.problem, reduced.groups, reduced.pairs
    pairs = pairs.take(_worth_keeping(problem, bounds_of_resources(problem, groups, pairs), reduced.draft))
    groups, pairs = drop_unused_groups(problem, groups, pairs)
    most = most_nodes(problem, groups, pairs, reduced.draft, reduced.bound)
    groups = _shorten(problem, groups, pairs, most)
    offered = np.array(sorted({-1, *(offer for group in groups for offer in group.offers)}))
    pairs = pairs.take(np.isin(pairs.offer, offered))
    return replace(reduced, groups=groups, pairs=pairs, max_nodes=most)


def most_promising(reduced: ReducedProblem, fraction: float) -> ReducedProblem:
    """The same problem with only pairs whose use costs little more than the bound; the draft's pairs stay."""
    problem, groups, pairs, draft = reduced.problem, reduced.groups, reduced.pairs, reduced.draft
    if draft is None or problem.objective == "throughput":
        return reduced
    bounds = bound_candidates(problem, groups, pairs, problem.objective)
    limit = bounds.lower + fraction * max(draft.objective - bounds.lower, 0.0)
    keep = bounds.lower + np.maximum(bounds.replica_slack, bounds.node_slack) <= limit
    anchors = np.array([group.offers[0] for group in groups])[pairs.group]
    in_draft = set(draft.replicas)
    keys = zip(pairs.deployment.tolist(), anchors.tolist(), pairs.offer.tolist(), strict=True)
    keep |= np.fromiter((key in in_draft for key in keys), dtype=np.bool_, count=len(pairs))
    pairs = pairs.take(keep)
    groups, pairs = drop_unused_groups(problem, groups, pairs)
    most = most_nodes(problem, groups, pairs, draft, reduced.bound)
    return replace(reduced, groups=groups, pairs=pairs, max_nodes=most)


def _worth_keeping(problem: FleetProblem, of: Mapping[Resource, Bounds], draft: Draft | None) -> BoolArray:
    """Pairs that a plan within the limits and no worse than the draft can contain."""
    keep = np.ones(len(of["cost"].replica_slack), dtype=np.bool_)
    for resource, bounds in of.items():
        limit = problem.limit_of(resource)
        ceiling = math.inf if limit is None else limit
        floor = bounds.lower
        if problem.objective == "throughput":
            floor = bounds.fixed + (floor - bounds.fixed) * (draft.objective if draft else 0.0)
        elif problem.objective == resource and draft is not None:
            ceiling = min(ceiling, draft.objective)
        keep &= _affordable(bounds, ceiling, floor)
    return keep


def undominated(problem: FleetProblem, pairs: Pairs) -> BoolArray:
    """Rows whose deployment no other of the same workload, node type, site and role replaces.

    j replaces i when t replicas of j fit where one of i stood, t = max_k ⌈μ_ik / μ_jk⌉ ≤ ⌊g_i / g_j⌋ (whole nodes
    count G devices, a device split for j its instances), and draw no more power if power or carbon matters, nor are more copies of
    the model if those are limited. An instance of a split device is replaced by one of the same split only. Exact: replicas cost
    nothing of their own.
    """
    table = problem.deployments
    power_matters = problem.matters("power") or problem.matters("carbon")
    rows, back = np.unique(pairs.deployment, return_inverse=True)
    if not len(rows):
        return np.ones(0, dtype=np.bool_)
    devices_of_type = {offer.node_type_id: offer.devices for offer in problem.offers}
    node_devices = np.array([devices_of_type.get(t, 1) for t in table.node_type_ids])
    keep = np.ones(len(rows), dtype=np.bool_)
    kind = table.workload[rows] * len(table.node_type_ids) + table.node_type[rows]
    for named in named_rows(problem):  # only another that is named too may stand in for one that is
        kind = 2 * kind + named[rows]
    if table.site is not None:
        kind = kind * (len(table.sites) + 1) + table.site[rows] - ANY_SITE
    if table.exchange is not None:
        side = np.where(table.roles == AGGREGATED, 0, 2 * table.exchange + table.roles)[rows]
        kind = kind * (1 + side.max(initial=0)) + side
    order = np.argsort(kind, kind="stable")
    edges = np.flatnonzero(np.diff(kind[order], prepend=-1, append=-1))
    starts, sizes = edges[:-1], np.diff(edges)
    workloads = table.workload[rows[order[starts]]]
    rates = demand_matrix(problem)
    # Thousands of groups of a few rows each: those of one workload and size are compared in one go.
    for workload, size in sorted(set(zip(workloads.tolist(), sizes.tolist(), strict=True))):
        alike = starts[(workloads == workload) & (sizes == size)]
        at_once = max(1, MOST_COMPARED // (size * size))
        for first in range(0, len(alike) if size > 1 else 0, at_once):
            positions = order[alike[first : first + at_once, None] + np.arange(size)]
            members = rows[positions]
            keep[positions] = _undominated_in_groups(
                table.capacity_requests_per_s[members][..., rates[workload] > 0],
                table.devices_per_replica[members],
                table.nodes_per_replica[members],
                node_devices[table.node_type[members[:, 0]]],
                table.power_w_per_replica[members] if power_matters else None,
                None if table.split is None else (table.split[members], table.instances[members]),
                None if problem.demands[workload].most_copies is None else table.copies_of_model[members],
            )
    kept: BoolArray = keep[back]
    return kept


MOST_COMPARED = 1 << 18
"""Pairs of rows compared in one go: a few megabytes a traffic class."""


def _undominated_in_groups(
    capacity: FloatArray,
    devices: IntArray,
    nodes: IntArray,
    node_devices: IntArray,
    power_w: FloatArray | None,
    splits: tuple[IntArray, IntArray] | None,
    copies: IntArray | None,
) -> BoolArray:
    """(groups, rows of each): see ``undominated``. capacity has classes on top, node_devices one value a group."""
    mine, other = capacity[:, :, None, :], capacity[:, None, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(mine > 0, mine / other, 0.0)
    needed = np.maximum(np.ceil(ratio - 1e-12).max(axis=3, initial=0.0), 1.0)

    def by_row(values: Any) -> Any:
        return values[:, :, None]

    def by_column(values: Any) -> Any:
        return values[:, None, :]

    spans = nodes > 1
    in_node = by_column(node_devices[:, None] // devices)
    inside = np.where(by_row(spans), by_row(nodes) * in_node, by_row(devices) // by_column(devices))
    room = np.where(by_column(spans), by_row(nodes) // by_column(nodes) * by_row(spans), inside)
    if splits is not None:
        split, instances = splits
        room = np.where(by_row(split) == WHOLE, room * by_column(instances), by_row(split) == by_column(split))
    replaces = needed <= room
    if power_w is not None:
        replaces &= needed * by_column(power_w) <= by_row(power_w) * (1 + 1e-12)
    if copies is not None:
        replaces &= needed * by_column(copies) <= by_row(copies)
    row = np.arange(devices.shape[1])
    replaces[:, row, row] = False
    earlier = row[None, :] < row[:, None]
    dominated: BoolArray = (replaces & (~replaces.swapaxes(1, 2) | earlier)).any(axis=2)
    return ~dominated


def workload_ranges(problem: FleetProblem, pairs: Pairs) -> list[tuple[int, int]]:
    edges = np.searchsorted(pairs.workload, np.arange(len(problem.demands) + 1))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _affordable(bounds: Bounds, ceiling: float, floor: float) -> BoolArray:
    room = ceiling + PROVEN_GAP_FRACTION * abs(ceiling) if math.isfinite(ceiling) else math.inf
    kept: BoolArray = floor + np.maximum(bounds.replica_slack, bounds.node_slack) <= room
    return kept


def _unservable(problem: FleetProblem, pairs: Pairs) -> tuple[str, ...]:
    reasons = []
    least = least_by_class(pairs, len(problem.demands), np.ones(len(pairs)))
    for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
        if start == end:
            if problem.demands[w].min_replicas or any(problem.demands[w].requests_per_s):
                reasons.append(f"workload {w}: no deployment on any offer it may use")
            continue
        stuck = np.flatnonzero(np.isinf(least[w]))
        reasons += [f"workload {w}: no deployment serves traffic class {k} within its targets" for k in stuck]
    return tuple(reasons)


def _too_few_domains(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> tuple[str, ...]:
    losses = problem.limits.fault_tolerance.losses
    if not losses:
        return ()
    lost = " or ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in losses)
    return tuple(
        f"workload {w}: nothing is left to serve it after the loss of {lost}"
        for w, least in enumerate(least_capacity(problem, groups, pairs))
        if math.isinf(least) and any(problem.demands[w].requests_per_s)
    )


SAID: dict[Resource, tuple[str, str]] = {
    "cost": ("the budget is {limit:.6g} USD/h", "no plan costs less than {least:.6g}"),
    "power": ("the power limit is {limit:.6g} W", "no plan draws less than {least:.6g}"),
    "carbon": ("the carbon limit is {limit:.6g} kg CO2e/h", "no plan emits less than {least:.6g}"),
}


def _beyond_limits(problem: FleetProblem, of: Mapping[Resource, Bounds]) -> tuple[str, ...]:
    reasons = []
    for resource, bounds in of.items():
        limit = problem.limit_of(resource)
        if limit is not None and bounds.lower > limit * (1 + PROVEN_GAP_FRACTION):
            reasons.append(" and ".join(SAID[resource]).format(limit=limit, least=bounds.lower))
    return tuple(reasons)


def _limits_of_the_whole(problem: FleetProblem) -> str:
    names: dict[Resource, str] = {"cost": "the budget", "power": "the power limit", "carbon": "the carbon limit"}
    stated = [name for resource, name in names.items() if problem.limit_of(resource) is not None]
    return " and ".join(stated) or "all limits together"


def _most_throughput(problem: FleetProblem, of: Mapping[Resource, Bounds]) -> float:
    most = math.inf if problem.most_multiple is None else problem.most_multiple
    for resource, bounds in of.items():
        limit = problem.limit_of(resource)
        if limit is not None and bounds.lower > bounds.fixed:
            most = min(most, max(0.0, limit - bounds.fixed) / (bounds.lower - bounds.fixed))
    return most


def most_nodes(
    problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, draft: Draft | None, bound: float
) -> IntArray:
    """Nodes of each group that some best plan stays within."""
    most = np.zeros(len(groups))
    price = np.array([group.usd_per_hour for group in groups])
    host_w = np.array([group.host_power_w for group in groups])
    host_kg = kg_per_hour(host_w, np.array([group.kg_co2e_per_kwh for group in groups]))
    taken: dict[Resource, FloatArray] = {"cost": price, "power": host_w, "carbon": host_kg}
    if problem.objective == "throughput":
        most[:] = MOST_NODES
        if math.isfinite(bound):
            most = np.minimum(most, _nodes_for_demand(problem, groups, pairs, bound))
    else:
        most = _nodes_for_demand(problem, groups, pairs, 1.0)
    ceilings = [(unit, problem.limit_of(resource)) for resource, unit in taken.items()]
    if draft is not None and problem.objective != "throughput":
        ceilings.append((taken[problem.objective], draft.objective))
    for unit, ceiling in ceilings:
        if ceiling is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                most = np.minimum(most, np.where(unit > 0, np.floor(ceiling * (1 + 1e-6) / unit), np.inf))
    available = np.array([math.inf if group.max_nodes is None else group.max_nodes for group in groups])
    whole: IntArray = np.minimum(np.minimum(most, available), MOST_NODES).astype(np.int64)
    return whole


def _nodes_for_demand(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, multiple: float) -> FloatArray:
    """Each pair serves at most all its demand, in whole replicas and then whole nodes; sum over the pairs of a group."""
    least = np.array([demand.min_replicas for demand in problem.demands], dtype=np.float64)
    finite = np.where(np.isfinite(pairs.load), pairs.load, 0.0).sum(axis=1)
    if problem.limits.fault_tolerance.losses:
        after_loss = np.array([headroom_factor(problem, w) for w in range(len(problem.demands))])
        finite = finite * np.maximum(after_loss, 1.0)[pairs.workload]
    replicas = np.ceil(finite * np.array(problem.multiples(multiple))[pairs.workload]) + least[pairs.workload] + 1
    nodes = np.where(
        pairs.slots > 0, np.ceil(replicas / np.maximum(pairs.slots, 1)), pairs.nodes_per_replica * replicas
    )
    most = np.full(len(groups), float(problem.limits.spare_nodes))
    np.add.at(most, pairs.group, nodes)
    share = problem.limits.max_spot_fraction
    if share is not None and share > 0:
        # Idle steady nodes can be bought to make room for cheap interruptible ones.
        devices = np.array([group.devices for group in groups])
        spot = np.array([group.interruptible for group in groups], dtype=np.bool_)
        most = np.where(spot, most, most + np.ceil((devices * most)[spot].sum() / share / devices))
    return most


def drop_unused_groups(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> tuple[list[OfferGroup], Pairs]:
    share = problem.limits.max_spot_fraction
    used = set(np.unique(pairs.group).tolist())
    if share is not None and any(groups[p].interruptible for p in used):
        used |= {p for p, group in enumerate(groups) if not group.interruptible}
    kept = sorted(used)
    index = np.zeros(len(groups), dtype=np.int64)
    index[kept] = np.arange(len(kept))
    renumbered = {name: getattr(pairs, name) for name in pairs.__slots__}
    renumbered["group"] = index[pairs.group]
    return [groups[p] for p in kept], Pairs(**renumbered)


def _shorten(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, most: IntArray) -> list[OfferGroup]:
    """Offers of a group beyond those that already hold the most nodes it can need are never used.

    With replicas over several nodes, which may not cross offers, only an offer large enough on its own ends the list.
    """
    spanning = set(pairs.group[pairs.offer >= 0].tolist())
    shortened = []
    for p, group in enumerate(groups):
        kept, total = [], 0
        for position in group.offers:
            kept.append(position)
            room = problem.offers[position].max_nodes
            alone = room is None or room >= most[p]
            total += int(most[p]) if room is None else room
            if alone or (p not in spanning and total >= most[p]):
                break
        shortened.append(replace(group, offers=tuple(kept)))
    return shortened
