"""All periods beside given commitments in one programme: what settles batch work, which ties them to each other."""

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_diag, coo_array, vstack

from solver.errors import SolverFailedError
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.units import SECONDS_PER_HOUR

OPTIMAL, LIMIT, INFEASIBLE = 0, 1, 2
"""What ``scipy.optimize.milp`` ended with."""


def solve_together(
    problem: HorizonProblem, model: PeriodModel, nodes: IntArray, seconds: float
) -> tuple[float, list[PeriodChoice] | None]:
    """(bound on the present USD of the periods, a choice for each of them) beside these commitments.

        min  Σ_t weight_t c·v_t      v_t in the programme of period t,     Σ_t 3600 hours_t q_bt ≥ B_b

    Whole numbers throughout. The bound is infinite where there is no plan; choices are None where none was found.
    """
    committed = problem.committed(nodes)
    width, count = len(model.upper), len(problem.periods)
    limits = [model.bounds(t, committed[period.month]) for t, period in enumerate(problem.periods)]
    if not width:
        return (math.inf if problem.batch or problem.demand.any() else 0.0), None
    cost = np.concatenate([model.costs(np.zeros(model.types)) * weight for weight in problem.weights])
    done = coo_array(
        (
            [
                period.hours * SECONDS_PER_HOUR / work.requests
                for b, work in enumerate(problem.batch)
                for period in problem.periods
            ],
            (
                [b for b in range(len(problem.batch)) for _ in range(count)],
                [t * width + model.batch[b] for b in range(len(problem.batch)) for t in range(count)],
            ),
        ),
        shape=(len(problem.batch), count * width),
    )
    lower = np.concatenate([*(low for low, _ in limits), np.ones(len(problem.batch))])
    upper = np.concatenate([np.tile(model.row_upper, count), np.full(len(problem.batch), np.inf)])
    solved = milp(
        cost,
        constraints=LinearConstraint(vstack([block_diag([model.matrix] * count), done]).tocsr(), lower, upper),
        integrality=np.tile(model.whole.astype(np.int64), count),
        bounds=Bounds(0.0, np.concatenate([high for _, high in limits])),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if solved.status == INFEASIBLE:
        return math.inf, None
    if solved.status not in (OPTIMAL, LIMIT):
        raise SolverFailedError(f"the periods together were not solved: {solved.message}")
    bound = 0.0 if solved.mip_dual_bound is None else max(0.0, float(solved.mip_dual_bound))
    if solved.x is None:
        return bound, None
    choices = []
    for t, (_, high) in enumerate(limits):
        choice = model.read(t, solved.x[t * width : (t + 1) * width], high)
        if choice is None:
            return bound, None
        choices.append(_busy(problem, model, choice, high))
    return bound, choices


def _busy(problem: HorizonProblem, model: PeriodModel, choice: PeriodChoice, upper: FloatArray) -> PeriodChoice:
    """The same with as much batch work as its replicas can do: the solver's tolerance leaves a little undone."""
    served = [0.0] * len(problem.workloads)
    for count, one in zip(choice.replicas, problem.deployments, strict=True):
        served[one.workload] += count * one.requests_per_s
    rates = tuple(
        min(served[work.workload], float(upper[column]))
        for work, column in zip(problem.batch, model.batch, strict=True)
    )
    return replace(choice, batch_requests_per_s=rates)
