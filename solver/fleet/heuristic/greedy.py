"""A plan without a mathematical programming solver: the starting point, the fallback and the pruning ceiling.

Workload by workload: use devices left free on nodes already taken, take whole nodes of a deployment that serves
cheaply, and finish the rest with whatever completes it at least cost. Where losses of providers or regions are to be
survived, a workload is spread over R places that are lost apart, each of which serves 1/(R − k) of it.

It always succeeds where every group in reach is unlimited, enough places are in reach, and neither budget, power, quota
nor spot share binds. Elsewhere it may miss a plan that exists, and then only the solver's answer counts.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from solver.fleet.deployments import AGGREGATED, DECODE, PREFILL, FloatArray
from solver.fleet.groups.losses import headroom_factor
from solver.fleet.groups.offer_groups import OfferGroup, Pairs, lost_together
from solver.fleet.groups.places import in_few_places, keeps_to_few
from solver.fleet.groups.required import lacking, left_by
from solver.fleet.heuristic.taken import Fleet, PlacementKey, keeps_to_copies
from solver.fleet.problem import FleetProblem, Resource
from solver.units import kg_per_hour

TRIED_PER_STEP = 6
"""Deployments compared in a step; more of them cost time and seldom save money."""
BISECTIONS = 16
"""Halvings of the throughput interval; the solver closes what is left."""
WIDEST_SPREAD = 6
"""Places beyond those that may be lost over which a workload is spread at most: the seventh saves 1/42 of it."""
NOTHING = 1e-9
"""Of any unit: of two ways that cost nothing, the one with fewer nodes is taken."""
ROUNDING = 1e-9
"""Work above a whole number of replicas by less than this is floating point, not work."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Whole numbers of a plan: nodes by offer position, replicas by placement. objective: USD/h, W, or θ."""

    nodes: dict[int, int]
    replicas: dict[PlacementKey, int]
    objective: float
    throughput_multiple: float


@dataclass(slots=True)
class _Step:
    """Costs of completing one workload, by pair."""

    pairs: Pairs
    rows: range
    load: FloatArray
    refused: FloatArray
    node_price: FloatArray
    replica_price: FloatArray
    class_value: FloatArray
    room: FloatArray
    spare_price: FloatArray
    most_replicas: FloatArray

    def work(self, share: FloatArray) -> FloatArray:
        """Replicas' worth of work in what a pair can serve of the remaining shares."""
        work: FloatArray = self.load @ share
        return work

    def completion(self, share: FloatArray) -> tuple[float, int, int]:
        """(cost, row, replicas) of the cheapest pair that serves all that remains; infinite if none does."""
        rows = slice(self.rows.start, self.rows.stop)
        replicas = np.maximum(np.ceil(self.work(share) - ROUNDING), 1.0)
        slots = self.pairs.slots[rows]
        nodes = np.where(
            slots > 0, np.ceil(replicas / np.maximum(slots, 1)), replicas * self.pairs.nodes_per_replica[rows]
        )
        cost = nodes * (self.node_price + NOTHING) + replicas * self.replica_price + self.spare_price
        cost[(self.refused @ (share > 0) > 0) | (nodes > self.room) | (replicas > self.most_replicas)] = math.inf
        if not len(cost):
            return math.inf, -1, 0
        best = int(cost.argmin())
        if math.isinf(cost[best]):
            return math.inf, -1, 0
        return float(cost[best]), self.rows.start + best, int(replicas[best])


def draft_plan(
    problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, thorough: bool = True, multiple: float = 1.0
) -> Draft | None:
    """A plan that serves ``multiple`` of all demand within all limits, or None where this heuristic finds none."""
    workloads = range(len(problem.demands))
    first_of: Resource = "cost" if problem.objective == "throughput" else problem.objective
    ways: list[tuple[Resource, list[int]]] = [(first_of, list(workloads))]
    if thorough and len(workloads) > 1:
        ways.append((first_of, list(reversed(workloads))))
    others: tuple[Resource, ...] = ("power", "carbon", "cost")
    ways += [(other, list(workloads)) for other in others if other != first_of and problem.limit_of(other) is not None]
    best: Draft | None = None
    for kept in in_few_places(problem, groups, pairs):
        found = _draft(problem, groups, kept, thorough, multiple, ways)
        if found is not None and (best is None or found.objective < best.objective):
            best = found
    return best


def _draft(
    problem: FleetProblem,
    groups: list[OfferGroup],
    pairs: Pairs,
    thorough: bool,
    multiple: float,
    ways: list[tuple[Resource, list[int]]],
) -> Draft | None:
    """The best of plans drafted in several ways: a resource to save, and an order of workloads."""
    best: Draft | None = None
    losses = max((count for _, count in problem.limits.fault_tolerance.losses), default=0)
    spreads = range(losses + 1, losses + 1 + WIDEST_SPREAD) if losses else (1,)
    places = lost_together(groups, pairs) if losses else []
    first = (True, False) if problem.required and not losses else (False,)
    for (resource, order), required_first in itertools.product(ways, first):
        for spread in spreads:
            start = Fleet(problem, groups)
            fleet = None if required_first and not _add_required(start, pairs) else start
            for w in order:
                served = 1.0 if problem.demands[w].is_fixed else multiple
                if fleet is not None and losses:
                    fleet = _serve_apart(fleet, pairs, places, w, resource, thorough, served, spread, spread - losses)
                elif fleet is not None:
                    fleet = _serve_either(fleet, pairs, w, resource, thorough, served)
            if fleet is not None and not _add_required(fleet, pairs):
                fleet = None
            draft = None if fleet is None else _finish(problem, fleet, multiple)
            if draft is not None and (best is None or draft.objective < best.objective):
                best = draft
    return best


def _serve_apart(
    fleet: Fleet,
    pairs: Pairs,
    places: list[tuple[tuple[str, ...], Pairs]],
    w: int,
    resource: Resource,
    thorough: bool,
    multiple: float,
    spread: int,
    left: int,
) -> Fleet | None:
    """Serve a workload in ``spread`` places no two of which are lost together, any ``left`` of which suffice."""
    demand = fleet.problem.demands[w]
    if not any(demand.requests_per_s):
        return _serve_either(fleet, pairs, w, resource, thorough, multiple)
    factor = headroom_factor(fleet.problem, w)
    part = multiple * max(1.0 / spread, factor / left)
    ranked = []
    for domains, members in places:
        start, end = (int(edge) for edge in np.searchsorted(members.workload, [w, w + 1]))
        if end > start:
            costs = _costs(fleet, members, start, end, resource, part)
            share = (members.load[start:end].max(axis=0, initial=0.0) > 0).astype(np.float64)
            whole = 0.0 if members.has_exchanges else costs.completion(share)[0]
            ranked.append((whole, float(costs.class_value.sum()), domains, members))
    ranked.sort(key=lambda place: place[:3])
    taken: list[tuple[str, ...]] = []
    for _, cost, domains, members in ranked:
        if math.isinf(cost) or any(name in other for other in taken for name in domains):
            continue
        least = math.ceil(demand.min_replicas / spread)
        trial = _serve_either(fleet.copy(), members, w, resource, thorough, part, least)
        if trial is not None:
            fleet = trial
            taken.append(domains)
        if len(taken) == spread:
            return fleet
    return None


def draft_throughput(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, bound: float) -> Draft | None:
    """The largest multiple of all demand the heuristic can serve, by bisection below the proven bound."""
    high, low = (bound, 0.0) if math.isfinite(bound) else (1.0, 0.0)
    if problem.most_multiple is not None and (everything := draft_plan(problem, groups, pairs, multiple=high)):
        return everything
    best = draft_plan(problem, groups, pairs, multiple=0.0)
    if not math.isfinite(bound):
        while high < 1e9 and (found := draft_plan(problem, groups, pairs, multiple=high)):
            best, low, high = found, high, 2 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = draft_plan(problem, groups, pairs, multiple=middle)
        if found is None:
            high = middle
        else:
            best, low = found, middle
    return best


def _finish(problem: FleetProblem, fleet: Fleet, multiple: float) -> Draft | None:
    nodes = {offer: count for offer, count in sorted(fleet.nodes.items()) if count}
    replicas = {key: count for key, count in sorted(fleet.replicas.items()) if count}
    taken = _taken(fleet)
    for resource, amount in taken.items():
        limit = problem.limit_of(resource)
        if limit is not None and amount > limit * (1 + ROUNDING):
            return None
    # The anchor stands for its group here too: all its offers are of one place.
    if not keeps_to_few(problem, ((int(problem.deployments.workload[row]), o) for row, o, _ in replicas)):
        return None
    if not keeps_to_copies(problem, replicas):
        return None
    return Draft(nodes, replicas, multiple if problem.objective == "throughput" else taken[problem.objective], multiple)


def _taken(fleet: Fleet) -> dict[Resource, float]:
    """What nodes and replicas taken so far take of everything."""
    offers, replica_w = fleet.problem.offers, fleet.problem.deployments.power_w_per_replica
    # The anchor stands for its group, all of whose offers are equally clean where carbon matters.
    drawn = [(offers[o].host_power_w * n, offers[o].kg_co2e_per_kwh) for o, n in sorted(fleet.nodes.items())]
    drawn += [
        (float(replica_w[key[0]]) * n, offers[key[1]].kg_co2e_per_kwh) for key, n in sorted(fleet.replicas.items())
    ]
    return {
        "cost": math.fsum(offers[o].usd_per_hour * n for o, n in fleet.nodes.items()),
        "power": math.fsum(watts for watts, _ in drawn),
        "carbon": math.fsum(kg_per_hour(watts, grid) for watts, grid in drawn),
    }


def _serve_either(
    fleet: Fleet,
    pairs: Pairs,
    w: int,
    resource: Resource,
    thorough: bool,
    multiple: float,
    min_replicas: int | None = None,
) -> Fleet | None:
    """Serve a workload by replicas that do both, or by one exchange, whichever costs less; None where neither can."""
    if not pairs.has_exchanges:
        return fleet if _serve(fleet, pairs, w, resource, thorough, multiple, min_replicas) else None
    best: Fleet | None = None
    for parts in _ways(pairs, w, resource):
        trial: Fleet | None = replace(fleet.copy(), forced=[])
        for part in parts:
            if trial is not None and not _serve(trial, part, w, resource, thorough, multiple, min_replicas):
                trial = None
        if trial is not None and (best is None or _taken(trial)[resource] < _taken(best)[resource]):
            best = trial
    return best


def _ways(pairs: Pairs, w: int, resource: Resource) -> Iterator[tuple[Pairs, ...]]:
    """Pairs that serve a workload: those that do both, then both sides of the exchanges that look cheapest."""
    mine = pairs.workload == w
    both = mine & (pairs.role == AGGREGATED)
    if both.any():
        yield (pairs.take(both),)
    node_price, replica_price = pairs.takes(resource)
    with np.errstate(invalid="ignore"):
        whole = ((replica_price + node_price * pairs.node_fraction)[:, None] * pairs.load).sum(axis=1)
    found = []
    for s in np.unique(pairs.exchange[mine & ~both]).tolist():
        sides = [mine & (pairs.exchange == s) & (pairs.role == side) for side in (PREFILL, DECODE)]
        found.append((sum(float(whole[side].min(initial=math.inf)) for side in sides), s, sides))
    for cost, _, sides in sorted(found, key=lambda way: way[:2])[:TRIED_PER_STEP]:
        if math.isfinite(cost):
            yield tuple(pairs.take(side) for side in sides)


def _serve(
    fleet: Fleet,
    pairs: Pairs,
    w: int,
    resource: Resource,
    thorough: bool,
    multiple: float,
    min_replicas: int | None = None,
) -> bool:
    problem = fleet.problem
    start, end = (int(edge) for edge in np.searchsorted(pairs.workload, [w, w + 1]))
    demand = problem.demands[w]
    share = (pairs.load[start:end].max(axis=0, initial=0.0) > 0).astype(np.float64)
    if multiple == 0.0:
        share[:] = 0.0
    forced = [row for row in fleet.forced if start <= row < end]
    placed = len(forced)
    if forced:
        last = forced[-1]
    share = left_by(pairs, forced, share, multiple)
    for _ in range(1000):
        if not share.any():
            break
        steps, left = _next_steps(fleet, pairs, _costs(fleet, pairs, start, end, resource, multiple), share, thorough)
        if not steps:
            return False
        for row, replicas in steps:
            if not fleet.place(pairs, row, replicas):
                return False
            placed += replicas
            last = row
        share = left
    else:
        return False
    least = demand.min_replicas if min_replicas is None else min_replicas
    if placed < least:
        if not placed:
            costs = _costs(fleet, pairs, start, end, resource, multiple)
            _, last, _ = costs.completion(share)
            if last < 0:
                return False
        return fleet.place(pairs, last, least - placed)
    return True


def _add_required(fleet: Fleet, pairs: Pairs) -> bool:
    """Place one replica of whatever the plan must contain and lacks; False where there is room for none."""
    for rows in lacking(fleet.problem, fleet.groups, pairs, fleet.replicas):
        for row in rows:
            p, offer = int(pairs.group[row]), int(pairs.offer[row])
            free = fleet.free_slots(pairs, row) if offer < 0 else 0
            room = fleet.group_room(p) if offer < 0 else fleet.room(fleet.groups[p], offer)
            if free or room >= max(1, int(pairs.nodes_per_replica[row])) + fleet.problem.limits.spare_nodes:
                fleet.forced.append(row)
                if not fleet.place(pairs, row, 1):
                    return False
                break
        else:
            return False
    return True


def _costs(fleet: Fleet, pairs: Pairs, start: int, end: int, resource: Resource, multiple: float) -> _Step:
    rows = slice(start, end)
    problem = fleet.problem
    refused = np.isinf(pairs.load[rows])
    load = np.where(refused, 0.0, pairs.load[rows]) * multiple
    node_price, replica_price = (taken[rows] for taken in pairs.takes(resource))
    unit = replica_price + node_price * pairs.node_fraction[rows]
    with np.errstate(invalid="ignore"):
        class_value = np.where(refused, np.inf, unit[:, None] * load).min(axis=0, initial=math.inf)
    group_room = np.zeros(len(fleet.groups))
    for p in np.unique(pairs.group[rows]).tolist():
        group_room[p] = fleet.group_room(p)
    if problem.limits.max_spot_fraction is not None and problem.limits.max_spot_fraction < 1.0:
        group_room[[group.interruptible for group in fleet.groups]] = 0.0
    room = group_room[pairs.group[rows]]
    for offset in np.flatnonzero(pairs.offer[rows] >= 0):
        row = start + int(offset)
        room[offset] = min(room[offset], fleet.room(fleet.groups[int(pairs.group[row])], int(pairs.offer[row])))
    spare = problem.limits.spare_nodes
    spare_price = np.zeros(end - start)
    if spare:
        unused = np.array([not fleet.spares[-1 - p] for p in range(len(fleet.groups))])
        spare_price = spare * node_price * unused[pairs.group[rows]]
        room = room - spare * unused[pairs.group[rows]]
    return _Step(
        pairs,
        range(start, end),
        load,
        refused.astype(np.float64),
        node_price,
        replica_price,
        class_value,
        room,
        spare_price,
        _copies_left(fleet, pairs, start, end),
    )


def _copies_left(fleet: Fleet, pairs: Pairs, start: int, end: int) -> FloatArray:
    """Replicas of each pair of one workload that it may have beside those placed."""
    table = fleet.problem.deployments
    most = fleet.problem.demands[int(pairs.workload[start])].most_copies if end > start else None
    if most is None:
        return np.full(end - start, math.inf)
    copies, w = table.copies_of_model, pairs.workload[start]
    placed = sum(int(copies[row]) * count for (row, _, _), count in fleet.replicas.items() if table.workload[row] == w)
    return np.floor((most - placed) / copies[pairs.deployment[start:end]])


def _next_steps(
    fleet: Fleet, pairs: Pairs, costs: _Step, share: FloatArray, thorough: bool
) -> tuple[list[tuple[int, int]], FloatArray]:
    """The cheapest way found to complete the shares: (row, replicas) steps and the shares left after them."""
    nothing = np.zeros_like(share)
    best_cost, row, replicas = costs.completion(share)
    best = [(row, replicas)] if row >= 0 else []
    if best and not thorough:
        return best, nothing
    start = costs.rows.start
    work = costs.work(share)
    served_value = np.where(costs.refused > 0, 0.0, costs.class_value * share).sum(axis=1)
    unit = costs.replica_price + costs.node_price * pairs.node_fraction[start : costs.rows.stop]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((served_value > 0) & (costs.room >= 1), unit * work / served_value, np.inf)
        ratio = np.where(np.isnan(ratio), 0.0, ratio)
    per_unit = np.maximum(pairs.slots[start : costs.rows.stop], 1)
    nodes_in_unit = np.maximum(pairs.nodes_per_replica[start : costs.rows.stop], 1)

    def after(offset: int, count: float) -> FloatArray:
        done = min(1.0, count / work[offset]) if work[offset] > 0 else 1.0
        left: FloatArray = share * (1.0 - done * (1.0 - costs.refused[offset]))
        left[left < ROUNDING] = 0.0
        return left

    options: list[tuple[int, int, float]] = []
    for p in fleet.free:
        in_group = np.flatnonzero((pairs.group[start : costs.rows.stop] == p) & (served_value > 0))
        for offset in in_group[np.argsort(-served_value[in_group] / np.maximum(work[in_group], ROUNDING))][:2]:
            slots = fleet.free_slots(pairs, start + int(offset)) if pairs.slots[start + offset] else 0
            if slots:
                count = min(slots, max(1, math.ceil(work[offset] - ROUNDING)))
                options.append((int(offset), count, float(costs.replica_price[offset]) * count))
    few = min(TRIED_PER_STEP, len(ratio))
    for offset in np.argpartition(ratio, few - 1)[:few] if few else ():
        whole = min(
            math.floor(work[offset] / per_unit[offset] + ROUNDING), np.floor(costs.room[offset] / nodes_in_unit[offset])
        )
        if whole >= 1 and math.isfinite(ratio[offset]):
            count = int(whole * per_unit[offset])
            nodes = whole * nodes_in_unit[offset]
            price = nodes * costs.node_price[offset] + count * costs.replica_price[offset] + costs.spare_price[offset]
            options.append((int(offset), count, float(price)))
    for offset, count, price in options:
        left = after(offset, count)
        rest, rest_row, rest_replicas = costs.completion(left) if left.any() else (0.0, -1, 0)
        if price + rest < best_cost:
            best_cost = price + rest
            best = [(start + offset, count)] + ([(rest_row, rest_replicas)] if rest_row >= 0 else [])
    if best:
        return best, nothing
    # Nothing completes it in two steps: take the best value for money and look again.
    if not few or math.isinf(ratio.min()):
        return [], share
    offset = int(ratio.argmin())
    whole = max(
        1, min(math.floor(work[offset] / per_unit[offset]), np.floor(costs.room[offset] / nodes_in_unit[offset]))
    )
    count = min(int(whole * per_unit[offset]), max(1, math.ceil(work[offset] - ROUNDING)))
    return [(start + offset, count)], after(offset, count)
