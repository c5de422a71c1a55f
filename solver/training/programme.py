"""Which machines each job rents and when it starts, what is committed to for all of them, and which of its plans serves beside
them: set packing over enumerated columns, solved by HiGHS with a proof."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulp

from solver.errors import SolverFailedError, VerificationError
from solver.fleet.highs import solve_with_cbc, solve_with_highs
from solver.tco.capital import discount_factors
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

TOLERANCE_USD = 1e-6
HOURS_OF_DAY = 24
Hours = tuple[int, ...]
"""Nodes by hour of the day."""
Capacity = Mapping[str, Sequence[int]]
"""Nodes of an offer that jobs may hold together, by hour of the day. Of offers without an entry there are as many as wanted."""
Members = dict[tuple[str, int], list[tuple[int, Hours]]]
"""Of an offer in a slot, columns by position with the nodes that they take."""


def all_day(nodes: int) -> Hours:
    """As many at every hour."""
    return (nodes,) * HOURS_OF_DAY


@dataclass(frozen=True, slots=True)
class JobColumn:
    """One way to do one job: so many nodes of an offer from a slot on. The layout is solved already.

    slots: days in which it holds its nodes. finish_s: after the plan's beginning. usd: all of the job, alone. hours: of each day in
    which it holds them; empty: all. beside: nodes of further offers that it takes in the same slots, by hour of the day; fewer than
    none: it leaves so many to others. present_usd: ``usd`` in present value; None: as much.
    """

    job: str
    offer: str
    nodes: int
    start_slot: int
    slots: tuple[int, ...]
    finish_s: float
    usd: float
    key: int = 0
    """Whose layout and rate it has, in the caller's table."""
    hours: tuple[int, ...] = ()
    beside: tuple[tuple[str, Hours], ...] = ()
    present_usd: float | None = None

    @property
    def weighed_usd(self) -> float:
        """What it counts in what is minimised."""
        return self.usd if self.present_usd is None else self.present_usd

    @property
    def own_by_hour(self) -> Hours:
        """Its nodes, by hour of the day."""
        if not self.hours:
            return all_day(self.nodes)
        return tuple(self.nodes if hour in self.hours else 0 for hour in range(HOURS_OF_DAY))

    @property
    def by_hour(self) -> tuple[tuple[str, Hours], ...]:
        """Offers with the nodes that it takes of them, by hour of the day."""
        return ((self.offer, self.own_by_hour), *self.beside)


@dataclass(frozen=True, slots=True)
class Task:
    """What a column of the job must keep: done by ``deadline_s``, for ``max_usd``; None: whatever it takes."""

    name: str
    deadline_s: float | None = None
    max_usd: float | None = None

    def allows(self, column: JobColumn) -> bool:
        return (self.deadline_s is None or column.finish_s <= self.deadline_s) and (
            self.max_usd is None or column.usd <= self.max_usd + TOLERANCE_USD
        )


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """Where bought nodes stand: Σ per_node · nodes ≤ most, over the offers named (power, racks)."""

    per_node: Mapping[str, float]
    most: float


@dataclass(frozen=True, slots=True)
class Shared:
    """What all jobs share. nodes: by offer. usd: for all together; None: whatever it takes. usd_per_term: of a node of an offer
    that is committed to or bought: paid once, whichever jobs hold it and when, less what it is sold for; present_usd_per_term: the
    same in present value, where that is another amount.
    """

    nodes: Capacity
    usd: float | None = None
    usd_per_term: Mapping[str, float] = field(default_factory=dict)
    present_usd_per_term: Mapping[str, float] = field(default_factory=dict)
    rooms: Sequence[SharedPlace] = ()

    def has(self, column: JobColumn) -> bool:
        """Does the column take anything of it?"""
        offers = (column.offer, *(offer for offer, _ in column.beside))
        return column.offer in self.usd_per_term or any(offer in self.nodes for offer in offers)

    def paid_usd(self, column: JobColumn) -> float:
        """What it costs beyond what is committed to."""
        return 0.0 if column.offer in self.usd_per_term else column.usd

    def weighed_usd(self, column: JobColumn) -> float:
        """The same in present value."""
        return 0.0 if column.offer in self.usd_per_term else column.weighed_usd

    def weighed_term_usd(self, offer: str) -> float:
        """Of a node of what is committed to, in present value."""
        return self.present_usd_per_term.get(offer, self.usd_per_term.get(offer, 0.0))


@dataclass(frozen=True, slots=True)
class Chosen:
    """One column a job, in the jobs' order, or none. usd and bound_usd: in present value. proven: nothing cheaper is among the columns
    (or nothing at all)."""

    columns: tuple[JobColumn, ...] | None
    usd: float
    bound_usd: float | None
    proven: bool
    considered: int
    seconds: float


def choose(tasks: Sequence[Task], columns: Sequence[JobColumn], shared: Shared, time_limit_s: float = 10.0) -> Chosen:
    """The cheapest choice of one column a job, within what each offer has at each hour and the budget of all.

    Raises SolverFailedError when no solver can handle the programme.
    """
    kept = undominated(tasks, columns, shared)
    if {task.name for task in tasks} - {c.job for c in kept}:
        return Chosen(None, 0.0, None, True, len(columns), 0.0)
    programme, variables = _programme(tasks, kept, shared)
    try:
        solved = solve_with_highs(programme, None, time_limit_s, 0.0, 0)
    except SolverFailedError:
        solved = solve_with_cbc(programme, time_limit_s, 0.0, 0)
    if solved.proof == "infeasible":
        return Chosen(None, 0.0, None, True, len(columns), solved.seconds)
    if solved.proof == "no_plan_found":
        return Chosen(None, 0.0, solved.bound, False, len(columns), solved.seconds)
    taken = {c.job: c for c, v in zip(kept, variables, strict=True) if (v.value() or 0.0) > 0.5}
    plan = begun_early(tuple(taken[task.name] for task in tasks), kept, tasks, shared)
    verify(plan, tasks, shared)
    usd = weighed_plan_usd(plan, shared)
    return Chosen(
        plan,
        usd,
        min(usd, solved.bound if solved.bound is not None else usd),
        solved.proof == "optimal",
        len(columns),
        solved.seconds,
    )


def begun_early(
    plan: tuple[JobColumn, ...], columns: Sequence[JobColumn], tasks: Sequence[Task], shared: Shared
) -> tuple[JobColumn, ...]:
    """Of plans that cost as much, the one whose jobs begin sooner: each on the same nodes, as early as the others let it."""
    usd = weighed_plan_usd(plan, shared)
    for position in sorted(range(len(plan)), key=lambda n: plan[n].start_slot):
        own = plan[position]
        same = (own.job, own.offer, own.nodes, own.hours, own.beside, own.key)
        sooner = [
            c
            for c in columns
            if c.start_slot < own.start_slot and (c.job, c.offer, c.nodes, c.hours, c.beside, c.key) == same
        ]
        for column in sorted(sooner, key=lambda c: c.start_slot):
            tried = (*plan[:position], column, *plan[position + 1 :])
            if weighed_plan_usd(tried, shared) <= usd + TOLERANCE_USD and is_plan(tried, tasks, shared):
                plan = tried
                break
    return plan


def one_after_the_other(
    first: str, tasks: Sequence[Task], columns: Sequence[JobColumn], shared: Shared, time_limit_s: float = 10.0
) -> Chosen:
    """The plan of two steps: the task ``first`` takes what is cheapest for it, the others what it leaves. Never cheaper than
    ``choose``, and none where it leaves too little."""
    alone = choose([t for t in tasks if t.name == first], columns, shared, time_limit_s)
    if alone.columns is None:
        return alone
    kept = [c for c in columns if c.job != first or c == alone.columns[0]]
    return choose(tasks, kept, shared, time_limit_s)


def undominated(tasks: Sequence[Task], columns: Sequence[JobColumn], shared: Shared) -> list[JobColumn]:
    """What the tasks allow, without columns that are in no cheapest plan: those that take nothing shared where another of the job
    does neither and is no dearer, paid or in present value, and commitments to more than all jobs cost without sharing.
    """
    limits = {task.name: task for task in tasks}
    allowed = [c for c in columns if c.job in limits and limits[c.job].allows(c)]
    alone: dict[str, list[JobColumn]] = {}
    for column in sorted((c for c in allowed if not shared.has(c)), key=_order):
        own = alone.setdefault(column.job, [])
        if not own or (shared.usd is not None and column.usd < own[-1].usd):
            own.append(column)
    cheapest = [own[0] for own in alone.values()]
    most = float("inf")
    if alone.keys() == limits.keys() and (shared.usd is None or sum(c.usd for c in cheapest) <= shared.usd):
        most = sum(c.weighed_usd for c in cheapest)
    kept = [c for c in allowed if shared.has(c) and c.nodes * shared.weighed_term_usd(c.offer) <= most + TOLERANCE_USD]
    return kept + [column for own in alone.values() for column in own]


def _order(column: JobColumn) -> tuple[float, float, float, str, int]:
    return column.weighed_usd, column.usd, column.finish_s, column.offer, column.nodes


def _programme(
    tasks: Sequence[Task], columns: Sequence[JobColumn], shared: Shared
) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    """Commitments need not be whole numbers here: the fewest that hold whole columns are."""
    programme = pulp.LpProblem("training", pulp.LpMinimize)
    taken = [programme.add_variable(f"x{n}", cat="Binary") for n in range(len(columns))]
    terms = {offer: programme.add_variable(f"c{n}", lowBound=0) for n, offer in enumerate(sorted(shared.usd_per_term))}
    programme += pulp.lpSum(shared.weighed_usd(c) * x for c, x in zip(columns, taken, strict=True)) + pulp.lpSum(
        shared.weighed_term_usd(offer) * nodes for offer, nodes in terms.items()
    )
    for task in tasks:
        programme += pulp.lpSum(x for c, x in zip(columns, taken, strict=True) if c.job == task.name) == 1
    held: Members = {}
    committed: Members = {}
    for position, column in enumerate(columns):
        for slot in column.slots:
            for offer, nodes in column.by_hour:
                if offer in shared.nodes:
                    held.setdefault((offer, slot), []).append((position, nodes))
            if column.offer in terms:
                committed.setdefault((column.offer, slot), []).append((position, column.own_by_hour))
    for (offer, _), own in sorted(held.items()):
        for together, hours in _at_once(own):
            there = min(shared.nodes[offer][hour] for hour in hours)
            programme += pulp.lpSum(nodes * taken[position] for position, nodes in together) <= there
    for (offer, _), own in sorted(committed.items()):
        for together, _ in _at_once(own):
            programme += pulp.lpSum(nodes * taken[position] for position, nodes in together) <= terms[offer]
    for room in shared.rooms:
        if any(offer in terms for offer in room.per_node):
            programme += pulp.lpSum(each * terms[o] for o, each in room.per_node.items() if o in terms) <= room.most
    if shared.usd is not None:
        usd = pulp.lpSum(shared.paid_usd(c) * x for c, x in zip(columns, taken, strict=True))
        usd += pulp.lpSum(shared.usd_per_term[offer] * nodes for offer, nodes in terms.items())
        programme += usd <= shared.usd
    return programme, taken


def _at_once(members: Sequence[tuple[int, Hours]]) -> Iterator[tuple[tuple[tuple[int, int], ...], Sequence[int]]]:
    """Which columns hold how many nodes at the same time, with the hours at which that is so."""
    if all(len(set(nodes)) == 1 for _, nodes in members):
        yield tuple((position, nodes[0]) for position, nodes in members), range(HOURS_OF_DAY)
        return
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for hour in range(HOURS_OF_DAY):
        together = tuple((position, nodes[hour]) for position, nodes in members if nodes[hour])
        found.setdefault(together, []).append(hour)
    yield from ((together, hours) for together, hours in found.items() if together)


def committed_nodes(plan: Sequence[JobColumn], shared: Shared) -> dict[str, int]:
    """Nodes of each offer committed to, as the plan holds them at its busiest hour."""
    own = [replace(c, beside=()) for c in plan if c.offer in shared.usd_per_term]
    return {offer: max(used.get(offer, 0) for used in _used_by_hour(own)) for offer in sorted({c.offer for c in own})}


def plan_usd(plan: Sequence[JobColumn], shared: Shared) -> float:
    """What is paid by the hour, and for whole terms."""
    terms = (shared.usd_per_term[offer] * nodes for offer, nodes in committed_nodes(plan, shared).items())
    return sum(shared.paid_usd(c) for c in plan) + sum(terms)


def weighed_plan_usd(plan: Sequence[JobColumn], shared: Shared) -> float:
    """The same in present value: what is minimised."""
    terms = (shared.weighed_term_usd(offer) * nodes for offer, nodes in committed_nodes(plan, shared).items())
    return sum(shared.weighed_usd(c) for c in plan) + sum(terms)


def present_usd(usd: float, begin_s: float, end_s: float, discount_fraction_per_year: float) -> float:
    """Present value of what is paid evenly between two times, bills being due at the end of their month.

    >>> month = 730.0 * 3600.0
    >>> present_usd(24.0, 0.0, 2 * month, 0.0), round(present_usd(24.0, 0.5 * month, 1.5 * month, 0.1), 4)
    (24.0, 23.716)
    """
    if discount_fraction_per_year == 0.0 or end_s <= begin_s:
        return usd
    month_s = HOURS_PER_MONTH * SECONDS_PER_HOUR
    months = range(int(begin_s // month_s), math.ceil(end_s / month_s))
    factors = discount_factors(discount_fraction_per_year, months.stop)
    within = (max(0.0, min(end_s, (m + 1) * month_s) - max(begin_s, m * month_s)) for m in months)
    return usd * math.fsum(float(factors[m + 1]) * s for m, s in zip(months, within, strict=True)) / (end_s - begin_s)


def _used_by_hour(plan: Sequence[JobColumn]) -> Iterator[dict[str, int]]:
    """Nodes of each offer that are held, hour by hour."""
    held = [(column, column.by_hour) for column in plan]
    for slot in range(max((slot for c in plan for slot in c.slots), default=-1) + 1):
        for hour in range(HOURS_OF_DAY):
            used: dict[str, int] = {}
            for column, by_hour in held:
                for offer, nodes in by_hour if slot in column.slots else ():
                    used[offer] = used.get(offer, 0) + nodes[hour]
            yield used


def is_plan(plan: Sequence[JobColumn], tasks: Sequence[Task], shared: Shared) -> bool:
    """Is every job done as asked, and nothing held twice? Counts hour by hour, unlike the programme."""
    if [c.job for c in plan] != [t.name for t in tasks] or not all(
        t.allows(c) for t, c in zip(tasks, plan, strict=True)
    ):
        return False
    if shared.usd is not None and plan_usd(plan, shared) > shared.usd + TOLERANCE_USD:
        return False
    bought = committed_nodes(plan, shared)
    for room in shared.rooms:
        if sum(each * bought.get(o, 0) for o, each in room.per_node.items()) > room.most * (1.0 + 1e-9):
            return False
    return not any(
        nodes > shared.nodes[offer][n % HOURS_OF_DAY]
        for n, used in enumerate(_used_by_hour(plan))
        for offer, nodes in used.items()
        if offer in shared.nodes
    )


def verify(plan: Sequence[JobColumn], tasks: Sequence[Task], shared: Shared) -> None:
    """Raises VerificationError for a plan that breaks a rule: a defect, never an answer."""
    if not is_plan(plan, tasks, shared):
        raise VerificationError("the training plan breaks a limit it was made under")


def frontier(columns: Sequence[JobColumn], job: str) -> list[JobColumn]:
    """What each end costs: columns of a job that none is both cheaper and sooner than, soonest first."""
    found: list[JobColumn] = []
    for column in sorted((c for c in columns if c.job == job), key=lambda c: (c.usd, c.finish_s, c.offer, c.nodes)):
        if not found or column.finish_s < found[-1].finish_s:
            found.append(column)
    return found[::-1]
