"""A fleet over time: screen once, reduce, choose, confirm by simulation, solve, verify."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.confidence import margins
from solver.configuration import Configuration
from solver.confirmation.sustained import Bracket, is_settled
from solver.errors import SolverError
from solver.horizon.assemble import FleetInput, build_problem, row_of
from solver.horizon.demand import DemandFit, Profile, periods_of
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.plan import HorizonResult
from solver.horizon.pool import Pool
from solver.horizon.problem import HorizonProblem, SpotRule
from solver.horizon.reasons import reasons
from solver.horizon.solve import Clock, HorizonOptions, solve_horizon
from solver.horizon.verify import verify
from solver.outcome import Outcome
from solver.recommend import SpaceMemo, space_of
from solver.search import Rejection, Screened, rejections, screen
from solver.units import HOURS_PER_MONTH

SAMPLED_PERIODS = 5
"""Periods whose choices are simulated before the whole is solved: from the busiest to the idlest."""
MOST_ROUNDS = 30
MOST_SOLVES = 3
"""Times the whole is solved when simulation refuses something it chose."""
BASELINE_TIME_FRACTION = 0.25
LEAST_TIME_FRACTION = 0.5
"""Of the time limit, kept for the optimiser when screening and simulation took longer than the rest."""
SAMPLE_GAP_FRACTION = 0.01
SAMPLE_BRANCHES = 50

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
    reasons: tuple[str, ...]
    """Where there is no plan: by workload, what stands against it."""
    rejected: tuple[Rejection, ...]
    sources: int
    """Offers that fit the request, before reduction."""
    simulated: int
    unconfirmed: int
    """Deployments of the plan that simulation refused when there was no time left to solve again; 0 otherwise."""

    def device_of(self, node: str) -> str:
        """The device of a machine of the catalog."""
        return self.devices[node]


def plan_fleet(asked: FleetInput, memo: SpaceMemo, clock: Clock, progress: Progress | None = None) -> FleetPlan:
    """What to own, reserve and rent by the hour, month by month, within the time limit, screening and simulation included.

    Raises InvalidInputError and SolverFailedError.
    """
    started = clock()
    planning = asked.planning
    screened = [
        screen(workload, space, margins(workload, space, planning.corrections), corrections=planning.corrections)
        for workload, space in ((w, space_of(planning, w, memo)) for w in planning.workloads)
    ]
    idle = Profile((0.0,) * 24, (0.0,) * 24)
    periods, fit = periods_of([idle if d is None else d for d in asked.demands], asked.months, asked.periods_per_month)
    brackets: dict[tuple[int, int], Bracket] = {}
    problem = build_problem(asked, screened, periods, brackets)
    for _ in range(MOST_ROUNDS):
        if not problem.deployments or not _correct(problem, _sampled(problem), screened, brackets):
            break
        problem = build_problem(asked, screened, periods, brackets)

    def solve(what: str, one: HorizonProblem, until: float, known: Sequence[PeriodChoice] = ()) -> HorizonResult:
        options = HorizonOptions(max(until - clock(), 0.05 * asked.time_limit_s), asked.gap_fraction)
        tell = None if progress is None else lambda usd, bound: progress(what, usd, bound)
        return solve_horizon(one, options, clock, tell, tuple(known))

    limited = False
    now = clock()
    end = max(started + asked.time_limit_s, now + LEAST_TIME_FRACTION * asked.time_limit_s)
    for attempt in range(MOST_SOLVES):
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
        used = [choice for one in (result, hourly, on_demand) for choice in _choices(one)]
        refused = _correct(problem, used, screened, brackets)
        exceeded = not limited and _exceeds(problem, [result, hourly, on_demand], asked.default_max_nodes)
        if not (refused or exceeded) or attempt == MOST_SOLVES - 1 or (clock() >= end and not exceeded):
            break
        limited = limited or exceeded
        problem = build_problem(asked, screened, periods, brackets, limited=limited)
    for one, solved in ((problem, result), (replace(problem, commitments=()), hourly), (bare, on_demand)):
        wrong = (
            verify(one, solved)
            if solved is not result or problem.commitments
            else verify(replace(one, commitments=()), solved)
        )
        if wrong:
            raise PlanRefusedError("; ".join(wrong[:5]))
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
        else reasons(problem, planning.workloads, sorted(set(asked.places.values())), planning.withheld),
        rejected=tuple(reason for one in screened for reason in rejections(one)),
        sources=len(planning.offers),
        simulated=len(brackets),
        unconfirmed=refused,
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


def _choices(result: HorizonResult) -> list[PeriodChoice]:
    return [] if result.plan is None else list(dict.fromkeys(result.plan.choices))


def _sampled(problem: HorizonProblem) -> list[PeriodChoice]:
    """Choices of some periods, once with committed nodes at the price of their term and once without any."""
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
    pool = Pool(problem)
    for cap in (np.zeros(model.types), most) if problem.commitments else (np.zeros(model.types),):
        for t in [model.at_peak, *sample]:
            start = pool.best(t, price, cap, value)
            answer = model.solve(t, price, cap, value, SAMPLE_GAP_FRACTION, 5.0, start, SAMPLE_BRANCHES)
            if answer.choice is not None:
                pool.add(answer.choice)
    return pool.choices


def _correct(
    problem: HorizonProblem,
    choices: Sequence[PeriodChoice],
    screened: Sequence[Screened],
    brackets: dict[tuple[int, int], Bracket],
) -> int:
    """Simulate every deployment in use until what it sustains is known; how many do not hold what was believed of them."""
    refused = 0
    used = {d for choice in choices for d, count in enumerate(choice.replicas) if count}
    for d in sorted(used):
        deployment = problem.deployments[d]
        key = (deployment.workload, row_of(deployment.key))
        if key in brackets and brackets[key].is_settled:
            continue
        one = screened[deployment.workload]
        rate = deployment.requests_per_s / one.workload.utilisation_limit_fraction
        brackets[key] = one.candidate(key[1]).bracket(is_settled)
        refused += brackets[key].holds < rate * (1.0 - 1e-9)
    return refused
