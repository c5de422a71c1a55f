"""What a plan is made to contain, to see what that costs: at least one replica of some deployments on some offers.

Offers named by a requirement form groups of their own, with spare nodes of their own where spares are kept, so that
"on these offers" is decided by the optimiser and not by how a group is split afterwards.
"""

from collections.abc import Collection, Sequence

import numpy as np

from solver.fleet.deployments import BoolArray, FloatArray
from solver.fleet.groups.offer_groups import OfferGroup, Pairs
from solver.fleet.problem import FleetProblem, MustUse

ROUNDING = 1e-9
"""Shares smaller than this are floating point, not traffic."""


def meeting(problem: FleetProblem, groups: Sequence[OfferGroup], pairs: Pairs, requirement: MustUse) -> BoolArray:
    """Pairs whose replicas count: (N,)."""
    on_offers = np.ones(len(groups), dtype=np.bool_)
    if requirement.offer_ids is not None:
        # All offers of a group are named or none is: the first one speaks for them.
        on_offers = np.array([problem.offers[p.offers[0]].id in requirement.offer_ids for p in groups], dtype=np.bool_)
    counted: BoolArray = on_offers[pairs.group]
    if requirement.keys is not None:
        counted = counted & np.isin(problem.deployments.key[pairs.deployment], sorted(requirement.keys))
    return counted


def met_by_none(problem: FleetProblem, groups: Sequence[OfferGroup], pairs: Pairs) -> tuple[str, ...]:
    """Why no plan can contain what is required."""
    return tuple(
        f"{requirement.name}: no candidate on any offer"
        for requirement in problem.required
        if not meeting(problem, groups, pairs, requirement).any()
    )


def named_rows(problem: FleetProblem) -> list[BoolArray]:
    """For each requirement that names deployments, its rows of the table: another deployment may not stand in."""
    return [np.isin(problem.deployments.key, sorted(r.keys)) for r in problem.required if r.keys is not None]


def lacking(
    problem: FleetProblem, groups: Sequence[OfferGroup], pairs: Pairs, placed: Collection[tuple[int, int, int]]
) -> list[list[int]]:
    """Of each requirement that the placements (row, first offer of the group, offer) do not meet, the pairs that would,
    those on the cheapest nodes first."""
    anchors = [group.offers[0] for group in groups]
    price = pairs.usd_per_node_hour * np.maximum(pairs.node_fraction, 1.0)
    found = []
    for requirement in problem.required:
        rows = np.flatnonzero(meeting(problem, groups, pairs, requirement))
        keys = ((int(pairs.deployment[i]), anchors[int(pairs.group[i])], int(pairs.offer[i])) for i in rows)
        if not any(key in placed for key in keys):
            found.append(rows[np.argsort(price[rows], kind="stable")].tolist())
    return found


def left_by(pairs: Pairs, forced: Sequence[int], share: FloatArray, multiple: float) -> FloatArray:
    """Shares of a workload's classes that the replicas placed beforehand, one of each pair, cannot serve."""
    left = share.copy()
    for row in forced:
        room = 1.0
        for k, work in enumerate((pairs.load[row] * multiple).tolist()):
            if left[k] > 0.0 and 0.0 < work < np.inf:
                served = min(float(left[k]), room / work)
                left[k] -= served
                room -= served * work
    left[left < ROUNDING] = 0.0
    return left
