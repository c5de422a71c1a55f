"""A fleet over time: screen once, reduce, choose, confirm by simulation, solve, verify."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from solver.candidates.rejections import Rejection, rejections
from solver.candidates.screening import Screened, screen
from solver.capacity.runs import InTime
from solver.capacity.sustained_rate import Bracket, is_settled
from solver.deployment.configuration import Configuration
from solver.errors import NoPlanInTimeError, SolverError
from solver.horizon.assemble import FleetInput, build_problem, row_of
from solver.horizon.choose import Kept
from solver.horizon.demand import DemandFit, Profile, periods_of
from solver.horizon.operable import free_of_rules, is_small, kept_configurations
from solver.horizon.operated import Freedom, Operated, bounded_by, plan_operated
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.plan import HorizonResult
from solver.horizon.pool import ChoiceTable
from solver.horizon.problem import HorizonProblem, SpotRule
from solver.horizon.reasons import Reason, reasons
from solver.horizon.solve import Clock, HorizonOptions, solve_horizon
from solver.horizon.verify import verify
from solver.outcome import Outcome
from solver.recommend.recommend import SpaceMemo, space_of
from solver.units import HOURS_PER_MONTH

SAMPLED_PERIODS = 5
"""Periods whose choices are simulated before the whole is solved: from the busiest to the idlest."""
MOST_ROUNDS = 30
MOST_SOLVES = 20
"""Times the whole is solved when simulation refuses something it chose; time mostly ends before."""
BASELINE_TIME_FRACTION = 0.25
SAMPLING_FRACTION = 0.4
"""Of the time that screening leaves, after which no more sampled choices are simulated: the rest is the optimiser's."""
SEARCHING_FRACTION, SEARCHING_UNSURE_FRACTION = 0.9, 0.7
"""Of the same time, after which nothing is solved with rates that are only believed: the second where sampled choices were not all
confirmed. In the rest, where simulation refused or did not reach what was chosen, the whole is solved with confirmed rates."""
CHOOSING_FRACTION = 0.08
"""Of the time left, for choosing which configurations to plan with."""
SAMPLE_GAP_FRACTION = 0.01
SAMPLE_BRANCHES = 50
SAMPLE_S = 5.0
"""For one sampled choice at most."""

Progress = Callable[[str, float | None, float | None], None]
"""Called with what is being solved, the cost of its best plan and its bound, in USD over the horizon."""


class PlanRefusedError(SolverError):
    """The independent checker refused a plan: a defect, never an answer."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The answer. configurations: by deployment key. simulated: replicas confirmed or corrected by simulation.

    on_demand, hourly: the same demand without commitments and spot, and without commitments only.
    """

    problem: HorizonProblem
    result: HorizonResult
    on_demand: HorizonResult
    hourly: HorizonResult
    fit: DemandFit
    configurations: Mapping[int, Configuration]
    places: Mapping[str, tuple[str, str]]
    """Provider and region by offer and purchase."""
    network_s: Mapping[int, float]
    """Round trip by deployment key, where the workload states any."""
    devices: Mapping[str, str]
    reasons: tuple[Reason, ...]
    """Where there is no plan: by workload, what stands against it."""
    rejected: tuple[Rejection, ...]
    sources: int
    """Offers that fit the request, before reduction."""
    simulated: int
    unconfirmed: int
    """Deployments of the plan that simulation refused or did not reach before the time ended; 0 otherwise."""
    sequences: tuple[tuple[int, ...], ...]
    """By month, the period of each hour in their order, which repeats."""
    freedoms: tuple[Freedom, ...] = ()
    """What the rules of operation cost; none where there are none."""

    def device_of(self, node: str) -> str:
        """The device of a machine of the catalog."""
        return self.devices[node]


def plan_fleet(asked: FleetInput, memo: SpaceMemo, clock: Clock, progress: Progress | None = None) -> FleetPlan:
    """What to own, reserve and rent by the hour, month by month, within the time limit, screening and simulation included.

    Raises InvalidInputError, NoPlanInTimeError where screening takes all the time, and SolverFailedError.
    """
    last = clock() + asked.time_limit_s
    planning = asked.planning
    screened: list[Screened] = []
    for workload in planning.workloads:
        space = space_of(planning, workload, memo, math.inf)  # how many requests there are at most, months say
        screened.append(screen(workload, space, corrections=planning.corrections))
        if clock() > last:
            raise NoPlanInTimeError(asked.time_limit_s)
    began = clock()
    idle = Profile((0.0,) * 24, (0.0,) * 24)
    periods, sequences, fit = periods_of(
        [idle if d is None else d for d in asked.demands], asked.months, asked.periods_per_month
    )
    brackets: dict[tuple[int, int], Bracket] = {}

    def built(*, limited: bool = False, confirmed: bool = False) -> HorizonProblem:
        problem = build_problem(asked, screened, periods, brackets, limited=limited, confirmed=confirmed)
        return replace(problem, operation=asked.operation, sequences=sequences if asked.operation.rules else ())

    sampling = began + SAMPLING_FRACTION * (last - began)
    problem = built()
    for _ in range(MOST_ROUNDS):
        if not problem.deployments or clock() >= sampling:
            break
        sampled = _sampled(problem, clock, (clock() + sampling) / 2)
        if not _correct(problem, _used(sampled), screened, brackets, _before(clock, sampling)):
            break
        problem = built()
    share = SEARCHING_FRACTION if clock() < sampling else SEARCHING_UNSURE_FRACTION
    end = began + share * (last - began)
    in_time = _before(clock, end)

    def tell(what: str) -> Callable[[float | None, float | None], None] | None:
        return None if progress is None else lambda usd, bound: progress(what, usd, bound)

    limited = False
    for attempt in range(MOST_SOLVES):
        kept: Kept | None = None
        if asked.operation.rules:
            problem, kept = _confirmed_configurations(
                problem,
                partial(built, limited=limited),
                screened,
                brackets,
                clock,
                end,
                in_time,
            )
        solved = _solve(problem, kept, asked, clock, end, tell)
        used = [choice for one in (solved.result, solved.hourly, solved.on_demand) for choice in _choices(one)]
        refused = _correct(problem, _used(used), screened, brackets, in_time)
        free = _used(_choices(solved.free))
        beyond = _correct(problem, free, screened, brackets, in_time)
        results = [solved.result, solved.hourly, solved.on_demand, solved.free]
        exceeded = not limited and _exceeds(problem, results, asked.default_max_nodes)
        if not (refused or exceeded) or attempt == MOST_SOLVES - 1 or (clock() >= end and not exceeded):
            break
        limited = limited or exceeded
        problem = built(limited=limited)
    if (refused or solved.result.outcome is Outcome.UNKNOWN) and clock() < last:
        held = built(limited=limited, confirmed=True)
        kept = None if is_small(held) else kept_configurations(held, clock, CHOOSING_FRACTION * (last - clock()))
        sure = bounded_by(_solve(held, kept, asked, clock, last, tell), solved)
        if sure.result.plan is not None and not _exceeds(held, [sure.result], asked.default_max_nodes):
            problem, solved, refused, beyond = held, sure, 0, 0
    result, hourly, on_demand = solved.result, solved.hourly, solved.on_demand
    if not refused and result.outcome is not Outcome.UNKNOWN:
        _check(problem, solved)
    # What is known to hold without rules: the plan that keeps to them does so too.
    held_usd = min((usd for usd in (solved.few_usd, result.usd) if usd is not None), default=None)
    return FleetPlan(
        problem=problem if problem.commitments else replace(problem, commitments=()),
        result=result,
        on_demand=on_demand,
        hourly=hourly,
        fit=fit,
        configurations={d.key: screened[d.workload].space.configuration(row_of(d.key)) for d in problem.deployments},
        places=asked.places,
        network_s={
            d.key: screened[d.workload].network_of(row_of(d.key))
            for d in problem.deployments
            if screened[d.workload].workload.network_s_by_region
        },
        devices={node.id: node.device.id for node in planning.nodes},
        reasons=()
        if result.outcome is not Outcome.INFEASIBLE
        else reasons(
            problem, planning.workloads, sorted(set(asked.places.values())), planning.withheld, asked.default_max_nodes
        ),
        rejected=tuple(reason for one in screened for reason in rejections(one)),
        sources=len(planning.offers),
        simulated=len(brackets),
        unconfirmed=refused,
        sequences=sequences,
        freedoms=tuple(replace(one, usd=held_usd) if beyond and one.rule is None else one for one in solved.freedoms),
    )


def _exceeds(problem: HorizonProblem, results: Sequence[HorizonResult], most: int | None) -> bool:
    """Does a plan take more nodes of an offer without a limit than the default allows?"""
    if most is None:
        return False
    for result in results:
        if result.plan is None:
            continue
        for choice in result.plan.choices:
            for nodes, offer in zip(choice.hourly, problem.hourly, strict=True):
                if offer.max_nodes is None and nodes > most:
                    return True
        running = problem.committed(result.plan.commitments) if result.plan.commitments else np.zeros((1, 1))
        if running.max(initial=0.0) > most:
            return True
    return False


def _check(problem: HorizonProblem, solved: Operated) -> None:
    """Raises PlanRefusedError where the independent checker finds anything wrong."""
    hourly = replace(problem, commitments=())
    for one, result in (
        (problem if problem.commitments else hourly, solved.result),
        (hourly, solved.hourly),
        (replace(hourly, spot=SpotRule()), solved.on_demand),
        (free_of_rules(problem), solved.free),
    ):
        wrong = verify(one, result)
        if wrong:
            raise PlanRefusedError("; ".join(wrong[:5]))


def _solve(
    problem: HorizonProblem,
    kept: Kept | None,
    asked: FleetInput,
    clock: Clock,
    end: float,
    tell: Callable[[str], Callable[[float | None, float | None], None] | None],
) -> Operated:
    """The plan, and the same without commitments and spot; with rules of operation also what they cost."""
    if problem.operation.rules:
        return plan_operated(problem, kept, asked.gap_fraction, clock, end, tell)

    def solve(what: str, one: HorizonProblem, until: float, known: Sequence[PeriodChoice] = ()) -> HorizonResult:
        options = HorizonOptions(max(until - clock(), 0.05 * asked.time_limit_s), asked.gap_fraction)
        return solve_horizon(one, options, clock, tell(what), tuple(known))

    began = clock()
    bare = replace(problem, commitments=(), spot=SpotRule())
    on_demand = solve("on demand", bare, began + BASELINE_TIME_FRACTION * (end - began))
    hourly = on_demand
    known = _choices(on_demand)
    if problem.spot.max_fraction > 0.0:
        without = replace(problem, commitments=())
        hourly = solve("by the hour", without, clock() + BASELINE_TIME_FRACTION * (end - clock()), known)
        known += _choices(hourly)
    result = solve("fleet", problem, end, known) if problem.commitments else hourly
    return Operated(result, hourly, on_demand, result, ())


def _confirmed_configurations(
    problem: HorizonProblem,
    built: Callable[[], HorizonProblem],
    screened: Sequence[Screened],
    brackets: dict[tuple[int, int], Bracket],
    clock: Clock,
    end: float,
    in_time: InTime,
) -> tuple[HorizonProblem, Kept | None]:
    """(problem, configurations to plan with), chosen until simulation refuses none of them; none of a small problem."""
    kept: Kept | None = None
    for _ in range(MOST_ROUNDS):
        if not problem.deployments or is_small(problem) or clock() >= end:
            break
        kept = kept_configurations(problem, clock, CHOOSING_FRACTION * (end - clock()))
        few = kept is not None and problem.operation.max_configurations is not None
        if kept is None or not few or not _correct(problem, kept, screened, brackets, in_time):
            break
        problem = built()
        kept = None
    return problem, kept


def _used(choices: Iterable[PeriodChoice]) -> set[int]:
    """Deployments that any of the choices runs."""
    return {d for choice in choices for d, count in enumerate(choice.replicas) if count}


def _choices(result: HorizonResult) -> list[PeriodChoice]:
    return [] if result.plan is None else list(dict.fromkeys(result.plan.choices))


def _before(clock: Clock, end: float) -> InTime:
    return lambda: clock() < end


def _sampled(problem: HorizonProblem, clock: Clock, end: float) -> list[PeriodChoice]:
    """Choices of some periods, once with committed nodes at the price of their term and once without any; those found by ``end``."""
    model = PeriodModel(problem)
    order = np.argsort(-(problem.demand / np.maximum(problem.demand.max(axis=0), 1e-12)).sum(axis=1), kind="stable")
    sample = order[np.unique(np.linspace(0, len(order) - 1, SAMPLED_PERIODS).round().astype(int))].tolist()
    price = np.full(model.types, np.inf)
    for one in problem.commitments:
        hourly = one.usd_per_node / (HOURS_PER_MONTH * one.term_months)
        price[one.node_type] = min(price[one.node_type], hourly)
    price = np.where(np.isfinite(price), price, 0.0)
    most = problem.committed(np.array([float(model.most_nodes[c.node_type]) for c in problem.commitments])).max(axis=0)
    value = np.zeros(len(problem.batch))
    pool = ChoiceTable(problem)
    for cap in (np.zeros(model.types), most) if problem.commitments else (np.zeros(model.types),):
        for t in [model.at_peak, *sample]:
            if clock() >= end:
                return pool.choices
            start = pool.best(t, price, cap, value)
            seconds = min(SAMPLE_S, end - clock())
            answer = model.solve(t, price, cap, value, SAMPLE_GAP_FRACTION, seconds, start, SAMPLE_BRANCHES)
            if answer.choice is not None:
                pool.add(answer.choice)
    return pool.choices


def _correct(
    problem: HorizonProblem,
    used: Iterable[int],
    screened: Sequence[Screened],
    brackets: dict[tuple[int, int], Bracket],
    in_time: InTime,
) -> int:
    """Simulate deployments until what they sustain is known, or time is up; how many were not seen to hold what was believed."""
    refused = 0
    for d in _in_turn(problem, used):
        deployment = problem.deployments[d]
        key = (deployment.workload, row_of(deployment.key))
        if key in brackets and brackets[key].is_settled:
            continue
        one = screened[deployment.workload]
        rate = deployment.requests_per_s / one.workload.utilisation_limit_fraction
        if in_time():
            found = one.only.candidate(key[1]).bracket(is_settled, in_time)
            brackets[key] = found.narrowed(brackets[key]) if key in brackets else found
        refused += key not in brackets or brackets[key].holds < rate * (1.0 - 1e-9)
    return refused


def _in_turn(problem: HorizonProblem, used: Iterable[int]) -> list[int]:
    """One of each workload before the next: where time is short something of every workload is confirmed."""
    seen: Counter[int] = Counter()
    order = []
    for d in sorted(used):
        workload = problem.deployments[d].workload
        order.append((seen[workload], d))
        seen[workload] += 1
    return [d for _, d in sorted(order)]
