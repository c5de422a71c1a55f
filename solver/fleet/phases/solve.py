"""Solving a problem with pools: reduce, prove with HiGHS, read the plan, report truthfully."""

import math

from solver.fleet.highs import solve_with_highs
from solver.fleet.phases.formulation import RolesProblem, RolesResult, build_roles, placements, read_plan
from solver.fleet.phases.reduce import draft_usd, merge_places, prune, within_limits
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.outcome import Outcome


def solve_roles(
    problem: RolesProblem,
    *,
    time_limit_s: float = 10.0,
    gap_fraction: float = 0.0,
    at_most_usd: float = math.inf,
    exact_steps: bool = True,
) -> RolesResult:
    """The cheapest plan; ``infeasible`` also where every plan is shown to cost more than ``at_most_usd``.

    exact_steps: off keeps every place and candidate, for comparing. Raises SolverFailedError where the solver fails.
    """
    if not exact_steps:
        return _solve(problem, time_limit_s, gap_fraction, at_most_usd, pruned=False)
    found = _solve(merge_places(problem), time_limit_s, gap_fraction, at_most_usd, pruned=True)
    if found.plan is not None and not within_limits(problem, dict(found.plan.nodes)):
        return _solve(problem, time_limit_s, gap_fraction, at_most_usd, pruned=True)
    return found


def _solve(
    problem: RolesProblem, time_limit_s: float, gap_fraction: float, at_most_usd: float, *, pruned: bool
) -> RolesResult:
    every = placements(problem)
    highest = min(at_most_usd, math.inf if problem.budget_usd_per_hour is None else problem.budget_usd_per_hour)
    ceiling, bound, kept = math.inf, 0.0, every
    if pruned:
        ceiling = min(highest, draft_usd(problem, every))
        bound, kept = prune(problem, every, ceiling)
    if math.isinf(bound) or bound > highest * (1 + PROVEN_GAP_FRACTION):
        return RolesResult(Outcome.INFEASIBLE, None, None, None, None, len(every), 0.0)
    model = build_roles(problem, kept, ceiling)
    solved = solve_with_highs(model.programme, None, time_limit_s, gap_fraction, 0)
    if solved.proof == "infeasible":
        return RolesResult(Outcome.INFEASIBLE, None, None, None, None, len(every), solved.seconds)
    if solved.proof == "no_plan_found":
        return RolesResult(
            Outcome.UNKNOWN, None, None, max(bound, solved.bound or 0.0), None, len(every), solved.seconds
        )
    plan = read_plan(model)
    usd = plan.usd_per_hour(problem)
    lower = min(usd, max(bound, solved.bound if solved.bound is not None else 0.0))
    gap = gap_between(usd, lower)
    if gap <= PROVEN_GAP_FRACTION:
        gap, lower = 0.0, usd
    return RolesResult(
        Outcome.OPTIMAL if gap == 0.0 else Outcome.FEASIBLE, plan, usd, lower, gap, len(every), solved.seconds
    )
