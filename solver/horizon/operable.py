"""Plans over time that keep to the rules of operation, with a bound on all such plans.

Small problems are one programme, solved to proof. Of large ones a few configurations are kept, the plan of those is found
period by period (``solve``), and its months are planned anew beside its commitments so that hours can follow each other
(``months``). A plan without the rules is never dearer than one with them, so its bound holds for both.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solver.horizon.choose import Kept, chosen_configurations, even_choices, kept_only, narrowed, widened
from solver.horizon.highs import ProgrammeAnswer, solve_programme
from solver.horizon.linked import LinkedModel
from solver.horizon.master import Box, Master, groups_of
from solver.horizon.months import plan_months
from solver.horizon.operation import RULES, Operation, Rule
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.plan import HorizonPlan, HorizonResult, result_with_plan
from solver.horizon.problem import HorizonProblem
from solver.horizon.solve import LEAST_S, Clock, HorizonOptions, solve_horizon
from solver.horizon.verify_operation import verify_operation
from solver.outcome import Outcome

MOST_COLUMNS = 1_500
"""Of one programme of everything, up to which it is solved as such."""
CHOOSING_FRACTION = 0.1
RELAXED_FRACTION = 0.3
"""Of the time, for choosing configurations, and for planning with them period by period."""
RELAXED_GAP_SHARE = 0.25
MONTHS_GAP_SHARE = 0.5
"""Of the asked gap, what the plan period by period, and a month's programme, may keep."""


def free_of_rules(problem: HorizonProblem) -> HorizonProblem:
    """The same without rules of operation."""
    return replace(problem, operation=Operation())


def solve_operable(
    problem: HorizonProblem, options: HorizonOptions, clock: Clock, free: HorizonResult | None = None
) -> HorizonResult:
    """The cheapest plan that keeps to the rules, or the best within the time, with a bound.

    free: what the problem without rules has come to, if that is known.
    """
    end = clock() + options.time_limit_s
    if not problem.operation.rules:
        return solve_horizon(problem, options, clock) if free is None else free
    if not problem.deployments and free is None:
        free = solve_horizon(free_of_rules(problem), options, clock)
    if free is not None and free.outcome is Outcome.INFEASIBLE:
        return free
    if is_small(problem):
        return solve_whole(problem, options, clock, free)
    if free is None:
        free = solve_horizon(free_of_rules(problem), replace(options, time_limit_s=options.time_limit_s / 2), clock)
    if free.outcome is Outcome.INFEASIBLE:
        return free
    kept = kept_configurations(problem, clock, max(LEAST_S, CHOOSING_FRACTION * options.time_limit_s))
    if kept is None:
        return _without_plan(problem, free, clock, max(LEAST_S, end - clock()))
    inner = kept_only(free_of_rules(problem), kept)
    known = _known(free, kept) + even_choices(inner)
    relaxed = solve_horizon(
        inner,
        HorizonOptions(max(LEAST_S, RELAXED_FRACTION * (end - clock())), options.gap_fraction * RELAXED_GAP_SHARE),
        clock,
        None,
        known,
    )
    return operable_from(problem, kept, relaxed, free, options.gap_fraction, clock, end)


def kept_configurations(problem: HorizonProblem, clock: Clock, seconds: float) -> Kept | None:
    """Deployments to plan with: all, unless each workload may have few; None where a choice has no plan, or takes too long."""
    if problem.operation.max_configurations is None:
        return tuple(range(len(problem.deployments)))
    return chosen_configurations(problem, clock, seconds)


def operable_from(
    problem: HorizonProblem,
    kept: Kept,
    relaxed: HorizonResult,
    free: HorizonResult,
    gap_fraction: float,
    clock: Clock,
    end: float,
    also: Sequence[HorizonPlan] = (),
) -> HorizonResult:
    """The plan of the kept deployments, made such that its hours can follow each other.

    relaxed: the kept deployments planned period by period. also: plans of the whole problem; those that keep to the rules
    are plans too, and all give months to start from.
    """
    bound, count = free.bound_usd or 0.0, len(problem.deployments)
    plans = [plan for plan in (*also, *([free.plan] if free.plan else [])) if not verify_operation(problem, plan)]
    if relaxed.plan is not None:
        own = relaxed.plan.choices
        choices: Sequence[PeriodChoice] | None = own
        if problem.operation.ties_hours:
            nodes = np.array(relaxed.plan.commitments, dtype=np.int64)
            bases = [own]
            for plan in also:
                inside = [narrowed(choice, kept) for choice in plan.choices]
                if plan.commitments == relaxed.plan.commitments and all(one is not None for one in inside):
                    bases.append(tuple(one for one in inside if one is not None))
            inner = kept_only(replace(problem, operation=replace(problem.operation, max_configurations=None)), kept)
            choices = plan_months(inner, nodes, bases, gap_fraction * MONTHS_GAP_SHARE, clock, end)
        if choices is not None:
            wide = tuple(widened(choice, kept, count) for choice in choices)
            plans.append(HorizonPlan(relaxed.plan.commitments, wide))
    best = min(plans, key=lambda plan: plan.present_usd(problem), default=None)
    if best is None:
        return _without_plan(problem, free, clock, max(LEAST_S, end - clock()))
    return result_of(problem, best, bound, free, relaxed.periods_solved)


def result_of(
    problem: HorizonProblem, plan: HorizonPlan, bound_usd: float, free: HorizonResult | None, solved: int = 0
) -> HorizonResult:
    """A plan and the bound on all, with the effort of both."""
    return result_with_plan(
        plan,
        plan.present_usd(problem),
        bound_usd,
        periods_solved=solved + (0 if free is None else free.periods_solved),
        branches=0 if free is None else free.branches,
        periods=len(problem.periods) if free is None else free.periods,
    )


# -- one programme of everything


def is_small(problem: HorizonProblem) -> bool:
    """Is one programme of everything solved soonest?"""
    width = len(PeriodModel(problem).upper)
    hours = sum(len(sequence) for sequence in problem.sequences) if problem.operation.min_up_hours > 1 else 0
    return len(problem.periods) * width + len(problem.hourly) * hours <= MOST_COLUMNS


def _whole(problem: HorizonProblem) -> tuple[LinkedModel, Box]:
    model = PeriodModel(problem)
    master = Master(problem, groups_of(problem), model)
    high = master.most_commitments()
    linked = LinkedModel(problem, model, range(problem.months), (master.shared_rows, master.shared_limits))
    return linked, Box(np.zeros(len(high), dtype=np.int64), high)


def solve_whole(
    problem: HorizonProblem, options: HorizonOptions, clock: Clock, free: HorizonResult | None
) -> HorizonResult:
    """One programme of everything."""
    end = clock() + options.time_limit_s
    linked, box = _whole(problem)
    answer = solve_programme(linked.programme(box), options.time_limit_s, options.gap_fraction)
    found = None if answer.values is None else linked.read(answer.values)
    if found is None:
        if math.isinf(answer.bound):
            return _infeasible(problem, clock, max(LEAST_S, end - clock()))
        return HorizonResult(Outcome.UNKNOWN, None, None, None, None, 1, 0, len(problem.periods))
    nodes, choices = found
    plan = HorizonPlan(tuple(int(n) for n in nodes), tuple(choices[t] for t in range(len(problem.periods))))
    bound = max(answer.bound, 0.0 if free is None or free.bound_usd is None else free.bound_usd)
    return result_of(problem, plan, bound, free, 1)


# -- no plan


def _without_plan(problem: HorizonProblem, free: HorizonResult, clock: Clock, seconds: float) -> HorizonResult:
    """What is said where none was found: that there is none, if so much can be shown."""
    if not _feasible(problem, clock, seconds / 2):
        return _infeasible(problem, clock, seconds / 2)
    return HorizonResult(Outcome.UNKNOWN, None, None, None, None, free.periods_solved, free.branches, free.periods)


def _infeasible(problem: HorizonProblem, clock: Clock, seconds: float) -> HorizonResult:
    rules = blocking_rules(problem, clock, seconds)
    names = " or ".join(f"limits.operation.{rule}" for rule in rules)
    reasons = (f"no plan keeps to the rules of operation; without {names} there may be one",) if rules else ()
    return HorizonResult(Outcome.INFEASIBLE, None, None, None, None, 1, 0, len(problem.periods), reasons)


def blocking_rules(problem: HorizonProblem, clock: Clock, seconds: float) -> tuple[Rule, ...]:
    """Rules without which a plan may exist: each alone, or all where no single one is in the way; none where nothing helps."""
    rules = problem.operation.rules
    each = seconds / (len(RULES) + 1)
    alone = tuple(
        rule for rule in rules if _feasible(replace(problem, operation=problem.operation.without(rule)), clock, each)
    )
    if alone or not _feasible(free_of_rules(problem), clock, each):
        return alone
    return rules


def _feasible(problem: HorizonProblem, clock: Clock, seconds: float) -> bool:
    """Can it not be shown in time that there is no plan? Small problems as a whole, others month by month with all commitments."""
    end = clock() + seconds
    if is_small(problem):
        linked, box = _whole(problem)
        return _has_plan(linked, box, seconds)
    model = PeriodModel(problem)
    master = Master(problem, groups_of(problem), model)
    shared = (master.shared_rows, master.shared_limits)
    high = master.most_commitments()
    none = np.zeros(len(problem.batch))
    for month in range(problem.months):
        if clock() >= end:
            return True
        linked = LinkedModel(problem, model, (month,), shared, none)
        if not _has_plan(linked, Box(np.zeros(len(high), dtype=np.int64), high), seconds / problem.months):
            return False
    return True


def _has_plan(linked: LinkedModel, box: Box, seconds: float) -> bool:
    programme = linked.programme(box)
    programme.cost[:] = 0.0
    answer: ProgrammeAnswer = solve_programme(programme, seconds)
    return not math.isinf(answer.bound)


def _known(free: HorizonResult, kept: Kept) -> tuple[PeriodChoice, ...]:
    """Choices of the plan without rules that run kept deployments only."""
    if free.plan is None:
        return ()
    inside = (narrowed(choice, kept) for choice in dict.fromkeys(free.plan.choices))
    return tuple(one for one in inside if one is not None)
