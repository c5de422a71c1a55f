"""How a plan was found, as the answer states it, and that it is one."""

from solver.confirmation.confirmations import Confirmations
from solver.errors import VerificationError
from solver.fleet import FleetResult, verify
from solver.outcome import Outcome
from solver.planning.assemble import Assembly
from solver.planning.types import SolveReport


def report(result: FleetResult, confirmations: Confirmations, rounds: int) -> SolveReport:
    """The last solve, and what its plan took to hold in simulation."""
    return SolveReport(
        outcome=Outcome.INFEASIBLE if result.plan is None else result.outcome,
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


def check(assembly: Assembly, result: FleetResult) -> None:
    """Raises VerificationError where the independent checker refuses the plan."""
    problems = verify(assembly.problem, result)
    if problems:
        raise VerificationError("; ".join(problems[:5]))
