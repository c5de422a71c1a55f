"""What a plan is made to contain, to see what that costs: at least one replica of some deployments on some offers.

Offers named by a requirement form pools of their own, with spare nodes of their own where spares are kept, so that
"on these offers" is decided by the optimiser and not by how a pool is split afterwards.
"""

from collections.abc import Collection, Sequence

import numpy as np

from solver.fleet.pools import Pairs, Pool
from solver.fleet.problem import BoolArray, FleetProblem, Requirement


def meeting(problem: FleetProblem, pools: Sequence[Pool], pairs: Pairs, requirement: Requirement) -> BoolArray:
    """Pairs whose replicas count: (N,)."""
    on_offers = np.ones(len(pools), dtype=np.bool_)
    if requirement.offer_ids is not None:
        # All offers of a pool are named or none is: the first one speaks for them.
        on_offers = np.array([problem.offers[p.offers[0]].id in requirement.offer_ids for p in pools], dtype=np.bool_)
    counted: BoolArray = on_offers[pairs.pool]
    if requirement.keys is not None:
        counted = counted & np.isin(problem.deployments.key[pairs.deployment], sorted(requirement.keys))
    return counted


def met_by_none(problem: FleetProblem, pools: Sequence[Pool], pairs: Pairs) -> tuple[str, ...]:
    """Why no plan can contain what is required."""
    return tuple(
        f"{requirement.name}: no candidate on any offer"
        for requirement in problem.required
        if not meeting(problem, pools, pairs, requirement).any()
    )


def named_rows(problem: FleetProblem) -> list[BoolArray]:
    """For each requirement that names deployments, its rows of the table: another deployment may not stand in."""
    return [np.isin(problem.deployments.key, sorted(r.keys)) for r in problem.required if r.keys is not None]


def lacking(
    problem: FleetProblem, pools: Sequence[Pool], pairs: Pairs, placed: Collection[tuple[int, int, int]]
) -> list[BoolArray]:
    """Of each requirement that the placements (row, first offer of the pool, offer) do not meet, the pairs that would."""
    anchors = [pool.offers[0] for pool in pools]
    found = []
    for requirement in problem.required:
        counted = meeting(problem, pools, pairs, requirement)
        keys = (
            (int(pairs.deployment[i]), anchors[int(pairs.pool[i])], int(pairs.offer[i]))
            for i in np.flatnonzero(counted)
        )
        if not any(key in placed for key in keys):
            found.append(counted)
    return found
