"""The comparison of the planner over time with trying everything, and what plans must show for it to mean something."""

import math
import time
from collections.abc import Callable

import pytest

from solver.horizon.plan import HorizonPlan, HorizonResult
from solver.horizon.problem import HorizonProblem
from solver.horizon.solve import HorizonOptions, solve_horizon
from solver.horizon.verify import verify
from tests.seeds import cases

INSTANCES = cases(500)
EXACT = HorizonOptions(time_limit_s=60.0, gap_fraction=0.0)


def solved(problem: HorizonProblem, options: HorizonOptions = EXACT) -> HorizonResult:
    return solve_horizon(problem, options, time.process_time)


def commits(plan: HorizonPlan, _problem: HorizonProblem) -> bool:
    return any(plan.commitments)


def takes_spot(plan: HorizonPlan, problem: HorizonProblem) -> bool:
    return plan.hourly_usd(problem, interruptible=True) > 0.0


def buys(plan: HorizonPlan, problem: HorizonProblem) -> bool:
    return plan.committed_usd(problem, "purchase") > 0.0


def works(plan: HorizonPlan, problem: HorizonProblem) -> bool:
    return min(plan.batch_requests(problem)) > 0.0


def spans(plan: HorizonPlan, problem: HorizonProblem) -> bool:
    return any(
        count and problem.spans(one) > 1
        for choice in plan.choices
        for count, one in zip(choice.replicas, problem.deployments, strict=True)
    )


def check_against_enumeration(
    make: Callable[[int], HorizonProblem],
    best_of: Callable[[HorizonProblem], float],
    shows: Callable[[HorizonPlan, HorizonProblem], bool],
) -> None:
    """Planner and enumeration agree on INSTANCES problems.

    shows: what plans must contain often enough for the comparison to mean something.
    """
    infeasible = shown = 0
    for seed in range(INSTANCES):
        problem = make(seed)
        plan = agreed(problem, best_of(problem), seed)
        infeasible += plan is None
        shown += plan is not None and shows(plan, problem)
    assert infeasible > 0.05 * INSTANCES
    assert shown > 0.2 * INSTANCES


def agreed(problem: HorizonProblem, best: float, seed: int) -> HorizonPlan | None:
    """The planner's plan, which costs what the best one found by trying everything does; None where there is none."""
    result = solved(problem)
    assert verify(problem, result) == [], seed
    if math.isinf(best):
        assert result.outcome == "infeasible", seed
        return None
    assert result.outcome == "optimal", seed
    assert result.usd == pytest.approx(best, rel=1e-6), seed
    assert result.plan is not None
    return result.plan
