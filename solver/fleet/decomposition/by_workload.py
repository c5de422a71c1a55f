"""Fleets of several workloads: bound and plan from the workloads one by one, then with the nodes they share whole."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from solver.fleet.decomposition.branch import with_whole_nodes
from solver.fleet.decomposition.drafts import neighbourhoods, one_by_one
from solver.fleet.decomposition.standalone import (
    Leaf,
    OwnCost,
    add_leaf,
    add_own_cost,
    in_draft,
    kept,
    own_cost,
    promising,
    within,
)
from solver.fleet.deployments import WHOLE
from solver.fleet.found import Found, better_of, realised
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.model.objective import cost_terms
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.fleet.reduce import ReducedProblem
from solver.fleet.restricted import Effort, tried

OWN_TIME_FRACTION = 0.25
"""Share of the time limit for what each workload costs alone, and again for their plans alone."""
WHOLE_TIME_FRACTION = 0.6
"""Share of the time limit for bound and plans with whole nodes."""
LEAST_TIME_FRACTION = 0.1
"""Share of the time limit a later stage gets even when earlier ones used it up."""
MOST_COLUMNS = 20_000
"""Routing columns beyond which workloads are improved a few at a time instead of all together."""
NEAR_FRACTION = 0.1
"""Pairs a leaf is first solved over: those that use up at most this share of the distance between its bound and plan."""
MOST_LEAVES = 12
"""Leaves solved one by one; more of them are left to one programme over all."""
CUT_FRACTION = PROVEN_GAP_FRACTION / 2
"""Of a plan's cost: plans that would save less are not looked for."""
SHARED_TIME_FRACTION = 0.2
"""Share of the time limit for a first plan in which workloads share nodes."""
SHARED_EXCESS_FRACTION = 0.25
"""Pairs tried for that plan: those that use up at most this share of the distance between bound and plan."""


@dataclass(frozen=True, slots=True)
class ByWorkload:
    """What is left to be proven, and whether anything more will be tried. seconds: the solver's."""

    reduced: ReducedProblem
    own: OwnCost
    found: Found
    is_finished: bool
    seconds: float


def solve_by_workload(
    reduced: ReducedProblem, draft: Found, time_limit_s: float, gap_fraction: float, seed: int
) -> ByWorkload:
    """Bound and plan of a fleet of several workloads, from a first plan of it."""
    problem, small_enough = reduced.problem, max(PROVEN_GAP_FRACTION, gap_fraction)
    own = own_cost(reduced, OWN_TIME_FRACTION * time_limit_s, seed)
    reduced, own = within(reduced, own, draft.objective)
    best = draft

    def accept(found: Draft) -> float | None:
        nonlocal best
        plan = realised(reduced, found, {}, "highs")
        best = better_of(problem, best, plan) or best
        return None if plan is None else plan.objective

    if _sees_what_binds(reduced):
        whole_s = WHOLE_TIME_FRACTION * time_limit_s
        own = with_whole_nodes(reduced, own, draft.objective, gap_fraction, accept, whole_s, seed)
    seconds = own.seconds
    reduced, own = _narrowed(reduced, own, best)
    if gap_between(best.objective, reduced.bound) <= small_enough:
        return ByWorkload(reduced, own, best, problem.objective == "cost", seconds)
    needed = best is draft or _is_large(reduced)  # else the leaves find what is left to find
    placed = one_by_one(reduced, own, OWN_TIME_FRACTION * time_limit_s, seed) if needed else None
    if placed is not None:
        seconds += placed.seconds
        best = better_of(problem, best, realised(reduced, placed.draft(), {}, "highs")) or best
        reduced, own = _narrowed(reduced, own, best)
    if placed is not None and _is_large(reduced):
        left_s = max(time_limit_s - seconds, LEAST_TIME_FRACTION * time_limit_s)
        began_s = placed.seconds
        placed = neighbourhoods(reduced, own, placed, left_s, seed)
        best = better_of(problem, best, realised(reduced, placed.draft(), {}, "highs")) or best
        return ByWorkload(replace(reduced, draft=best.draft), own, best, True, seconds + placed.seconds - began_s)
    left_s = max(time_limit_s - seconds, LEAST_TIME_FRACTION * time_limit_s)
    if problem.objective == "cost" and 0 < len(own.leaves) <= MOST_LEAVES:
        return _leaf_by_leaf(reduced, own, best, left_s, gap_fraction, seed, seconds)
    few, few_own = promising(reduced, own, SHARED_EXCESS_FRACTION)
    found, _, spent_s = _solve(few, few_own, None, best, SHARED_TIME_FRACTION * time_limit_s, gap_fraction, seed)
    best = better_of(problem, best, found) or best
    reduced, own = _narrowed(reduced, own, best)
    return ByWorkload(reduced, own, best, False, seconds + spent_s)


def _leaf_by_leaf(
    reduced: ReducedProblem,
    own: OwnCost,
    best: Found,
    time_limit_s: float,
    gap_fraction: float,
    seed: int,
    spent_s: float,
) -> ByWorkload:
    """Each leaf's programme on its own: over its own few pairs, with the nodes it forces and the rows of its prices."""
    bounds = [leaf.bound for leaf in own.leaves]
    left_s = time_limit_s
    for fraction, (number, leaf) in itertools.product((NEAR_FRACTION, 1.0), enumerate(own.leaves)):
        if gap_between(best.objective, min(best.objective, *bounds)) <= gap_fraction:
            break
        if left_s <= 0.0:
            break
        if bounds[number] >= best.objective * (1 - PROVEN_GAP_FRACTION):
            continue
        room = best.objective * (1 + PROVEN_GAP_FRACTION) - leaf.bound
        every, near = leaf.excess <= room, leaf.excess <= fraction * room
        bound = math.inf
        if near.any():
            few, few_own = kept(reduced, own, near)
            limit_s = left_s / (1 if fraction == 1.0 else 2)
            # Without a start: given a plan, the solver would look for no other.
            beaten = best.objective * (1 - max(gap_fraction - CUT_FRACTION, CUT_FRACTION))
            found, bound, seconds = _solve(
                few, few_own, few_own.leaves[number], None, limit_s, gap_fraction, seed, below=beaten
            )
            left_s -= seconds
            best = better_of(reduced.problem, best, found) or best
        if near.sum() == every.sum():
            bounds[number] = max(bounds[number], bound)
    lowest = min(bounds)
    bound = max(reduced.bound, min(lowest, best.objective))
    reduced = replace(reduced, draft=best.draft, bound=bound)
    return ByWorkload(reduced, own, best, True, spent_s + time_limit_s - left_s)


def _solve(
    reduced: ReducedProblem,
    own: OwnCost,
    leaf: Leaf | None,
    best: Found | None,
    time_limit_s: float,
    gap_fraction: float,
    seed: int,
    below: float = math.inf,
) -> tuple[Found | None, float, float]:
    """(plan, bound, solver seconds) of the programme over these pairs, in one leaf or everywhere.

    below: only plans that cost no more are looked for; where there are none, it is the bound.
    """

    def restrict(model: FleetProgramme) -> None:
        add_own_cost(model, own)
        if math.isfinite(below):
            model.at_most(cost_terms(model), below, "below")
        if leaf is not None:
            add_leaf(model, leaf)

    effort = Effort(time_limit_s, gap_fraction, seed, to_refute=math.isfinite(below))
    answered = tried(reduced, effort, None if best is None else best.draft, restrict)
    if answered is None:
        return None, -math.inf, 0.0
    if answered.solved.proof == "infeasible":
        return None, below, answered.solved.seconds
    return answered.found(), answered.bound, answered.solved.seconds


def _narrowed(reduced: ReducedProblem, own: OwnCost, best: Found) -> tuple[ReducedProblem, OwnCost]:
    """With the bound that ``own`` gives, and only pairs that ``best`` or a cheaper plan can contain."""
    bound = max(reduced.bound, min(own.lower, best.objective))
    keep = own.lower + own.excess <= best.objective * (1 + PROVEN_GAP_FRACTION)
    reduced = replace(reduced, draft=best.draft, bound=bound)
    return kept(reduced, own, keep | in_draft(reduced, best.draft))


def _sees_what_binds(reduced: ReducedProblem) -> bool:
    """Are branches on nodes worth their time? They see neither idle capacity nor that a split device has one profile,
    which the programme of all does where it is small enough."""
    limits = reduced.problem.limits
    if limits.spare_nodes or limits.fault_tolerance.losses:
        return False
    return _is_large(reduced) or not (reduced.pairs.split != WHOLE).any()


def _is_large(reduced: ReducedProblem) -> bool:
    """Has the programme of all workloads together more columns than a solver makes anything of in seconds?"""
    classes = np.isfinite(reduced.pairs.load) & (reduced.pairs.load > 0)
    return int(classes.sum()) > MOST_COLUMNS
