"""What the optimiser returns: nodes with what runs on each, traffic routed to it, and how sure we are."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from solver.fleet.problem import FleetProblem
from solver.outcome import Outcome, Status
from solver.units import kg_per_hour

SolverName = Literal["highs", "cbc", "bound", "greedy"]
"""``bound``: answered by arithmetic alone. ``greedy``: the plan is the heuristic's, the bound is proven."""

PROVEN_GAP_FRACTION = 1e-6
"""Gaps below this are the solvers' own feasibility tolerance, not a cheaper plan."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``units`` identical units of one offer, each of ``nodes_per_unit`` nodes running ``replicas``.

    A unit is one node, or the several whole nodes a replica spans. No replicas: idle spare nodes.
    replicas: (deployment key, count) in one unit. splits: (index into ``DeploymentTable.splits``, devices divided so) in one
    unit; all other devices are whole.
    """

    offer_id: str
    units: int
    nodes_per_unit: int
    replicas: tuple[tuple[int, int], ...]
    splits: tuple[tuple[int, int], ...] = ()

    @property
    def nodes(self) -> int:
        return self.units * self.nodes_per_unit


@dataclass(frozen=True, slots=True)
class Route:
    """Traffic of one class that one deployment's replicas in one offer serve."""

    key: int
    offer_id: str
    workload: int
    traffic_class: int
    requests_per_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    groups: tuple[NodeGroup, ...]
    routes: tuple[Route, ...]

    def nodes_by_offer(self) -> dict[str, int]:
        nodes: Counter[str] = Counter()
        for group in self.groups:
            nodes[group.offer_id] += group.nodes
        return dict(sorted(nodes.items()))

    def replicas(self) -> dict[tuple[int, str], int]:
        """Replicas by (deployment key, offer id)."""
        count: Counter[tuple[int, str]] = Counter()
        for group in self.groups:
            for key, replicas in group.replicas:
                count[key, group.offer_id] += replicas * group.units
        return dict(sorted(count.items()))

    def usd_per_hour(self, problem: FleetProblem) -> float:
        price = {offer.id: offer.usd_per_hour for offer in problem.offers}
        return math.fsum(price[offer] * nodes for offer, nodes in self.nodes_by_offer().items())

    def power_w(self, problem: FleetProblem) -> float:
        """Σ host power × nodes + Σ replica power × replicas."""
        host = {offer.id: offer.host_power_w for offer in problem.offers}
        table = problem.deployments
        replica = dict(zip(table.key.tolist(), table.power_w_per_replica.tolist(), strict=True))
        nodes_w = math.fsum(host[offer] * nodes for offer, nodes in self.nodes_by_offer().items())
        return nodes_w + math.fsum(replica[key] * count for (key, _), count in self.replicas().items())

    def carbon_kg_per_hour(self, problem: FleetProblem) -> float:
        """Σ over offers of their electricity's kg CO2e per kWh times what host and replicas draw there."""
        grid = {offer.id: offer.kg_co2e_per_kwh for offer in problem.offers}
        host = {offer.id: offer.host_power_w for offer in problem.offers}
        table = problem.deployments
        replica = dict(zip(table.key.tolist(), table.power_w_per_replica.tolist(), strict=True))
        nodes = (kg_per_hour(host[offer] * n, grid[offer]) for offer, n in self.nodes_by_offer().items())
        replicas = (kg_per_hour(replica[key] * n, grid[offer]) for (key, offer), n in self.replicas().items())
        return math.fsum((*nodes, *replicas))

    def objective(self, problem: FleetProblem, multiple: float) -> float:
        """What is minimised of this plan, or the multiple of demand that is maximised."""
        match problem.objective:
            case "cost":
                return self.usd_per_hour(problem)
            case "power":
                return self.power_w(problem)
            case "carbon":
                return self.carbon_kg_per_hour(problem)
            case "throughput":
                return multiple


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A plan and what is known about it.

    objective: of the plan, recomputed from it (USD/h, W, kg CO2e/h, or θ). bound: no plan is better. gap_fraction:
    |objective − bound| / |objective|, ours, not the solver's. throughput_multiple: θ, the multiple of all demand the routed traffic serves.
    candidates: (deployment, offer) pairs before reduction; solver_candidates: what reached the solver.
    solver_seconds: the solver's own clock.
    """

    outcome: Outcome
    status: Status
    solver: SolverName
    plan: Plan | None
    objective: float | None
    bound: float | None
    gap_fraction: float | None
    usd_per_hour: float | None
    power_w: float | None
    throughput_multiple: float | None
    candidates: int
    solver_candidates: int
    solver_seconds: float
    reasons: tuple[str, ...] = ()


def gap_between(objective: float, bound: float) -> float:
    """Relative distance between a plan's objective and the proven bound.

    >>> gap_between(100.0, 99.0)
    0.01
    >>> gap_between(0.0, 0.0)
    0.0
    """
    if objective == bound:
        return 0.0
    return abs(objective - bound) / max(abs(objective), 1e-12)
