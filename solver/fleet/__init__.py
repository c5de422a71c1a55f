"""The fleet optimiser: which nodes, from which offers, running what, at least cost, with a proof."""

from solver.errors import SolverFailedError
from solver.fleet.plan import FleetResult, NodeGroup, Plan, Route
from solver.fleet.problem import (
    ANY_SITE,
    WHOLE,
    Demand,
    Deployment,
    DeploymentTable,
    FleetProblem,
    Limits,
    Objective,
    OfferSlot,
    Quota,
    Requirement,
    Split,
    Survive,
)
from solver.fleet.solve import SolveOptions, solve_fleet
from solver.fleet.verify import verify

__all__ = [
    "ANY_SITE",
    "WHOLE",
    "Demand",
    "Deployment",
    "DeploymentTable",
    "FleetProblem",
    "FleetResult",
    "Limits",
    "NodeGroup",
    "Objective",
    "OfferSlot",
    "Plan",
    "Quota",
    "Requirement",
    "Route",
    "SolveOptions",
    "SolverFailedError",
    "Split",
    "Survive",
    "solve_fleet",
    "verify",
]
