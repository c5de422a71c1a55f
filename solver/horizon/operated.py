"""A plan that keeps to the rules of operation, beside the same without commitments, without spot, and without each rule."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from solver.horizon.choose import Kept, even_choices, kept_only, widened
from solver.horizon.operable import free_of_rules, kept_configurations, operable_from, result_of, solve_operable
from solver.horizon.operation import Rule
from solver.horizon.period import PeriodChoice
from solver.horizon.plan import HorizonPlan, HorizonResult, result_with_plan
from solver.horizon.problem import HorizonProblem, SpotRule
from solver.horizon.solve import Clock, HorizonOptions, Progress, solve_horizon
from solver.outcome import Outcome

FEW, FREE, MONTHS, WITHOUT, FREEDOM = 0.15, 0.35, 0.27, 0.04, 0.025
"""Of the time: the kept configurations period by period; all of them, for the bound; the months anew; each of two parts of a
plan without commitments or spot; each part of a plan without one rule."""
FEW_GAP_SHARE = 0.25
MORE_CONFIGURATIONS = 4
"""Of each workload, those of the plan without rules that are kept too where their number is free."""

Tell = Callable[[str], Progress | None]
"""Of what is being solved, whom to tell of better plans and bounds."""


@dataclass(frozen=True, slots=True)
class Freedom:
    """The demand without one rule of operation, or without all of them (``rule`` None): the best plan found that way, and what
    none costs less than. usd: None where none was found, or simulation refused something in all that were."""

    rule: Rule | None
    usd: float | None
    bound_usd: float | None


@dataclass(frozen=True, slots=True)
class Operated:
    """Results of a problem with rules, of it without commitments, without spot either, and without rules."""

    result: HorizonResult
    hourly: HorizonResult
    on_demand: HorizonResult
    free: HorizonResult
    freedoms: tuple[Freedom, ...]
    few_usd: float | None = None
    """Of the plan without rules that runs the kept configurations only, all of which simulation has confirmed."""


def bounded_by(found: Operated, wider: Operated) -> Operated:
    """What was found of fewer or slower deployments, beside the bounds of all: a restricted search proves nothing of the whole."""
    bounds = {one.rule: one.bound_usd for one in wider.freedoms} | {None: wider.free.bound_usd}
    return replace(
        found,
        result=_beside(found.result, wider.result),
        hourly=_beside(found.hourly, wider.hourly),
        on_demand=_beside(found.on_demand, wider.on_demand),
        free=_beside(found.free, wider.free),
        freedoms=tuple(replace(one, bound_usd=bounds.get(one.rule)) for one in found.freedoms),
    )


def _beside(found: HorizonResult, wider: HorizonResult) -> HorizonResult:
    if found.plan is None or found.usd is None:
        return replace(found, outcome=Outcome.UNKNOWN, bound_usd=wider.bound_usd, reasons=())
    return result_with_plan(
        found.plan,
        found.usd,
        wider.bound_usd or 0.0,
        periods_solved=found.periods_solved + wider.periods_solved,
        branches=found.branches + wider.branches,
        periods=found.periods,
        prices=found.prices,
    )


def plan_operated(
    problem: HorizonProblem, kept: Kept | None, gap_fraction: float, clock: Clock, end: float, tell: Tell
) -> Operated:
    """Everything within the time. kept: deployments to plan with, as ``kept_configurations`` has them; None: none were found, or the
    problem is small."""
    return _Planner(problem, kept, gap_fraction, clock, end, tell).run()


class _Planner:
    def __init__(
        self, problem: HorizonProblem, kept: Kept | None, gap_fraction: float, clock: Clock, end: float, tell: Tell
    ) -> None:
        self.problem, self.gap, self.clock, self.tell = problem, gap_fraction, clock, tell
        self.kept: Kept = kept or ()
        self.end, self.total = end, max(end - clock(), 0.1)
        self.whole = kept is None
        """No configurations to plan with: one programme, or what is shown where there is no plan."""

    def _options(self, share: float, gap_fraction: float | None = None) -> HorizonOptions:
        return HorizonOptions(self.total * share, self.gap if gap_fraction is None else gap_fraction)

    def run(self) -> Operated:
        problem = self.problem
        few = None if self.whole else self._few(problem, self.kept, FEW, "few configurations")
        free = self._free(problem, few)
        result = self._kept_to_rules(problem, self.kept, few, free, MONTHS)
        if (told := self.tell("fleet")) is not None:
            told(result.usd, result.bound_usd)
        hourly = on_demand = result
        spot = problem.spot.max_fraction > 0.0
        if problem.commitments:
            hourly = self._without(replace(problem, commitments=()), few, "by the hour")
            on_demand = hourly
        if spot:
            on_demand = self._without(replace(problem, commitments=(), spot=SpotRule()), few, "on demand")
        freedoms = self._freedoms(few, free, result)
        return Operated(result, hourly, on_demand, free, freedoms, None if few is None else few.usd)

    def _few(
        self, problem: HorizonProblem, kept: Kept, share: float, what: str, known: HorizonResult | None = None
    ) -> HorizonResult:
        """The kept deployments period by period."""
        choices: tuple[PeriodChoice, ...] = ()
        if known is not None and known.plan is not None:
            choices = tuple(dict.fromkeys(known.plan.choices))
        inner = kept_only(free_of_rules(problem), kept)
        choices += even_choices(inner)
        return solve_horizon(
            inner, self._options(share, self.gap * FEW_GAP_SHARE), self.clock, self.tell(what), choices
        )

    def _free(self, problem: HorizonProblem, few: HorizonResult | None) -> HorizonResult:
        """Without rules: the plan that all others are compared with, and the bound of them all."""
        bare, count = free_of_rules(problem), len(problem.deployments)
        if few is None or few.plan is None:
            return solve_horizon(bare, self._options(FREE), self.clock, self.tell("without rules"))
        plan = HorizonPlan(few.plan.commitments, tuple(widened(one, self.kept, count) for one in few.plan.choices))
        known = tuple(dict.fromkeys(plan.choices))
        free = solve_horizon(bare, self._options(FREE), self.clock, self.tell("without rules"), known, few.prices)
        if free.bound_usd is None or (free.usd is not None and free.usd <= plan.present_usd(bare)):
            return free
        return result_of(bare, plan, free.bound_usd, free)

    def _kept_to_rules(
        self, problem: HorizonProblem, kept: Kept, few: HorizonResult | None, free: HorizonResult, share: float
    ) -> HorizonResult:
        if free.plan is None and free.outcome is not Outcome.INFEASIBLE and self.clock() >= self.end:
            return self._not_reached(problem)
        if few is None or free.outcome is Outcome.INFEASIBLE:
            return solve_operable(problem, self._options(share), self.clock, free)
        return operable_from(problem, kept, few, free, self.gap, self.clock, self.clock() + share * self.total)

    def _without(self, problem: HorizonProblem, few: HorizonResult | None, what: str) -> HorizonResult:
        """The same without commitments, or spot, under the same rules; in configurations of its own where those of the plan
        stand on nodes that are committed to only. Nothing where the time is over: it is no part of the plan."""
        if self.clock() >= self.end:
            return self._not_reached(problem)
        free = solve_horizon(free_of_rules(problem), self._options(WITHOUT / 2), self.clock)
        if self.whole:
            return self._kept_to_rules(problem, (), None, free, WITHOUT)
        kept, less = self.kept, self._few(problem, self.kept, WITHOUT, what, few)
        if less.plan is None and free.plan is not None:
            kept = kept_configurations(problem, self.clock, WITHOUT * self.total) or ()
            less = self._few(problem, kept, WITHOUT, what)
        return self._kept_to_rules(problem, kept, less, free, WITHOUT)

    def _not_reached(self, problem: HorizonProblem) -> HorizonResult:
        return HorizonResult(Outcome.UNKNOWN, None, None, None, None, 0, 0, len(problem.periods))

    def _freedoms(self, few: HorizonResult | None, free: HorizonResult, result: HorizonResult) -> tuple[Freedom, ...]:
        """Without all rules, and where that gains anything and there is time without each alone."""
        if result.plan is None or result.usd is None:
            return ()
        found = [Freedom(None, free.usd, free.bound_usd)]
        rules = self.problem.operation.rules
        if len(rules) < 2 or free.bound_usd is None or free.bound_usd >= result.usd:
            return tuple(found)
        for rule in rules:
            if self.clock() >= self.end:
                break
            other = replace(self.problem, operation=self.problem.operation.without(rule))
            if few is None:
                one = solve_operable(other, self._options(FREEDOM), self.clock, free)
            else:
                one = self._freed(other, rule, few, free, result.plan)
            found.append(Freedom(rule, one.usd, one.bound_usd))
        return tuple(found)

    def _freed(
        self, problem: HorizonProblem, rule: Rule, few: HorizonResult, free: HorizonResult, plan: HorizonPlan
    ) -> HorizonResult:
        kept = self.kept
        if rule == "max_configurations" and free.plan is not None:
            kept = self._more(free.plan)
            inner = kept_only(free_of_rules(problem), kept)
            choices = tuple(dict.fromkeys(plan.choices)) + tuple(dict.fromkeys(free.plan.choices))
            inside = tuple(
                replace(one, replicas=tuple(one.replicas[d] for d in kept))
                for one in choices
                if not any(n for d, n in enumerate(one.replicas) if d not in kept)
            )
            few = solve_horizon(inner, self._options(FREEDOM), self.clock, None, inside)
        end = self.clock() + FREEDOM * self.total
        return operable_from(problem, kept, few, free, self.gap, self.clock, end, (plan,))

    def _more(self, plan: HorizonPlan) -> Kept:
        """The kept deployments and those that do most in a plan."""
        problem = self.problem
        done = [0.0] * len(problem.deployments)
        for period, choice in zip(problem.periods, plan.choices, strict=True):
            for d, count in enumerate(choice.replicas):
                if count:
                    done[d] += count * problem.deployments[d].requests_per_s * period.hours
        kept = set(self.kept)
        for w in range(len(problem.workloads)):
            mine = [d for d, one in enumerate(problem.deployments) if one.workload == w and done[d] > 0.0]
            kept |= set(sorted(mine, key=lambda d: -done[d])[:MORE_CONFIGURATIONS])
        return tuple(sorted(kept))
