"""How a plan was found, as the answer states it."""

from solver.confirm import Confirmations
from solver.fleet import FleetResult
from solver.planning import SolveReport


def report(result: FleetResult, confirmations: Confirmations, rounds: int) -> SolveReport:
    """The last solve, and what its plan took to hold in simulation."""
    outcome = "infeasible" if result.plan is None else "optimal" if result.outcome == "optimal" else "feasible"
    return SolveReport(
        outcome=outcome,
        status=result.status,
        objective=result.objective,
        bound=result.bound,
        gap_fraction=result.gap_fraction,
        candidates=result.candidates,
        solver=result.solver,
        solver_seconds=result.solver_seconds,
        confirmation_rounds=rounds,
        simulated=confirmations.simulations,
    )
