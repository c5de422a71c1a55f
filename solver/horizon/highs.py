"""Handing a mixed-integer programme to HiGHS, with a first solution, and reading what it proves."""

import math
from dataclasses import dataclass

import highspy
import numpy as np
from scipy.sparse import csr_array

from solver.errors import SolverFailedError
from solver.fleet.highs import THREADS
from solver.horizon.problem import FloatArray

OPTIONS: dict[str, float | bool | int] = {
    "output_flag": False,
    "threads": THREADS,
    "mip_feasibility_tolerance": 1e-7,
    "primal_feasibility_tolerance": 1e-8,
    "mip_abs_gap": 0.0,
}


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """min cost · x,  row_lower ≤ matrix x ≤ row_upper,  lower ≤ x ≤ upper,  x whole where ``whole``."""

    cost: FloatArray
    matrix: csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    whole: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ProgrammeAnswer:
    """bound: nothing costs less; infinite where there is no solution. values: the best solution found."""

    bound: float
    values: FloatArray | None


def solve_programme(
    programme: Programme, time_limit_s: float, gap_fraction: float = 0.0, start: FloatArray | None = None
) -> ProgrammeAnswer:
    """The best solution within the time, and what it proves. Raises SolverFailedError."""
    if not len(programme.cost):
        empty = bool((programme.row_lower > 0.0).any() or (programme.row_upper < 0.0).any())
        return ProgrammeAnswer(math.inf, None) if empty else ProgrammeAnswer(0.0, np.zeros(0))
    highs = highspy.Highs()  # type: ignore[no-untyped-call]  # its bindings have no types
    options = OPTIONS | {"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": gap_fraction}
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverFailedError(f"HiGHS refuses option {name}={value}")
    if highs.passModel(_model(programme)) == highspy.HighsStatus.kError:
        raise SolverFailedError("HiGHS refused the programme of several periods")
    if start is not None:
        highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
    highs.run()
    status, info = highs.getModelStatus(), highs.getInfo()
    # All costs and variables that matter are bounded below, so that "unbounded or infeasible" is infeasible.
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return ProgrammeAnswer(math.inf, None)
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise SolverFailedError(f"HiGHS ended several periods with {highs.modelStatusToString(status)}")
    values = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        values = np.array(highs.getSolution().col_value)
    return ProgrammeAnswer(max(0.0, info.mip_dual_bound), values)


def _model(programme: Programme) -> highspy.HighsLp:
    infinity = highspy.kHighsInf
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(programme.cost), len(programme.row_lower)
    model.col_cost_ = programme.cost
    model.col_lower_ = programme.lower
    model.col_upper_ = np.where(np.isinf(programme.upper), infinity, programme.upper)
    model.row_lower_ = np.where(np.isinf(programme.row_lower), -infinity, programme.row_lower)
    model.row_upper_ = np.where(np.isinf(programme.row_upper), infinity, programme.row_upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = programme.matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = programme.matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = programme.matrix.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    model.integrality_ = [kinds[bool(one)] for one in programme.whole]
    return model
