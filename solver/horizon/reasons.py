"""Why no plan over time exists, workload by workload, in terms of what was asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from solver.hardware import Offer
from solver.horizon.problem import HorizonProblem
from solver.limit import Limit
from solver.workload import ANYWHERE, Workload


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a workload has no plan. left_out_by: choices and rules that leave out what it would otherwise be admitted to."""

    workload: str
    detail: str
    left_out_by: tuple[Limit, ...] = ()


def reasons(
    problem: HorizonProblem,
    workloads: Sequence[Workload],
    places: Sequence[tuple[str, str]],
    withheld: Sequence[tuple[Offer, frozenset[Limit]]],
    default_most: int | None = None,
) -> tuple[Reason, ...]:
    """places: provider and region of every source within the limits. withheld: offers that limits on regions and
    providers leave out, with those limits. default_most: nodes of an offer that states no number; None: any number."""
    found = []
    for w, workload in enumerate(workloads):
        name = workload.name
        if not any(workload.places.admit(*place) for place in places):
            lost = {limit for offer, limits in withheld if _admits(workload, offer) for limit in limits}
            own = "" if workload.places == ANYWHERE else "its regions and providers admit "
            found.append(Reason(name, f"{own}none of the machines within the limits", tuple(sorted(lost))))
        elif not any(one.workload == w for one in problem.deployments):
            found.append(Reason(name, "no machine that it may use meets its targets; rejected says how near they came"))
        elif (most := _most_served(problem, w, default_most)) < (peak := float(problem.demand[:, w].max())):
            found.append(Reason(name, f"asks for {peak:g} requests/s at its peak; all nodes offered serve {most:g}"))
    return tuple(found)


def _admits(workload: Workload, offer: Offer) -> bool:
    return workload.places.admit(offer.provider, offer.region)


def _most_served(problem: HorizonProblem, w: int, default_most: int | None) -> float:
    """Requests per second that all nodes there can be serve of one workload alone."""
    total = 0.0
    for t, node_type in enumerate(problem.node_types):
        per_device = [
            d.requests_per_s / d.devices_per_replica
            for d in problem.deployments
            if d.workload == w and d.node_type == t
        ]
        limits = [offer.max_nodes for offer in problem.hourly if offer.node_type == t]
        limits += list({one.id: one.max_nodes for one in problem.commitments if one.node_type == t}.values())
        most = math.inf if default_most is None else float(default_most)
        nodes = math.fsum(most if limit is None else limit for limit in limits)
        if per_device and nodes:
            total += nodes * node_type.devices * max(per_device)
    return total
