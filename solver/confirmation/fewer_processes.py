"""Of plans that cost the same, the one with fewer processes that answer: each takes a processor of the host."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solver.confirmation.capacities import EveryCapacity
from solver.fleet import FleetResult, Plan
from solver.fleet.verify import verify_plan
from solver.planning.assemble import Assembly
from solver.planning.placements import Placement, placements


def behind_fewer_processes(
    assembly: Assembly, result: FleetResult, capacities: EveryCapacity, in_time: Callable[[], bool]
) -> FleetResult:
    """The plan with replicas behind as many processes as are asked, wherever these hold what it sends them on the same machines.

    The same where power or carbon is what is minimised, which such replicas may differ in.
    """
    plan, multiple = result.plan, result.throughput_multiple or 0.0
    if plan is None or assembly.problem.objective not in ("cost", "throughput"):
        return result
    for place in placements(assembly, plan):
        key = _key_as_asked(assembly, place)
        if key is None or not in_time():
            continue
        moved = _moved(plan, _key_of(assembly, place, place.row), key, place.offer_id)
        if verify_plan(assembly.problem, moved, multiple):
            continue
        row = int(assembly.row_of[key])
        those = [one for one in placements(assembly, moved) if (one.offer_id, one.row) == (place.offer_id, row)]
        if capacities.hold(assembly, [one for one in those if one.workload == place.workload], in_time):
            plan = moved
    return result if plan is result.plan else replace(result, plan=plan, power_w=plan.power_w(assembly.problem))


def _key_as_asked(assembly: Assembly, place: Placement) -> int | None:
    """The deployment that is the same but for how many processes answer, as many as are asked; None where it is none other, or serves
    nothing."""
    row = int(assembly.screened[place.workload].space.behind_as_asked[place.row])
    if row == place.row or place.role != "aggregated":
        return None
    return _key_of(assembly, place, row)


def _key_of(assembly: Assembly, place: Placement, row: int) -> int | None:
    """The deployment of a row in the place of another one's."""
    table = assembly.problem.deployments
    offer = next(one for one in assembly.problem.offers if one.id == place.offer_id)
    mine = assembly.rows_in_role(place.workload) & (assembly.row_of == row)
    mine &= table.node_type == table.node_type_ids.index(offer.node_type_id)
    mine &= np.array([classes == place.classes for classes in assembly.class_sets])[assembly.classes_of]
    keys = np.flatnonzero(mine).tolist()
    return int(keys[0]) if keys else None


def _moved(plan: Plan, before: int | None, after: int, offer_id: str) -> Plan:
    """The plan with one deployment in the place of another on an offer."""
    groups = []
    for group in plan.groups:
        counts: dict[int, int] = {}
        for key, count in group.replicas:
            own = after if key == before and group.offer_id == offer_id else key
            counts[own] = counts.get(own, 0) + count
        groups.append(replace(group, replicas=tuple(counts.items())))
    routes = tuple(
        replace(route, key=after) if route.key == before and route.offer_id == offer_id else route
        for route in plan.routes
    )
    return replace(plan, groups=tuple(groups), routes=routes)
