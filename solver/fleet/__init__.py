"""The fleet optimiser: which nodes, from which offers, running what, at least cost, with a proof."""

from solver.errors import SolverFailedError
from solver.fleet.deployments import ANY_SITE, WHOLE, Deployment, DeploymentTable, Split
from solver.fleet.plan import FleetResult, NodeGroup, Plan, Route
from solver.fleet.problem import Demand, FleetProblem, Limits, MustUse, OfferSlot
from solver.fleet.solve import SolveOptions, solve_fleet
from solver.fleet.verify import verify
from solver.limit import FaultTolerance, Quota

__all__ = [
    "ANY_SITE",
    "WHOLE",
    "Demand",
    "Deployment",
    "DeploymentTable",
    "FaultTolerance",
    "FleetProblem",
    "FleetResult",
    "Limits",
    "MustUse",
    "NodeGroup",
    "OfferSlot",
    "Plan",
    "Quota",
    "Route",
    "SolveOptions",
    "SolverFailedError",
    "Split",
    "solve_fleet",
    "verify",
]
