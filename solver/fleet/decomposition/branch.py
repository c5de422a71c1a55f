"""Bound and plans with whole nodes, by branching on how many nodes of a group are taken.

With nodes divisible the workloads part and their optima bound the fleet (``own_cost``). What that bound leaves out is
that the last node of a group is paid for whole. Here the plans are split by how many nodes of a group they take. Within a
branch, any prices of nodes give a bound, and a linear programme over the ways of serving found so far gives the prices
at which it is highest (branch and price: Barnhart and others, Operations Research 46, 1998). The ways found at those
prices fit together on whole nodes, so they make good plans too.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solver.fleet.decomposition.master import Branch, Relaxed, cost_of_nodes, draft_of, relaxed_master, whole_master
from solver.fleet.decomposition.prices import Subproblems, Way, WorkloadsAtPrices
from solver.fleet.decomposition.standalone import DualRow, Leaf, OwnCost
from solver.fleet.deployments import FloatArray
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.reduce import ReducedProblem

MOST_STEPS = 12
"""Sets of prices tried in a branch; what is left is left to its two halves."""
MIDDLE_EVERY = 3
"""Every third set of prices lies between the best and the newest, because the newest swing."""
STEP_TOLERANCE = 1e-7
STEP_TOLERANCE_OF_GAP = 0.2
"""A branch is done when its bound may rise by no more than this share of the gap asked for."""
WHOLE = 1e-6
SUBPROBLEM_TIME_FRACTION = 0.05
MASTER_TIME_FRACTION = 0.05
SUBPROBLEM_GAP_OF_GAP = 0.1
"""Workloads are solved to this share of the gap asked for."""

Accept = Callable[[Draft], float | None]
"""The objective of the plan a draft makes, or None if it makes none within all limits."""


@dataclass(slots=True)
class _Search:
    known: Subproblems
    ceiling: float
    gap_fraction: float
    accept: Accept
    time_limit_s: float
    seed: int
    seconds: float = 0.0
    tried: list[Way] | None = None

    @property
    def spent_s(self) -> float:
        return self.seconds + self.known.seconds

    def is_beaten(self, bound: float) -> bool:
        return bound >= self.ceiling * (1 - PROVEN_GAP_FRACTION)


def with_whole_nodes(
    reduced: ReducedProblem,
    own: OwnCost,
    ceiling: float,
    gap_fraction: float,
    accept: Accept,
    time_limit_s: float,
    seed: int,
) -> OwnCost:
    """``own`` with a bound, excesses and rows that know of whole nodes; drafts on the way are handed to ``accept``.

    ceiling: objective of a plan in hand. True bounds whatever other limits hold: those only take plans away.
    """
    known = Subproblems(reduced, SUBPROBLEM_TIME_FRACTION * time_limit_s, SUBPROBLEM_GAP_OF_GAP * gap_fraction, seed)
    for w, way in enumerate(own.ways):
        if way or not known.loads[w].shape[1]:
            known.add_way(w, way)
    search = _Search(known, ceiling, gap_fraction, accept, time_limit_s, seed)
    numbers = itertools.count()
    everything = Branch(own.lower)
    none_barred = everything.barred(len(known.cheapest))
    divisible = WorkloadsAtPrices(known.cheapest, none_barred, own.of_workload.tolist(), own.lower)
    waiting: list[tuple[float, int, Branch, WorkloadsAtPrices]] = []
    done: list[tuple[Branch, WorkloadsAtPrices]] = []
    branch, priced, relaxed = everything, divisible, relaxed_master(known, everything)
    while True:
        if not search.is_beaten(branch.bound):
            _try_whole(search)
        split = _most_divided(known, relaxed)
        if split is None or search.is_beaten(branch.bound):
            done.append((branch, priced))
        else:
            for half in _halves(branch, *split):
                heapq.heappush(waiting, (half.bound, next(numbers), half, priced))
        lowest = min((branch.bound for branch, _ in done), default=math.inf)
        if not waiting or waiting[0][0] >= lowest or search.spent_s >= time_limit_s:
            break  # splitting further lifts the bound no more
        if search.is_beaten(waiting[0][0]) or search.ceiling - waiting[0][0] <= gap_fraction * search.ceiling:
            break
        _, _, branch, priced = heapq.heappop(waiting)
        branch, priced, relaxed = _bound_of(search, branch, priced)
    return _summary(search, own, done + [(branch, priced) for _, _, branch, priced in waiting])


def _halves(branch: Branch, p: int, count: int) -> tuple[Branch, Branch]:
    """Plans with at most ``count`` nodes of the group, and those with more."""
    fewer = replace(branch, most={**branch.most, p: count})
    return fewer, replace(branch, least={**branch.least, p: count + 1})


def _bound_of(search: _Search, branch: Branch, best: WorkloadsAtPrices) -> tuple[Branch, WorkloadsAtPrices, Relaxed]:
    """(branch with its bound, prices that give it, master): maximise over prices Σ_w S_w(prices) + cost of nodes.

    best: prices, and the bound they give here, of the branch that this one is a part of.
    """
    known = search.known
    barred = branch.barred(len(known.cheapest))
    tolerance = max(STEP_TOLERANCE, STEP_TOLERANCE_OF_GAP * search.gap_fraction)
    relaxed = relaxed_master(known, branch)
    for step in range(MOST_STEPS):
        prices = _prices(known, branch, relaxed)
        if step % MIDDLE_EVERY == MIDDLE_EVERY - 1:
            prices = (prices + best.prices) / 2
        priced = known.at(prices, barred)
        bound = priced.total + cost_of_nodes(known, branch, prices)
        if not step or bound > best.bound:
            best = replace(priced, bound=bound)
        relaxed = relaxed_master(known, branch)
        closed = relaxed.objective - best.bound <= tolerance * abs(relaxed.objective)
        if closed or search.is_beaten(best.bound) or search.spent_s >= search.time_limit_s:
            break
    return replace(branch, bound=max(branch.bound, best.bound)), best, relaxed


def _prices(known: Subproblems, branch: Branch, relaxed: Relaxed) -> FloatArray:
    """Prices of a node where the bound may be highest.

    Where a branch neither forces nor limits a group, the bound rises with its price up to the cheapest node's; where only
    more nodes are forced it is highest at no more than that, where they are only limited at no less.
    """
    prices = known.cheapest.copy()
    for p in np.flatnonzero(known.priced).tolist():
        dual = relaxed.prices.get(p, float(known.cheapest[p]))
        limited = p in branch.most or known.limited[p]
        if branch.least.get(p):
            prices[p] = dual if limited else min(dual, known.cheapest[p])
        elif limited:
            prices[p] = max(dual, known.cheapest[p])
    return prices


def _try_whole(search: _Search) -> None:
    ways, seconds = whole_master(search.known, MASTER_TIME_FRACTION * search.time_limit_s, search.seed)
    search.seconds += seconds
    if ways == search.tried:
        return
    search.tried = ways
    draft = None if ways is None else draft_of(search.known, ways)
    objective = None if draft is None else search.accept(draft)
    if objective is not None:
        search.ceiling = min(search.ceiling, objective)


def _most_divided(known: Subproblems, relaxed: Relaxed) -> tuple[int, int] | None:
    """(group, nodes of it rounded down) where the part of a node that is not taken is worth most."""
    parts = [
        (known.cheapest[p] * min(count - math.floor(count), math.ceil(count) - count), p, math.floor(count))
        for p, count in relaxed.nodes.items()
        if abs(count - round(count)) > WHOLE
    ]
    if not parts:
        return None
    _, p, count = max(parts)
    return p, count


def _summary(search: _Search, own: OwnCost, branches: list[tuple[Branch, WorkloadsAtPrices]]) -> OwnCost:
    """What the branches together show: no plan is better than the lowest of them, and a better plan is in one of them."""
    groups = search.known.reduced.groups
    leaves: list[Leaf] = []
    for branch, priced in branches:
        if search.is_beaten(branch.bound):
            continue
        excess, rows = _excess(search, branch, priced)
        leaves.append(
            Leaf(
                branch.bound,
                {groups[p].offers[0]: count for p, count in branch.least.items()},
                {groups[p].offers[0]: count for p, count in branch.most.items()},
                excess,
                rows,
            )
        )
    lower = min([search.ceiling, *(leaf.bound for leaf in leaves)])
    least = np.full(len(own.excess), math.inf)
    for leaf in leaves:
        least = np.minimum(least, leaf.bound + leaf.excess - lower)
    excess = np.maximum(least, own.excess + own.lower - lower)
    found = tuple(sorted(leaves, key=lambda leaf: leaf.bound))
    return replace(own, lower=lower, excess=excess, seconds=own.seconds + search.spent_s, leaves=found)


def _excess(search: _Search, branch: Branch, priced: WorkloadsAtPrices) -> tuple[FloatArray, tuple[DualRow, ...]]:
    """By how much more than its bound plans of a branch with a pair cost, and rows that all plans keep."""
    known = search.known
    room = search.ceiling * (1 + PROVEN_GAP_FRACTION) - priced.bound
    excess = np.zeros(len(known.share))
    rows: list[DualRow] = []
    for w, (start, end) in enumerate(known.ranges):
        beyond, price = known.excess(w, priced, room)
        excess[start:end] = np.maximum(priced.bound + beyond - branch.bound, 0.0)
        if 0.0 < priced.least[w] < math.inf:
            whole = np.zeros(len(excess))
            whole[start:end] = price
            rows.append(DualRow(whole, priced.least[w]))
    return excess, tuple(rows)
