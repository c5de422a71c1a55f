"""What a loss of providers or regions leaves, and what surviving it takes at least.

After a loss the replicas that remain take all demand: traffic is routed anew, nothing is started or moved. They may
then be used up to ``FaultTolerance.utilisation_limit_fraction``, where normal operation keeps the workload's own limit.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solver.fleet.deployments import FloatArray
from solver.fleet.groups.offer_groups import OfferGroup, Pairs, loads
from solver.fleet.plan import Plan
from solver.fleet.problem import FleetProblem
from solver.fleet.routing import Placed, route
from solver.limit import DomainKind


@dataclass(frozen=True, slots=True)
class WorstLoss:
    """The loss that leaves a workload's replicas busiest. utilisation_fraction: of their capacity; inf if none is left."""

    workload: int
    kind: DomainKind
    lost: tuple[str, ...]
    utilisation_fraction: float


def headroom_factor(problem: FleetProblem, workload: int) -> float:
    """ρ_w / ρ_f: capacity wanted after a loss, in units of the capacity wanted in normal operation.

    Below one where replicas may be used harder after a loss than before it.
    """
    after = problem.limits.fault_tolerance.utilisation_limit_fraction
    return problem.demands[workload].utilisation_limit_fraction / after


def is_routed_by_class(problem: FleetProblem, workload: int) -> bool:
    """Has the workload several traffic classes, so that capacity is no single number?"""
    return sum(rate > 0 for rate in problem.demands[workload].requests_per_s) > 1


def least_capacity(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> FloatArray:
    """By workload, the least capacity of any plan in units of what normal operation wants.

    Each of D domains is in k/D of all losses of k of them. Summed over all losses, what remains of capacity C is
    (1 − k/D) of it, and after each it must be h, the ``headroom_factor``:

        C ≥ max(1, h · D / (D − k));   inf where D ≤ k
    """
    least = np.ones(len(problem.demands))
    for position, (_, count) in enumerate(problem.limits.fault_tolerance.losses):
        names = [group.domains[position] for group in groups]
        number = {name: n for n, name in enumerate(dict.fromkeys(names))}
        domain_of_group = np.array([number[name] for name in names], dtype=np.int64)
        for w in range(len(problem.demands)):
            start, end = (int(edge) for edge in np.searchsorted(pairs.workload, [w, w + 1]))
            domains = len(np.unique(domain_of_group[pairs.group[start:end]]))
            factor = headroom_factor(problem, w) * domains / (domains - count) if domains > count else math.inf
            least[w] = max(least[w], factor)
    return least


def worst_losses(problem: FleetProblem, load: FloatArray, replicas: Mapping[Placed, int]) -> list[WorstLoss]:
    """For each workload and each kind of loss to be survived, the worst one.

    load: see ``Pairs.load``, by deployment row. replicas: by (deployment row, position of an offer).
    """
    found = []
    for w, demand in enumerate(problem.demands):
        mine = {key: count for key, count in replicas.items() if int(problem.deployments.workload[key[0]]) == w}
        if not any(demand.requests_per_s):
            continue
        for kind, count in problem.limits.fault_tolerance.losses:
            worst = max(
                (
                    WorstLoss(w, kind, lost, _busiest_without(problem, load, mine, w, kind, frozenset(lost)))
                    for lost in _losses(problem, load, mine, w, kind, count)
                ),
                key=lambda loss: loss.utilisation_fraction,
            )
            found.append(worst)
    return found


def losses_of_plan(problem: FleetProblem, plan: Plan) -> list[WorstLoss]:
    """``worst_losses`` of a finished plan, at the demand as stated."""
    if not problem.limits.fault_tolerance.losses:
        return []
    position = {offer.id: o for o, offer in enumerate(problem.offers)}
    row_of_key = {key: row for row, key in enumerate(problem.deployments.key.tolist())}
    placed = {(row_of_key[key], position[offer]): count for (key, offer), count in plan.replicas().items()}
    return worst_losses(problem, loads(problem), placed)


def _losses(
    problem: FleetProblem,
    load: FloatArray,
    replicas: Mapping[Placed, int],
    workload: int,
    kind: DomainKind,
    count: int,
) -> list[tuple[str, ...]]:
    """Losses among which the worst one is: of a single traffic class, that of the domains with most capacity."""
    by_domain: dict[str, dict[Placed, int]] = {}
    for placed, number in replicas.items():
        by_domain.setdefault(problem.offers[placed[1]].domain(kind), {})[placed] = number
    names = sorted(by_domain)
    if len(names) > count and is_routed_by_class(problem, workload):
        return list(itertools.combinations(names, count))
    busiest = {name: route(problem, load, held)[0] for name, held in by_domain.items()}
    names.sort(key=lambda name: (busiest[name], name))
    return [tuple(names[:count])]


def _busiest_without(
    problem: FleetProblem,
    load: FloatArray,
    replicas: Mapping[Placed, int],
    workload: int,
    kind: DomainKind,
    lost: frozenset[str],
) -> float:
    left = {placed: n for placed, n in replicas.items() if problem.offers[placed[1]].domain(kind) not in lost}
    if not left:
        return math.inf
    return route(problem, load, left)[0] * problem.demands[workload].utilisation_limit_fraction
