"""The programme being built, with its variables: what the functions that add constraints share."""

from dataclasses import dataclass, field

import pulp

from solver.fleet.model.packing import Arc
from solver.fleet.reduce import ReducedProblem
from solver.hardware import PlaceKind

Terms = dict[pulp.LpVariable, float]


@dataclass(slots=True)
class Routing:
    """Who serves what. shares: y_ik by pair and class, where a workload has several classes; flows: f_sk by workload, exchange and
    class."""

    shares: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    flows: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)


@dataclass(slots=True)
class FleetProgramme:
    """The programme and its variables. group_rows: pairs of each group; replicas_bound: most of each pair; exchanges: pairs that
    prefill, and that decode, by workload and exchange."""

    programme: pulp.LpProblem
    reduced: ReducedProblem
    replicas: list[pulp.LpVariable] = field(default_factory=list)
    nodes: dict[int, pulp.LpVariable] = field(default_factory=dict)
    routing: Routing = field(default_factory=Routing)
    exchanges: dict[tuple[int, int], tuple[list[int], list[int]]] = field(default_factory=dict)
    in_use: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    arc_flow: dict[int, dict[Arc, pulp.LpVariable]] = field(default_factory=dict)
    split_devices: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    own_places: dict[tuple[int, PlaceKind, str], pulp.LpVariable] = field(default_factory=dict)
    multiple: pulp.LpVariable | None = None
    group_rows: list[list[int]] = field(default_factory=list)
    replicas_bound: list[int] = field(default_factory=list)

    def multiple_of(self, workload: int) -> pulp.LpVariable | None:
        """θ where the workload is served that multiple of its demand, None where it is served once."""
        return None if self.reduced.problem.demands[workload].is_fixed else self.multiple

    def at_most(self, terms: Terms, limit: float, name: str) -> None:
        expression = pulp.LpAffineExpression(terms)
        self.programme.addConstraint(pulp.LpConstraint(expression, pulp.LpConstraintLE, name, limit))

    def at_least(self, terms: Terms, limit: float, name: str) -> None:
        expression = pulp.LpAffineExpression(terms)
        self.programme.addConstraint(pulp.LpConstraint(expression, pulp.LpConstraintGE, name, limit))

    def equal(self, terms: Terms, value: float, name: str) -> None:
        expression = pulp.LpAffineExpression(terms)
        self.programme.addConstraint(pulp.LpConstraint(expression, pulp.LpConstraintEQ, name, value))
