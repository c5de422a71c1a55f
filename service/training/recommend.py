"""Jobs to columns, columns to a plan: which machines each training job rents."""

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from service.clock import elapsed_s
from service.fleets.own import Owned
from service.recommendations.limits import allowed_offers
from service.training.beside_fleet import Beside, idle_hours, stretches, worked_s_a_day
from service.training.inputs import Trained, TrainingModel, training_device
from service.training.measured import MeasuredRun
from service.training.own import MONTH_S, PERCENT, PaidTerm, own_offers, reserved_terms, rooms_of
from service.training.predict import anchored, own_runs, prepared
from service.training.said import IDLE, tokens_of, tokens_once
from service.training.serving import SERVED, Serving
from service.wire.recommendations import LimitsIn
from service.wire.training_plans import TrainingJobIn, TrainingRecommendationIn
from solver.errors import FigureMissingError, NoPlanInTimeError, SolverError, UnsupportedError
from solver.hardware import Node, Offer
from solver.horizon.solve import LEAST_S
from solver.llm_shape import LlmShape
from solver.training.estimate import RatioInterval, TrainingEstimate, compared, estimate_training, model_flop_per_token
from solver.training.goodput import Reliability, goodput_fraction
from solver.training.memory import optimizer_bytes, weights_bytes
from solver.training.programme import (
    HOURS_OF_DAY,
    Chosen,
    JobColumn,
    Shared,
    Task,
    all_day,
    choose,
    one_after_the_other,
    present_usd,
)
from solver.training.step import reference_pass_s
from solver.units import SECONDS_PER_HOUR, gib_from_bytes

SECONDS_PER_DAY = 86_400.0
LONGEST_DAYS = 365.0
"""Jobs that take longer are not planned."""
WEEK_DAYS = 7
ALONE = Beside()
"""No fleet beside the jobs."""
NOTHING_OWNED = Owned()
WEEKS = 12
"""Beginnings that are compared where jobs share limited machines."""
FAILURES, CHECKPOINT_RATE, RESTART = "device_hours_between_failures", "checkpoint_bytes_per_s_per_node", "restart_s"
BOOKED = "capacity_block"
"""The commitment of machines booked ahead for days."""
SLOWER_THAN_DEADLINE = 2.0
"""Ways that take longer than this many times the time there is are told as no price of the deadline."""


@dataclass(frozen=True)
class Allocation:
    """A job on so many nodes of one kind: what failures leave of its rate. factor: measured over predicted, by anchors."""

    trained: Trained
    spread: RatioInterval
    goodput: float
    nodes: int
    devices: int
    seconds: float
    factor: float
    anchors: tuple[str, ...]
    pause_s: float
    """A checkpoint and a restart: what stopping and going on costs."""

    @cached_property
    def found(self) -> TrainingEstimate:
        """Its layout and what its step is made of: for the few allocations that are told."""
        own = self.trained
        return estimate_training(own.run, own.constants, self.devices, own.layout_space, own.batch_stated)


class RuledOut:
    """Why offers cannot do a job: of each reason how often, and in words of the first one."""

    def __init__(self) -> None:
        self.reasons: dict[str, tuple[int, str]] = {}

    def add(self, reason: str, detail: str) -> None:
        count, first = self.reasons.get(reason, (0, detail))
        self.reasons[reason] = count + 1, first

    def __str__(self) -> str:
        """Most often first."""
        found = sorted(self.reasons.items(), key=lambda one: (-one[1][0], one[0]))
        return "; ".join(f"{reason} ({count} ways; {detail})" for reason, (count, detail) in found)


@dataclass
class Planned:
    """allocations: by the key of their column. terms: of offers that are paid once. dropped: by job, why offers have no
    column."""

    tasks: list[Task]
    columns: list[JobColumn]
    allocations: list[Allocation]
    offers: Mapping[str, Offer]
    shared: Shared
    chosen: Chosen
    beside: Beside
    terms: Mapping[str, PaidTerm] = field(default_factory=dict)
    owned: Owned = field(default_factory=Owned)
    serving: Serving | None = None
    apart: Chosen | None = None
    """Serving first, the jobs on what it leaves."""
    dropped: Mapping[str, "RuledOut"] = field(default_factory=dict)

    @property
    def taken(self) -> Sequence[JobColumn]:
        """Of the jobs, in their order; none without a plan."""
        return [column for column in self.chosen.columns or () if column.job != SERVED]


def limits_of(asked: TrainingRecommendationIn) -> LimitsIn:
    """The rules about offers, as plans of serving have them."""
    own = asked.limits
    return LimitsIn(
        devices=own.devices, providers=own.providers, regions=own.regions, commitments=own.commitments, offers=own.offers,
        sourcing=own.sourcing,
    )  # fmt: skip


def plan_training(
    asked: TrainingRecommendationIn,
    shapes: Mapping[str, LlmShape],
    offers: tuple[Offer, ...],
    model: TrainingModel,
    starts_at: dt.datetime,
    runs: Sequence[MeasuredRun] = (),
    only: Callable[[str, Offer], bool] = lambda _job, _offer: True,
    beside: Beside = ALONE,
    serving: Serving | None = None,
    owned: Owned = NOTHING_OWNED,
    machines: Mapping[str, Node] | None = None,
) -> Planned:
    """Enumerate and choose. runs: measured ones, by which predictions are corrected. only: which offers a job may have. beside:
    what a fleet leaves to the jobs. serving: what is served until their last deadline, planned with them. owned: machines that may
    be bought, by their names in ``machines``.

    Raises NoPlanInTimeError where the time ends with neither a plan nor a proof that there is none, and what the solver raises when nothing
    can be computed.
    """
    until = elapsed_s() + asked.time_limit_s
    allowed = (*(beside.left_of(o) for o in allowed_offers(offers, limits_of(asked))), *beside.idle)
    discount = owned.discount.percent_per_year / PERCENT
    quotas = {name: one.max_nodes for name, one in asked.limits.offers.items() if one.max_nodes is not None}
    buyable = list(own_offers(owned, machines or {}, quotas, discount))
    terms = reserved_terms(allowed, discount) | {offer.id: term for offer, term in buyable}
    allowed += tuple(offer for offer, _ in buyable)
    limited = {o.id: all_day(o.max_nodes) for o in allowed if o.max_nodes is not None} | dict(beside.free)
    if serving is not None:
        allowed += serving.idle
        limited = serving.limited(offers) | limited
    budget = None if asked.limits.max_usd is None else float(asked.limits.max_usd)
    shared = Shared(
        limited,
        budget,
        {name: term.usd for name, term in terms.items()},
        {name: term.present_usd for name, term in terms.items()},
        rooms_of(owned),
    )
    tasks, columns, allocations = [], list[JobColumn](), list[Allocation]()
    dropped = {job.name: RuledOut() for job in asked.jobs}
    for job in asked.jobs:
        deadline_s = None if job.deadline is None else (job.deadline - starts_at).total_seconds()
        tasks.append(Task(job.name, deadline_s, None if job.max_usd is None else float(job.max_usd)))
        most_s = LONGEST_DAYS * SECONDS_PER_DAY if deadline_s is None else deadline_s * SLOWER_THAN_DEADLINE
        cache: dict[tuple[object, ...], Allocation | None] = {}
        for offer in (one for one in allowed if only(job.name, one)):
            if elapsed_s() > until:
                raise NoPlanInTimeError(asked.time_limit_s)
            for nodes in node_counts(offer, job.max_devices):
                allocation = _allocation(
                    job, shapes[job.llm], offer, nodes, model, asked, runs, most_s, cache, dropped[job.name]
                )
                if allocation is None:
                    continue
                starts = range(WEEKS) if len(asked.jobs) > 1 and (offer.id in limited or offer.id in terms) else (0,)
                own = [
                    _column(
                        job, offer, allocation, week * WEEK_DAYS, len(allocations), hours, terms.get(offer.id), discount
                    )
                    for hours in _daily_hours(offer, nodes, beside, serving)
                    for week in starts
                ]
                columns += [one for one in own if one is not None and one.finish_s <= _end_s(offer, beside, terms)]
                allocations.append(allocation)
    every, apart = tasks, None
    if serving is not None:
        every = [*tasks, serving.task]
        until_s = max(task.deadline_s or 0.0 for task in tasks)
        columns += [
            replace(one, present_usd=present_usd(one.usd, 0.0, until_s, discount)) for one in serving.columns(until_s)
        ]
        apart = one_after_the_other(SERVED, every, columns, shared, max(until - elapsed_s(), LEAST_S))
    chosen = choose(every, columns, shared, max(until - elapsed_s(), LEAST_S))
    if chosen.columns is None and not chosen.proven:
        raise NoPlanInTimeError(asked.time_limit_s)
    named = {o.id: o for o in allowed}
    return Planned(tasks, columns, allocations, named, shared, chosen, beside, terms, owned, serving, apart, dropped)


def _daily_hours(offer: Offer, nodes: int, beside: Beside, serving: Serving | None) -> Sequence[tuple[int, ...]]:
    """Sets of hours of the day at which a job may hold so many nodes; empty: all hours. Of idle nodes those at which so many are
    free; of others all, and those at which a way to serve leaves enough.
    """
    if offer.id in beside.free:
        return [idle_hours(beside.free[offer.id], nodes)]
    ways = [] if serving is None else [left for left in serving.free_ways(offer) if max(left) >= nodes]
    own = [] if offer.id.startswith(IDLE) else [()]
    return list(dict.fromkeys([*own, *(idle_hours(left, nodes) for left in ways)]))


def _end_s(offer: Offer, beside: Beside, terms: Mapping[str, PaidTerm]) -> float:
    """Until when it can be had: idle nodes as long as their fleet is planned, bought ones until they are sold."""
    if offer.id in beside.free:
        return beside.lasts_s
    term = terms.get(offer.id)
    return math.inf if term is None or term.bought is None else term.months * MONTH_S


def node_counts(offer: Offer, most_devices: int) -> Iterator[int]:
    """Powers of two and three times them, as far as the offer, the job and the network go."""
    node = offer.node
    joined = node.network_bytes_per_s > 0.0 or node.rack_domain_devices > node.devices
    most = most_devices // node.devices if joined else min(1, most_devices // node.devices)
    if offer.max_nodes is not None:
        most = min(most, offer.max_nodes)
    for count in sorted({2**n * m for n in range(13) for m in (1, 3)}):
        if count <= most:
            yield count


def _allocation(
    job: TrainingJobIn, shape: LlmShape, offer: Offer, nodes: int, model: TrainingModel, asked: TrainingRecommendationIn,
    runs: Sequence[MeasuredRun], most_s: float, cache: dict[tuple[object, ...], Allocation | None], dropped: RuledOut,
) -> Allocation | None:  # fmt: skip
    """The best layout on so many nodes; None: it cannot run there, or not in time."""
    node = offer.node
    spot = offer.commitment == "spot"
    network = node.network_bytes_per_s if nodes > 1 else 0.0  # nothing passes over it within a node
    domains = node.link_domain_devices, node.rack_domain_devices
    key = (node.device.id, node.devices, *domains, network, nodes, spot)
    if key not in cache:
        try:
            cache[key] = _computed(job, shape, node, nodes, model, asked, runs, most_s, spot)
        except SolverError as error:
            dropped.add(getattr(error, "reason", "figure_missing"), str(error))
            cache[key] = None
    return cache[key]


def _computed(
    job: TrainingJobIn, shape: LlmShape, node: Node, nodes: int, model: TrainingModel, asked: TrainingRecommendationIn,
    runs: Sequence[MeasuredRun], most_s: float, spot: bool,
) -> Allocation:  # fmt: skip
    """Raises UnsupportedError for what cannot run there, or not in time, and what the solver raises."""
    devices = node.devices * nodes
    device = training_device(node.device, (), job.precision, model, node)
    trained = prepared(job, shape, device, devices, model)
    tokens = tokens_of(job)
    late = UnsupportedError(
        "too_slow", f"{devices} × {node.device.id} take longer than {most_s / SECONDS_PER_DAY:.3g} days"
    )
    roof = device.flop_per_s / model_flop_per_token(trained.run.shape) * SLOWER_THAN_DEADLINE
    if tokens / (roof * devices) > most_s:
        raise late
    found = compared(trained.run, trained.constants, devices, trained.layout_space, trained.batch_stated)
    if float(found.peaks[found.best]) > device.memory_bytes:  # tight or not: who pays for it expects it to run
        need, have = (gib_from_bytes(size) for size in (float(found.peaks[found.best]), device.memory_bytes))
        raise UnsupportedError(
            "does_not_fit",
            f"{devices} × {device.id} need {need:.0f} of {have:.0f} GiB each in the layout that needs least",
        )
    alone = found.alone
    states = float((weights_bytes(alone, trained.constants) + optimizer_bytes(alone, trained.constants))[0])
    reliability = Reliability(
        _figure(model, FAILURES),
        states * node.devices / _figure(model, CHECKPOINT_RATE),
        _figure(model, RESTART),
        (asked.limits.spot_preemptions_per_node_hour or 0.0) if spot else 0.0,
    )
    goodput = goodput_fraction(reliability, devices, nodes)
    if goodput <= 0.0:
        raise UnsupportedError("interrupted", f"{devices} × {device.id} are interrupted before they get anywhere")
    own = own_runs(runs, job, device, model, trained)
    factor, spread = anchored(job, shape, device, model, trained, [run.anchor for run in own])
    step_tokens = float(alone.tokens_per_step[0])
    working_s = max(tokens, step_tokens) * float(found.seconds[found.best])  # no run ends before its first step does
    if trained.run.reference == "precomputed":
        working_s += tokens_once(job) * float(reference_pass_s(alone, trained.constants)[0])
    seconds = working_s / step_tokens / goodput / factor
    if seconds > most_s:
        raise late
    pause_s = reliability.checkpoint_s + reliability.restart_s
    return Allocation(trained, spread, goodput, nodes, devices, seconds, factor, tuple(run.id for run in own), pause_s)


def job_usd(offer: Offer, nodes: int, seconds: float, term: PaidTerm | None) -> float:
    """Whole hours of every node; of one that is booked ahead whole days, of one that is committed to or bought its term."""
    if term is not None:
        return nodes * term.usd
    hours = max(1, math.ceil(seconds / SECONDS_PER_HOUR - 1e-9))
    if offer.commitment == BOOKED:
        hours = math.ceil(hours / HOURS_OF_DAY) * HOURS_OF_DAY
    return hours * nodes * offer.usd_per_hour


def _column(
    job: TrainingJobIn, offer: Offer, allocation: Allocation, start_day: int, key: int, hours: tuple[int, ...],
    term: PaidTerm | None, discount: float,
) -> JobColumn | None:  # fmt: skip
    """None: the hours of the day leave no time to work, or it takes longer than is planned."""
    worked_s = worked_s_a_day(hours, allocation.pause_s)
    if worked_s <= 0.0:
        return None
    taken_s = paid_s = allocation.seconds
    if hours:  # whole days: the last one's hours may be any of them
        days = math.ceil(allocation.seconds / worked_s)
        taken_s = days * SECONDS_PER_DAY
        paid_s = min(
            allocation.seconds + days * stretches(hours) * allocation.pause_s, days * len(hours) * SECONDS_PER_HOUR
        )
    if taken_s > LONGEST_DAYS * SECONDS_PER_DAY:
        return None
    finish_s = start_day * SECONDS_PER_DAY + taken_s
    slots = range(start_day, math.ceil(finish_s / SECONDS_PER_DAY))
    usd = job_usd(offer, allocation.nodes, paid_s, term)
    weighed = (  # as if it began with the plan: to begin later is no saving
        present_usd(usd, 0.0, taken_s, discount) if term is None else allocation.nodes * term.present_usd
    )
    return JobColumn(
        job.name, offer.id, allocation.nodes, start_day, tuple(slots), finish_s, usd, key, hours, present_usd=weighed
    )


def _figure(model: TrainingModel, name: str) -> float:
    value = model.value(name)
    if value is None:
        raise FigureMissingError("training", name)
    return value


def relaxed(planned: Planned) -> Sequence[tuple[str, str, JobColumn]]:
    """For each job without a column that keeps its limits: the soonest within its budget, and the cheapest by its deadline."""
    found: list[tuple[str, str, JobColumn]] = []
    for task in planned.tasks:
        own = [c for c in planned.columns if c.job == task.name]
        if any(task.allows(c) for c in own):
            continue
        in_budget = [c for c in own if Task(task.name, None, task.max_usd).allows(c)]
        in_time = [c for c in own if Task(task.name, task.deadline_s, None).allows(c)]
        if in_budget and task.deadline_s is not None:
            found.append((task.name, "deadline", min(in_budget, key=lambda c: (c.finish_s, c.usd))))
        if in_time and task.max_usd is not None:
            found.append((task.name, "max_usd", min(in_time, key=lambda c: (c.usd, c.finish_s))))
    return found
