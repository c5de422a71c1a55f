"""What every plan takes at least, and what using one candidate adds to that: arithmetic, before any solver."""

from dataclasses import dataclass

import numpy as np

from solver.fleet.deployments import FloatArray
from solver.fleet.groups.exchanges import dual_prices
from solver.fleet.groups.losses import least_capacity
from solver.fleet.groups.offer_groups import OfferGroup, Pairs
from solver.fleet.groups.required import meeting
from solver.fleet.problem import FleetProblem, Resource


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """A lower bound on a resource, and by how much using one replica / one node of a pair must exceed it.

    fixed: the part of ``lower`` that demands take which θ does not multiply.
    """

    lower: float
    fixed: float
    replica_slack: FloatArray
    node_slack: FloatArray


def bounds_of_resources(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> dict[Resource, Bounds]:
    """Of cost, and of what else the plan depends on."""
    resources: tuple[Resource, ...] = ("cost", "power", "carbon")
    return {r: bound_candidates(problem, groups, pairs, r) for r in resources if r == "cost" or problem.matters(r)}


def bound_candidates(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, resource: Resource) -> Bounds:
    """Lower bound of a resource and each pair's excess over it.

    Serving all of class k on pair j takes load_jk replicas of (a_j + c · node fraction) each; with nodes divisible,

        L = Σ_wk π_wk,   π_wk = min_j (a_j + c_j f_j) · load_jk

    π is dual feasible whatever other limits hold, so L bounds every plan from below; of prefill and decode see
    ``exchanges.dual_prices``. A replica of j saves at most v_j = max_k π_jk / load_jk of it, π_jk what is paid for k there,
    hence a plan with one replica of j costs at least L + (a_j + c_j f_j − v_j), and one with a node of group p at least
    L + c_p − max(0, max_{j in p} (v_j − a_j) / f_j), spares of the group added.
    Where losses are to be survived, each workload's part of L is multiplied by its ``least_capacity``.
    """
    node_price, replica_price = pairs.takes(resource)
    least, prices = dual_prices(pairs, len(problem.demands), replica_price + node_price * pairs.node_fraction)
    least[np.diff(np.searchsorted(pairs.workload, np.arange(len(problem.demands) + 1))) == 0] = 0.0
    of_workload = least.sum(axis=1)
    if problem.limits.fault_tolerance.losses:
        of_workload = of_workload * np.where(of_workload > 0, least_capacity(problem, groups, pairs), 1.0)
    fixed = float(of_workload[[demand.is_fixed for demand in problem.demands]].sum())
    each = [_excesses(problem, groups, pairs, resource, float(of_workload.sum()), price) for price in prices]
    lower = max(one[0] for one in each)
    replica_slack: FloatArray = np.max([below - lower + replica for below, replica, _ in each], axis=0)
    node_slack: FloatArray = np.max([below - lower + node for below, _, node in each], axis=0)
    return Bounds(lower, fixed, replica_slack, node_slack)


def _excesses(
    problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, resource: Resource, lower: float, price: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """(bound, excess of a replica, excess of a node) by pair, at one dual solution's prices of classes by pair."""
    node_price, replica_price = pairs.takes(resource)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.nanmax(np.where(pairs.load > 0, price / pairs.load, 0.0), axis=1, initial=0.0)
    best = np.zeros(len(groups))  # a node may also stand idle
    np.maximum.at(best, pairs.group, (value - replica_price) / pairs.node_fraction)
    group_price = np.full(len(groups), np.inf)
    np.minimum.at(group_price, pairs.group, node_price)
    spare = problem.limits.spare_nodes * group_price[pairs.group]
    replica_slack = np.maximum(replica_price + node_price * pairs.node_fraction - value, 0.0) + spare
    node_slack = np.maximum((group_price - best)[pairs.group], 0.0) + spare
    if problem.objective != "throughput":
        lower, replica_slack, node_slack = _beyond_required(problem, groups, pairs, lower, replica_slack, node_slack)
        # One node serves at most all of the demand.
        node_slack = np.maximum(node_slack, group_price[pairs.group] - lower + spare)
    return lower, replica_slack, node_slack


def _beyond_required(
    problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, lower: float, replica: FloatArray, node: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The bound and the excesses where every plan contains something required.

    Excesses of replicas, and of nodes of different groups, add up. So with r the least excess of what is required, no
    plan is better than L + r, and one with a pair of another group not better than L + r + its own excess; in the groups
    of what is required the excesses above L + r are those above L less r.
    """
    for requirement in problem.required:
        named = meeting(problem, groups, pairs, requirement)
        if not named.any():
            continue
        least = float(np.maximum(replica, node)[named].min())
        here = np.isin(pairs.group, np.unique(pairs.group[named]))
        return (
            lower + least,
            np.where(here, np.maximum(replica - least, 0.0), replica),
            np.where(here, np.maximum(node - least, 0.0), node),
        )
    return lower, replica, node
