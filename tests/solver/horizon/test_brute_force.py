"""The planner over time against trying everything, on tiny random horizons; plans pass the independent check."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from solver.horizon.master import Box, Master, groups_of
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.plan import HorizonPlan
from solver.horizon.problem import HorizonProblem
from solver.horizon.solve import HorizonOptions, solve_horizon
from solver.horizon.verify import verify, verify_plan
from tests.seeds import cases
from tests.solver.horizon.comparing import EXACT, buys, check_against_enumeration, commits, solved, spans
from tests.solver.horizon.instances import (
    cheapest,
    tiny,
    tiny_owned,
    tiny_spanning,
    with_batch,
)

BATCH_INSTANCES = 15


def quiet(seed: int) -> HorizonProblem:
    """With a period in which next to nothing is asked for, far below what a solver tells from nothing: a replica must run all the same."""
    problem = tiny(seed)
    first, *others = problem.periods
    hushed = replace(first, requests_per_s=tuple(rate * 3e-8 for rate in first.requests_per_s))
    return replace(problem, periods=(hushed, *others))


@pytest.mark.parametrize(
    ("make", "best_of", "shows"),
    [
        (tiny, cheapest, commits),
        (quiet, cheapest, commits),
        (tiny_owned, cheapest, buys),
        (tiny_spanning, cheapest, spans),
    ],
    ids=["reserved", "with a quiet period", "owned and discounted", "over several nodes"],
)
def test_equals_enumeration(
    make: Callable[[int], HorizonProblem],
    best_of: Callable[[HorizonProblem], float],
    shows: Callable[[HorizonPlan, HorizonProblem], bool],
) -> None:
    check_against_enumeration(make, best_of, shows)


def test_mutated_plans_are_refused() -> None:
    refused = 0
    for seed in range(30):
        problem = tiny_owned(seed) if seed % 3 == 2 else tiny(seed, spot=seed % 2 == 0)
        plan = solved(problem).plan
        if plan is None:
            continue
        assert verify_plan(problem, plan) == []
        for broken in _mutations(problem, plan):
            assert verify_plan(problem, broken) != [], (seed, broken)
            refused += 1
    assert refused > 20


def _mutations(problem: HorizonProblem, plan: HorizonPlan) -> list[HorizonPlan]:
    """All replicas or nodes of a period with demand taken away, nodes used that nobody committed to, spares left out."""
    found = []
    for t, choice in enumerate(plan.choices):
        if not any(problem.periods[t].requests_per_s):
            continue
        found.append(_with(plan, t, replace(choice, replicas=(0,) * len(choice.replicas))))
        for k, used in enumerate(choice.committed):
            if used:
                more = tuple(n + 1_000 if i == k else n for i, n in enumerate(choice.committed))
                found.append(_with(plan, t, replace(choice, committed=more)))
        if any(choice.hourly) and not any(choice.committed) and any(choice.replicas):
            found.append(_with(plan, t, replace(choice, hourly=(0,) * len(choice.hourly))))
        if problem.shared_limits and any(plan.commitments):
            found.append(replace(plan, commitments=tuple(1_000 * n for n in plan.commitments)))
        if any(choice.spares):
            found.append(_with(plan, t, replace(choice, spares=(0,) * len(choice.spares))))
    return found


def _with(plan: HorizonPlan, t: int, choice: PeriodChoice) -> HorizonPlan:
    return replace(plan, choices=tuple(choice if i == t else one for i, one in enumerate(plan.choices)))


@pytest.mark.parametrize("change", ["rate", "residual"])
def test_a_cost_that_ignores_discounting_or_residual_values_is_refused(change: str) -> None:
    refused, instances = 0, cases(60, few=25)
    for problem in map(tiny_owned, range(instances)):
        result = solved(problem)
        if result.plan is None or not any(
            n and one.payments for n, one in zip(result.plan.commitments, problem.commitments, strict=True)
        ):
            continue
        if change == "rate":
            other = replace(problem, discount_fraction_per_year=problem.discount_fraction_per_year + 0.2)
        else:
            kept = tuple(
                replace(one, payments=one.payments[:-1], usd_per_node=math.fsum(usd for _, usd in one.payments[:-1]))
                if one.payments
                else one
                for one in problem.commitments
            )
            other = replace(problem, commitments=kept)
        assert verify(other, result) != []
        refused += 1
    assert refused > instances / 6


def test_stated_figures_are_checked() -> None:
    problem = next(one for one in map(tiny, range(100)) if (solved(one).usd or 0.0) > 0.0)
    result = solved(problem)
    assert result.usd is not None
    for wrong in (
        replace(result, usd=result.usd * 0.99),
        replace(result, bound_usd=result.usd * 1.01),
        replace(result, gap_fraction=0.5),
        replace(result, bound_usd=result.usd * 0.9),
    ):
        assert verify(problem, wrong) != []


def test_batch_work_is_done_and_costs_no_less_than_the_bound() -> None:
    """Work that may run at any time is never dearer than the same work at an even rate around the clock."""
    planned = 0
    for seed in range(BATCH_INSTANCES):
        problem = with_batch(tiny(seed), seed)
        result = solved(problem, HorizonOptions(5.0, 1e-3))
        assert verify(problem, result) == [], seed
        (work,) = problem.batch
        even = work.requests / (730.0 * problem.months * 3600.0)
        steady = replace(
            problem,
            batch=(),
            periods=tuple(replace(p, requests_per_s=(*p.requests_per_s[:-1], even)) for p in problem.periods),
        )
        around_the_clock = solved(steady)
        if around_the_clock.usd is None:
            continue
        assert result.plan is not None, seed
        assert result.usd is not None
        assert result.bound_usd is not None
        assert result.bound_usd <= around_the_clock.usd * (1.0 + 1e-9), seed
        assert result.usd <= around_the_clock.usd * 1.02, seed
        planned += 1
    assert planned > 4


def test_ends_in_time_with_a_plan_and_a_bound() -> None:
    """A clock that runs out after a few looks: what is there by then is a plan, and its gap is the true one."""
    problem = next(one for one in map(tiny, range(100)) if (solved(one).usd or 0.0) > 0.0)
    ticks = iter(range(1_000_000))
    result = solve_horizon(problem, HorizonOptions(5.0, 0.0), lambda: float(next(ticks)))
    assert verify(problem, result) == []
    exact = solved(problem)
    assert exact.usd is not None
    assert result.usd is not None
    assert result.bound_usd is not None
    assert result.bound_usd <= exact.usd * (1.0 + 1e-9) <= result.usd * (1.0 + 2e-9)


def test_a_relaxation_that_the_time_ends_in_bounds_every_plan() -> None:
    """It ran as long as it took, whatever the limit."""
    bounded = 0
    for problem in map(tiny, range(20)):
        model = PeriodModel(problem)
        master = Master(problem, groups_of(problem), model)
        most = master.most_commitments()
        everything = Box(np.zeros(len(most), dtype=np.int64), most)
        whole, ended = master.relaxation(everything, 60.0), master.relaxation(everything, 0.0)
        if whole is None or not whole[0]:
            continue
        assert ended is not None
        assert ended[0] < whole[0], "it was not solved"
        assert not ended[1].any()
        bounded += 1
    assert bounded > 10


def test_progress_tells_of_better_plans_and_bounds() -> None:
    told: list[tuple[float | None, float | None]] = []
    problem = next(one for one in map(tiny, range(100)) if (solved(one).usd or 0.0) > 0.0)
    result = solve_horizon(problem, EXACT, time.process_time, lambda usd, bound: told.append((usd, bound)))
    costs = [usd for usd, _ in told if usd is not None]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.usd
