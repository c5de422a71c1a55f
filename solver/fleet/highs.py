"""Handing a PuLP model to HiGHS in one call, and to CBC where HiGHS is absent or fails.

PuLP's own HiGHS interface adds columns and rows one by one, and maps an interrupted solve without any solution to
"Optimal"; this one passes the whole model at once and reads what HiGHS itself says about its solution.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pulp

from solver.errors import SolverFailedError

Proof = Literal["optimal", "feasible", "infeasible", "no_plan_found"]

THREADS = 1
"""One value for good: HiGHS refuses, silently through PuLP, to run with another one in the same thread."""

SEARCH_FOR_A_PROOF: dict[str, Any] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_zi_round": False,
    "mip_heuristic_run_shifting": False,
    "mip_pscost_minreliable": 1,
    "mip_detect_symmetry": False,
}
"""With a near-optimal plan in hand the time goes into the proof: looking for plans, trying branches and symmetry more
than doubled it on shared fleets, and where only better plans are let in, looking for them took four fifths of it."""

FEW_COLUMNS = 1_000
"""Programmes up to this size may be begun without the jump between infeasible points by which HiGHS looks for a first plan: it takes five
milliseconds however small the programme is, where most are solved at their root in one."""
WITHOUT_JUMP: dict[str, Any] = {"mip_heuristic_run_feasibility_jump": False}


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """proof: what the solver showed. bound: of the objective, None if it gives none. seconds: the solver's own."""

    proof: Proof
    bound: float | None
    seconds: float


class FastHiGHS(pulp.HiGHS):  # type: ignore[misc]  # PuLP has no types
    """PuLP's HiGHS with the model passed as one sparse matrix and an optional first solution."""

    def __init__(self, start: Mapping[pulp.LpVariable, float] | None = None, **options: Any) -> None:
        super().__init__(msg=False, threads=THREADS, **options)
        self.start = start

    def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:  # noqa: N802 - PuLP's name
        """As PuLP does, but an option HiGHS does not know is an error: PuLP drops it without a word."""
        import highspy

        options: dict[str, Any] = self.optionsDict
        self.optionsDict: dict[str, Any] = {}
        super().createAndConfigureSolver(lp)
        self.optionsDict = options
        for name, value in options.items():
            if lp.solverModel.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolverFailedError(f"HiGHS refuses option {name}={value}")

    def buildSolverModel(self, lp: pulp.LpProblem) -> None:  # noqa: N802 - PuLP's name
        import highspy

        sign = -1.0 if lp.sense == pulp.LpMaximize else 1.0
        variables = lp.variables()
        for i, variable in enumerate(variables):
            variable.index = i
        infinity = highspy.kHighsInf
        starts, index, value, row_lower, row_upper = [0], [], [], [], []
        for i, constraint in enumerate(lp.constraints()):
            constraint.index = i
            for variable, coefficient in constraint.items():
                index.append(variable.index)
                value.append(coefficient)
            starts.append(len(index))
            lower, upper = constraint.getLb(), constraint.getUb()
            row_lower.append(-infinity if lower is None else lower)
            row_upper.append(infinity if upper is None else upper)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(variables), len(row_lower)
        model.col_cost_ = np.array([sign * lp.objective.get(v, 0.0) for v in variables], dtype=np.float64)
        model.col_lower_ = np.array([-infinity if v.lowBound is None else v.lowBound for v in variables], dtype=float)
        model.col_upper_ = np.array([infinity if v.upBound is None else v.upBound for v in variables], dtype=float)
        model.row_lower_, model.row_upper_ = np.array(row_lower, dtype=float), np.array(row_upper, dtype=float)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(starts, dtype=np.int32)
        model.a_matrix_.index_ = np.array(index, dtype=np.int32)
        model.a_matrix_.value_ = np.array(value, dtype=np.float64)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[v.cat == pulp.LpInteger] for v in variables]
        if lp.solverModel.passModel(model) == highspy.HighsStatus.kError:
            raise SolverFailedError("HiGHS refused the model")
        if self.start:
            known = {variable for variable in variables if variable in self.start}  # unused ones are no columns
            columns = np.array([v.index for v in self.start if v in known], dtype=np.int32)
            values = np.array([value for v, value in self.start.items() if v in known], dtype=np.float64)
            lp.solverModel.setSolution(len(columns), columns, values)

    def findSolutionValues(self, lp: pulp.LpProblem) -> tuple[int, int]:  # noqa: N802 - PuLP's name
        """Values only where HiGHS calls its primal solution feasible; PuLP's table of statuses is not consulted."""
        import highspy

        feasible = lp.solverModel.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if not feasible:
            return pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        values = lp.solverModel.getSolution().col_value
        for variable in lp.variables():
            variable.varValue = values[variable.index]
        closed = lp.solverModel.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return pulp.LpStatusOptimal, pulp.LpSolutionOptimal if closed else pulp.LpSolutionIntegerFeasible


def solve_with_highs(
    programme: pulp.LpProblem,
    start: Mapping[pulp.LpVariable, float] | None,
    time_limit_s: float,
    gap_fraction: float,
    seed: int,
    *,
    to_refute: bool = False,
    jumps: bool = True,
) -> SolverAnswer:
    """Solve in process. to_refute: most likely there is no plan. jumps: begins with HiGHS' jump however small the programme is.

    Raises SolverFailedError if HiGHS is missing or neither solves nor refutes the model.
    """
    try:
        import highspy
    except ImportError as missing:
        raise SolverFailedError("highspy is not installed") from missing
    effort: dict[str, Any] = {}
    if start or to_refute:
        effort = SEARCH_FOR_A_PROOF
    elif not jumps and len(programme.variables()) <= FEW_COLUMNS:
        effort = WITHOUT_JUMP
    solver = FastHiGHS(
        start,
        **effort,
        gapRel=gap_fraction,
        gapAbs=0.0,
        timeLimit=time_limit_s,
        random_seed=seed,
        mip_heuristic_run_root_reduced_cost=False,  # it does not look at the clock: six seconds at a limit of half a second
        mip_allow_restart=False,  # restarts doubled the time of shared fleets and found no better plan
        mip_feasibility_tolerance=1e-7,
        primal_feasibility_tolerance=1e-8,
    )
    try:
        programme.solve(solver)
    except (RuntimeError, ValueError, pulp.PulpSolverError) as failure:
        raise SolverFailedError(str(failure)) from failure
    highs = programme.solverModel
    status, info, seconds = highs.getModelStatus(), highs.getInfo(), float(highs.getRunTime())
    sign = -1.0 if programme.sense == pulp.LpMaximize else 1.0
    bound = sign * info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else None
    if programme.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        proof: Proof = "optimal" if programme.sol_status == pulp.LpSolutionOptimal else "feasible"
        return SolverAnswer(proof, bound, seconds)
    # Every variable is bounded where a bound exists at all, so "unbounded or infeasible" can only be infeasible
    # (minimisation of non-negative terms; throughput without any limit is refused before it gets here).
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return SolverAnswer("infeasible", None, seconds)
    if status in (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kInterrupt):
        return SolverAnswer("no_plan_found", bound, seconds)
    raise SolverFailedError(f"HiGHS ended with {highs.modelStatusToString(status)}")


def solve_with_cbc(programme: pulp.LpProblem, time_limit_s: float, gap_fraction: float, seed: int) -> SolverAnswer:
    """Solve in a child process with the CBC that comes with PuLP; it gives a bound only when it closes the gap."""
    solver = pulp.PULP_CBC_CMD(
        msg=False,
        threads=THREADS,
        timeLimit=time_limit_s,
        gapRel=gap_fraction,
        options=[f"randomSeed {seed + 1}", f"randomCbcSeed {seed + 1}", "primalT 1e-8", "integerT 1e-7"],
    )
    try:
        programme.solve(solver)
    except (OSError, pulp.PulpSolverError) as failure:
        raise SolverFailedError(str(failure)) from failure
    seconds = float(getattr(programme, "solutionTime", 0.0) or 0.0)
    if programme.sol_status == pulp.LpSolutionOptimal:
        closed = gap_fraction == 0.0
        return SolverAnswer("optimal", float(pulp.value(programme.objective)) if closed else None, seconds)
    if programme.sol_status == pulp.LpSolutionIntegerFeasible:
        return SolverAnswer("feasible", None, seconds)
    if programme.status == pulp.LpStatusInfeasible:
        return SolverAnswer("infeasible", None, seconds)
    return SolverAnswer("no_plan_found", None, seconds)
