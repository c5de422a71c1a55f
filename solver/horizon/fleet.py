"""A fleet over time: screen once, reduce, choose, confirm by simulation, solve, verify."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from solver.confidence import margins
from solver.configuration import Configuration
from solver.confirm import Confirmations, confirmed_capacity
from solver.errors import SolverError
from solver.hardware import Offer
from solver.horizon.demand import DemandFit, Profile, Series, periods_of
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.plan import HorizonResult
from solver.horizon.pool import Pool
from solver.horizon.problem import (
    BatchWork,
    Commitment,
    HorizonDeployment,
    HorizonProblem,
    NodeType,
    Period,
    SpotRule,
)
from solver.horizon.reduce import Row, Source, commitments, hourly_offers, needed_sources, undominated_rows
from solver.horizon.solve import Clock, HorizonOptions, solve_horizon
from solver.horizon.verify import verify
from solver.planning import PlanningInput
from solver.recommend import SpaceMemo, space_of
from solver.search import Rejection, Screened, rejections, screen
from solver.units import HOURS_PER_MONTH

SAMPLED_PERIODS = 5
"""Periods whose choices are simulated before the whole is solved: from the busiest to the idlest."""
MOST_ROUNDS = 30
MOST_SOLVES = 3
"""Times the whole is solved when simulation refuses something it chose."""
BASELINE_TIME_FRACTION = 0.25
SAMPLE_GAP_FRACTION = 0.01
SAMPLE_BRANCHES = 50

Progress = Callable[[str, float | None, float | None], None]
"""Called with what is being solved, the cost of its best plan and its bound, in USD over the horizon."""


class PlanRefusedError(SolverError):
    """The independent checker refused a plan: a defect, never an answer."""


@dataclass(frozen=True, slots=True)
class BatchDemand:
    """Requests of a workload (by position) to be done in the months [from_month, to_month)."""

    workload: int
    requests: float
    from_month: int
    to_month: int


@dataclass(frozen=True, slots=True)
class Purchase:
    """Owning nodes of a type from a month to the end of the horizon, at a cost that holds for that time."""

    id: str
    node_type: str
    start_month: int
    usd_per_node: float
    max_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class FleetInput:
    """planning: workloads (their rates are ignored), offers with prices, catalog. terms: months by commitment kind.

    demands: by workload; None for batch work. beyond_horizon: terms may end after the horizon, all payments counted.
    """

    planning: PlanningInput
    demands: tuple[Profile | Series | None, ...]
    months: int
    periods_per_month: int
    terms: Mapping[str, int]
    batch: tuple[BatchDemand, ...] = ()
    spot: SpotRule = field(default_factory=SpotRule)
    purchases: tuple[Purchase, ...] = ()
    default_max_nodes: int | None = None
    """Most nodes of an offer that states no limit; None: as many as wanted."""
    beyond_horizon: bool = False
    time_limit_s: float = 60.0
    gap_fraction: float = 0.01


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
    offers: Mapping[str, Offer]
    devices: Mapping[str, str]
    rejected: tuple[Rejection, ...]
    sources: int
    """Offers that fit the request, before reduction."""
    simulated: int
    unconfirmed: int
    """Deployments of the plan that simulation refused when there was no time left to solve again; 0 otherwise."""

    def device_of(self, node: str) -> str:
        """The device of a node type of the problem."""
        return self.devices[node]


def plan_fleet(asked: FleetInput, memo: SpaceMemo, clock: Clock, progress: Progress | None = None) -> FleetPlan:
    """What to own, reserve and rent by the hour, month by month. Raises InvalidInputError and SolverFailedError."""
    planning = asked.planning
    screened = [
        screen(workload, space, margins(workload, space, planning.corrections))
        for workload, space in ((w, space_of(planning, w, memo)) for w in planning.workloads)
    ]
    idle = Profile((0.0,) * 24, (0.0,) * 24)
    periods, fit = periods_of([idle if d is None else d for d in asked.demands], asked.months, asked.periods_per_month)
    confirmations = Confirmations()
    problem = build_problem(asked, screened, periods, confirmations)
    for _ in range(MOST_ROUNDS):
        if not problem.deployments or not _correct(problem, _sampled(problem), screened, confirmations):
            break
        problem = build_problem(asked, screened, periods, confirmations)

    def solve(what: str, one: HorizonProblem, until: float, known: Sequence[PeriodChoice] = ()) -> HorizonResult:
        options = HorizonOptions(max(until - clock(), 0.05 * asked.time_limit_s), asked.gap_fraction)
        tell = None if progress is None else lambda usd, bound: progress(what, usd, bound)
        return solve_horizon(one, options, clock, tell, tuple(known))

    limited = False
    end = clock() + asked.time_limit_s  # screening and simulation come before
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
        refused = _correct(problem, used, screened, confirmations)
        exceeded = not limited and _exceeds(problem, [result, hourly, on_demand], asked.default_max_nodes)
        if not (refused or exceeded) or attempt == MOST_SOLVES - 1 or (clock() >= end and not exceeded):
            break
        limited = limited or exceeded
        problem = build_problem(asked, screened, periods, confirmations, limited=limited)
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
        configurations={d.key: screened[d.workload].space.configuration(_row_of(d.key)) for d in problem.deployments},
        offers={offer.id: offer for offer in planning.offers},
        devices={node.id: node.device.id for node in planning.nodes},
        rejected=tuple(reason for one in screened for reason in rejections(one)),
        sources=len(planning.offers),
        simulated=confirmations.simulations,
        unconfirmed=refused,
    )


def build_problem(
    asked: FleetInput,
    screened: Sequence[Screened],
    periods: tuple[Period, ...],
    confirmations: Confirmations,
    *,
    limited: bool = False,
) -> HorizonProblem:
    """Sources and deployments that may matter, with the capacities that simulation has left them.

    limited: offers without a limit of their own have the default one. Off, the programme is far smaller, and a plan
    that stays within the default limits is as good.
    """
    offered = {offer.node.id: offer.node.devices for offer in asked.planning.offers}
    scales = confirmations.scales(screened)
    rows: dict[str, list[Row]] = {}
    for w, one in enumerate(screened):
        by_node: dict[str, list[Row]] = {}
        space = one.space
        usable = one.requests_per_s * (scales[w] if confirmations.capacity else 1.0)
        limit = one.workload.utilisation_limit_fraction
        inside = np.asarray(space.nodes_per_replica) == 1
        for row in np.flatnonzero((usable > 0.0) & inside).tolist():
            rate = confirmations.capacity.get((w, row), float(usable[row])) * limit
            if rate <= 0.0:
                continue
            for node in space.platforms[int(space.platform_index[row])].node_ids:
                if node in offered and space.devices_per_replica[row] <= offered[node]:
                    by_node.setdefault(node, []).append(Row(w, node, int(space.devices_per_replica[row]), rate, row))
        for node, found in by_node.items():
            rows.setdefault(node, []).extend(undominated_rows(found))
    sources = needed_sources(_sources(asked, limited=limited), rows, offered)
    types = sorted(
        {one.node_type for one in sources} | {one.node_type for one in asked.purchases if one.node_type in rows}
    )
    index = {node: i for i, node in enumerate(types)}
    deployments = tuple(
        HorizonDeployment(
            row.workload, index[node], row.devices, row.requests_per_s, _key(row.workload, row.row, index[node])
        )
        for node in types
        for row in rows[node]
    )
    bought = tuple(
        Commitment(
            one.id, index[one.node_type], "purchase", one.start_month, asked.months - one.start_month,
            one.usd_per_node, one.max_nodes,
        )
        for one in asked.purchases
        if one.node_type in index
    )  # fmt: skip
    return HorizonProblem(
        months=asked.months,
        workloads=tuple(one.workload.name for one in screened),
        periods=periods,
        node_types=tuple(NodeType(node, offered[node]) for node in types),
        deployments=deployments,
        hourly=hourly_offers(sources, index),
        commitments=commitments(sources, index, asked.months, beyond_horizon=asked.beyond_horizon) + bought,
        batch=tuple(BatchWork(b.workload, b.requests, b.from_month, b.to_month) for b in asked.batch),
        spot=asked.spot,
    )


KEY_ROWS = 10_000_000
KEY_WORKLOADS = 1_000


def _key(workload: int, row: int, node_type: int) -> int:
    return (node_type * KEY_WORKLOADS + workload) * KEY_ROWS + row


def _row_of(key: int) -> int:
    return key % KEY_ROWS


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


def _sources(asked: FleetInput, *, limited: bool) -> list[Source]:
    """Offers by the hour, and those whose term the horizon can hold."""
    found = []
    for offer in asked.planning.offers:
        by_the_hour = offer.commitment in ("on_demand", "spot")
        term = 0 if by_the_hour else asked.terms.get(offer.commitment, 0)
        if not by_the_hour and (not term or (term > asked.months and not asked.beyond_horizon)):
            continue
        spot = offer.commitment == "spot"
        if spot and asked.spot.max_fraction <= 0.0:
            continue
        most = asked.default_max_nodes if limited and offer.max_nodes is None else offer.max_nodes
        found.append(Source(offer.id, offer.node.id, offer.commitment, offer.usd_per_hour, term, most, spot))
    return found


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
    problem: HorizonProblem, choices: Sequence[PeriodChoice], screened: Sequence[Screened], confirmations: Confirmations
) -> int:
    """Simulate every deployment in use at its whole capacity; how many do not hold theirs, which is then corrected."""
    refused = 0
    used = {d for choice in choices for d, count in enumerate(choice.replicas) if count}
    seen: set[tuple[int, int]] = set()
    for d in sorted(used):
        deployment = problem.deployments[d]
        w, row = deployment.workload, _row_of(deployment.key)
        if (w, row) in seen:
            continue
        seen.add((w, row))
        one = screened[w]
        rate = deployment.requests_per_s / one.workload.utilisation_limit_fraction
        confirmed = confirmed_capacity(confirmations, w, one, row, rate, one.margin_of(row))
        if confirmed < rate * (1.0 - 1e-9):
            confirmations.capacity[w, row] = confirmed
            refused += 1
    return refused
