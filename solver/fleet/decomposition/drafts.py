"""A fleet's plan from its workloads one after the other, each on nodes of its own and on what the others leave free."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from solver.fleet.decomposition.standalone import OwnCost
from solver.fleet.deployments import BoolArray, IntArray
from solver.fleet.found import placement_keys
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.taken import PlacementKey
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.problem import FleetProblem
from solver.fleet.reduce import ReducedProblem, drop_unused_groups, most_nodes
from solver.fleet.restricted import Effort, tried

PAIRS_TRIED = 60
"""Of a workload, by how little a plan that uses them costs above the bound; more take longer and seldom save."""
PAIRS_ON_FREE_DEVICES = 4
"""Of a workload in every group with devices left free, by what a replica saves elsewhere for each device it takes."""

STEP_GAP_FRACTION = 1e-4
FREED_TOGETHER = 3
ROUNDS_PER_WORKLOAD = 2
LEAST_WEIGHT = 0.01
"""Of the dearest workload, so that even the cheapest is freed now and then."""
NEIGHBOURHOOD_TIME_FRACTION = 0.1
NEIGHBOURHOOD_GAP_FRACTION = 1e-3


@dataclass(slots=True)
class Sequence:
    """Whole numbers found so far. seconds: the solver's."""

    replicas: dict[PlacementKey, int]
    nodes: dict[int, int]
    seconds: float = 0.0

    def draft(self) -> Draft:
        return Draft(self.nodes, self.replicas, math.nan, 1.0)


def one_by_one(reduced: ReducedProblem, own: OwnCost, time_limit_s: float, seed: int) -> Sequence | None:
    """The draft with one workload after the other placed anew at least cost, dearest first, twice over.

    Limits of the whole fleet are in every step and every step starts from what there is, so that this is a plan within
    them whenever it ends. None without a draft.
    """
    if reduced.draft is None:
        return None
    placed = Sequence(dict(reduced.draft.replicas), dict(reduced.draft.nodes))
    order = np.argsort(-own.of_workload, kind="stable").tolist()
    for w in [*order, *order]:
        left_s = time_limit_s - placed.seconds
        if left_s <= 0:
            break
        placed = improved(reduced, own, placed, [w], left_s, STEP_GAP_FRACTION, seed) or placed
    return placed


def neighbourhoods(reduced: ReducedProblem, own: OwnCost, placed: Sequence, time_limit_s: float, seed: int) -> Sequence:
    """Free a few workloads together, dearest and at random, as often as the time allows: they may then share nodes."""
    rng = np.random.default_rng(seed)
    workloads = len(own.of_workload)
    weights = own.of_workload + own.of_workload.max() * LEAST_WEIGHT
    if not weights.any():
        return placed
    began_s = placed.seconds
    for _ in range(ROUNDS_PER_WORKLOAD * workloads):
        left_s = time_limit_s - (placed.seconds - began_s)
        if left_s <= 0:
            break
        few = min(FREED_TOGETHER, workloads)
        chosen = rng.choice(workloads, few, replace=False, p=weights / weights.sum()).tolist()
        limit_s = min(left_s, time_limit_s * NEIGHBOURHOOD_TIME_FRACTION)
        placed = improved(reduced, own, placed, chosen, limit_s, NEIGHBOURHOOD_GAP_FRACTION, seed) or placed
    return placed


def improved(
    reduced: ReducedProblem,
    own: OwnCost,
    placed: Sequence,
    free: Collection[int],
    time_limit_s: float,
    gap_fraction: float,
    seed: int,
) -> Sequence | None:
    """``placed`` with the workloads in ``free`` placed anew at least cost and all others where they are."""
    keys = placement_keys(reduced)
    counts = np.array([placed.replicas.get(key, 0) for key in keys], dtype=np.int64)
    is_free = np.isin(reduced.pairs.workload, list(free))
    keep = (counts > 0) | (is_free & worth_trying(reduced, own, counts, is_free))
    some = reduced.pairs.take(keep)
    problem = only_demand_of(reduced.problem, free)
    groups, pairs = drop_unused_groups(problem, reduced.groups, some)
    most = most_nodes(reduced.problem, groups, pairs, None, reduced.bound)
    pairs = replace(pairs, load=np.where(is_free[keep][:, None], pairs.load, 0.0))
    few = replace(reduced, problem=problem, groups=groups, pairs=pairs, max_nodes=most)

    def keep_others(model: FleetProgramme) -> None:
        for variable, count, moves in zip(model.replicas, counts[keep].tolist(), is_free[keep].tolist(), strict=True):
            if not moves:
                variable.lowBound = variable.upBound = count

    first = all(any(counts[is_free & (reduced.pairs.workload == w)]) for w in free)
    effort = Effort(time_limit_s, gap_fraction, seed)
    answered = tried(few, effort, placed.draft() if first else None, keep_others)
    found = None if answered is None else answered.draft()
    if answered is None or found is None:
        return None
    return Sequence(found.replicas, found.nodes, placed.seconds + answered.solved.seconds)


def worth_trying(reduced: ReducedProblem, own: OwnCost, counts: IntArray, is_free: BoolArray) -> BoolArray:
    """Pairs of the free workloads a step chooses from: those of least excess, and those that fill devices left free."""
    pairs = reduced.pairs
    tried = np.zeros(len(pairs), dtype=np.bool_)
    share = pairs.devices / pairs.instances
    taken = np.bincount(pairs.group, weights=np.where(is_free | (pairs.slots == 0), 0, counts * share))
    devices = np.array([group.devices for group in reduced.groups])
    left = np.append(taken, np.zeros(len(devices) - len(taken))) % devices
    saves = own.price / share
    for w in np.unique(pairs.workload[is_free]).tolist():
        mine = np.flatnonzero(pairs.workload == w)
        tried[mine[np.argsort(own.excess[mine], kind="stable")[:PAIRS_TRIED]]] = True
        for p in np.flatnonzero(left).tolist():
            room = devices[p] - left[p]
            fits = mine[(pairs.group[mine] == p) & (pairs.slots[mine] > 0) & (share[mine] <= room)]
            tried[fits[np.argsort(-saves[fits], kind="stable")[:PAIRS_ON_FREE_DEVICES]]] = True
    return tried


def only_demand_of(problem: FleetProblem, workloads: Collection[int]) -> FleetProblem:
    """The problem with nothing to serve but these workloads."""
    idle = tuple(
        demand
        if w in workloads
        else replace(demand, requests_per_s=(0.0,) * len(demand.requests_per_s), min_replicas=0)
        for w, demand in enumerate(problem.demands)
    )
    return replace(problem, demands=idle)
