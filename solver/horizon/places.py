"""Where workloads may run: which nodes are one another's equals, and which sources a replica may stand on.

Nodes of one machine are equal where every workload may use all of them or none, from the same distance. They stay one
node type however many providers and regions rent them out; where a workload tells them apart they are several.
"""

from collections.abc import Sequence
from typing import TypeAlias

from solver.workload import Workload

Standing: TypeAlias = tuple[int | None, ...]
"""By workload: which of its round trips a place is at (0 where it states none), None where it may not run there."""


def standing(workloads: Sequence[Workload], provider: str, region: str) -> Standing:
    """How all workloads see one place."""
    return tuple(distance(workload, provider, region) for workload in workloads)


def distance(workload: Workload, provider: str, region: str) -> int | None:
    """Position in ``distances_s`` of the round trip to a place, None where the workload may not run there.

    A region that a workload with distances leaves out is one it may not use.
    """
    if not workload.places.admit(provider, region):
        return None
    if not workload.network_s_by_region:
        return 0
    away = workload.network_s_by_region.get(region)
    return None if away is None else workload.distances_s.index(away)


def may_stand(workload: Workload, network_s: float, provider: str, region: str) -> bool:
    """May a replica counted at this round trip stand in a place?"""
    if not workload.places.admit(provider, region):
        return False
    return not workload.network_s_by_region or workload.network_s_by_region.get(region) == network_s
