"""Which machines each job rents and when it starts, and which of its plans serves beside them: set packing over enumerated columns,
solved by HiGHS with a proof."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulp

from solver.errors import SolverFailedError, VerificationError
from solver.fleet.highs import solve_with_cbc, solve_with_highs

TOLERANCE_USD = 1e-6
HOURS_OF_DAY = 24
Capacity = Mapping[str, Sequence[int]]
"""Nodes of an offer that jobs may hold together, by hour of the day. Of offers without an entry there are as many as wanted."""


def all_day(nodes: int) -> tuple[int, ...]:
    """As many at every hour."""
    return (nodes,) * HOURS_OF_DAY


@dataclass(frozen=True, slots=True)
class JobColumn:
    """One way to do one job: so many nodes of an offer from a slot on. The layout is solved already.

    slots: days in which it holds its nodes. finish_s: after the plan's beginning. usd: all of the job. hours: of each day in
    which it holds them; empty: all. beside: nodes of further offers that it holds at the same times.
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
    beside: tuple[tuple[str, int], ...] = ()

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """Offers with their nodes."""
        return ((self.offer, self.nodes), *self.beside)

    def takes_limited(self, nodes_of_offer: Capacity) -> bool:
        return any(offer in nodes_of_offer for offer, _ in self.held)

    def holds(self, slot: int, hour: int) -> bool:
        return slot in self.slots and (not self.hours or hour in self.hours)


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
class Chosen:
    """One column a job, in the jobs' order, or none. proven: nothing cheaper is among the columns (or nothing at all)."""

    columns: tuple[JobColumn, ...] | None
    usd: float
    bound_usd: float | None
    proven: bool
    considered: int
    seconds: float


def choose(
    tasks: Sequence[Task],
    columns: Sequence[JobColumn],
    nodes_of_offer: Capacity,
    max_usd: float | None = None,
    time_limit_s: float = 10.0,
) -> Chosen:
    """The cheapest choice of one column a job, within what each offer has at each hour and the budget of all.

    Raises SolverFailedError when no solver can handle the programme.
    """
    allowed = [c for task in tasks for c in columns if c.job == task.name and task.allows(c)]
    kept = undominated(allowed, nodes_of_offer)
    if {task.name for task in tasks} - {c.job for c in kept}:
        return Chosen(None, 0.0, None, True, len(columns), 0.0)
    programme, variables = _programme(tasks, kept, nodes_of_offer, max_usd)
    try:
        solved = solve_with_highs(programme, None, time_limit_s, 0.0, 0)
    except SolverFailedError:
        solved = solve_with_cbc(programme, time_limit_s, 0.0, 0)
    if solved.proof == "infeasible":
        return Chosen(None, 0.0, None, True, len(columns), solved.seconds)
    if solved.proof == "no_plan_found":
        return Chosen(None, 0.0, solved.bound, False, len(columns), solved.seconds)
    taken = {c.job: c for c, v in zip(kept, variables, strict=True) if (v.value() or 0.0) > 0.5}
    plan = tuple(taken[task.name] for task in tasks)
    verify(plan, tasks, nodes_of_offer, max_usd)
    usd = sum(c.usd for c in plan)
    return Chosen(
        plan,
        usd,
        min(usd, solved.bound if solved.bound is not None else usd),
        solved.proof == "optimal",
        len(columns),
        solved.seconds,
    )


def one_after_the_other(
    first: str,
    tasks: Sequence[Task],
    columns: Sequence[JobColumn],
    nodes_of_offer: Capacity,
    max_usd: float | None = None,
    time_limit_s: float = 10.0,
) -> Chosen:
    """The plan of two steps: the task ``first`` takes what is cheapest for it, the others what it leaves. Never cheaper than
    ``choose``, and none where it leaves too little."""
    alone = choose([t for t in tasks if t.name == first], columns, nodes_of_offer, max_usd, time_limit_s)
    if alone.columns is None:
        return alone
    kept = [c for c in columns if c.job != first or c == alone.columns[0]]
    return choose(tasks, kept, nodes_of_offer, max_usd, time_limit_s)


def undominated(columns: Sequence[JobColumn], nodes_of_offer: Capacity) -> list[JobColumn]:
    """Without columns of unlimited offers that another of the same job beats in cost and end: they are in no cheapest plan.

    Only a column that itself takes nothing limited may stand in for another.
    """
    kept = [c for c in columns if c.takes_limited(nodes_of_offer)]
    free = sorted(
        (c for c in columns if not c.takes_limited(nodes_of_offer)),
        key=lambda c: (c.job, c.usd, c.finish_s, c.offer, c.nodes),
    )
    cheapest: dict[str, JobColumn] = {}
    for column in free:
        cheapest.setdefault(column.job, column)
    return kept + list(cheapest.values())


def _programme(
    tasks: Sequence[Task], columns: Sequence[JobColumn], nodes_of_offer: Capacity, max_usd: float | None
) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    programme = pulp.LpProblem("training", pulp.LpMinimize)
    taken = [programme.add_variable(f"x{n}", cat="Binary") for n in range(len(columns))]
    programme += pulp.lpSum(c.usd * x for c, x in zip(columns, taken, strict=True))
    for task in tasks:
        programme += pulp.lpSum(x for c, x in zip(columns, taken, strict=True) if c.job == task.name) == 1
    held: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for position, column in enumerate(columns):
        for offer, nodes in column.held:
            for slot in column.slots if offer in nodes_of_offer else ():
                held.setdefault((offer, slot), []).append((position, nodes))
    for (offer, _), members in sorted(held.items()):
        for together, there in _at_once([columns[n].hours for n, _ in members], nodes_of_offer[offer]):
            programme += pulp.lpSum(members[m][1] * taken[members[m][0]] for m in together) <= there
    if max_usd is not None:
        programme += pulp.lpSum(c.usd * x for c, x in zip(columns, taken, strict=True)) <= max_usd
    return programme, taken


def _at_once(hours: Sequence[tuple[int, ...]], nodes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Which of the columns with these hours hold nodes at the same time, with the fewest nodes there are then."""
    if not any(hours):
        yield tuple(range(len(hours))), min(nodes)
        return
    fewest: dict[tuple[int, ...], int] = {}
    for hour, there in enumerate(nodes):
        together = tuple(n for n, own in enumerate(hours) if not own or hour in own)
        fewest[together] = min(there, fewest.get(together, there))
    yield from fewest.items()


def is_plan(plan: Sequence[JobColumn], tasks: Sequence[Task], nodes_of_offer: Capacity, max_usd: float | None) -> bool:
    """Is every job done as asked, and nothing held twice? Counts hour by hour, unlike the programme."""
    if [c.job for c in plan] != [t.name for t in tasks] or not all(
        t.allows(c) for t, c in zip(tasks, plan, strict=True)
    ):
        return False
    if max_usd is not None and sum(c.usd for c in plan) > max_usd + TOLERANCE_USD:
        return False
    last = max((slot for c in plan for slot in c.slots), default=-1)
    for slot in range(last + 1):
        for hour in range(HOURS_OF_DAY):
            used: dict[str, int] = {}
            for column in plan:
                for offer, nodes in column.held if column.holds(slot, hour) else ():
                    used[offer] = used.get(offer, 0) + nodes
            if any(nodes > nodes_of_offer[offer][hour] for offer, nodes in used.items() if offer in nodes_of_offer):
                return False
    return True


def verify(plan: Sequence[JobColumn], tasks: Sequence[Task], nodes_of_offer: Capacity, max_usd: float | None) -> None:
    """Raises VerificationError for a plan that breaks a rule: a defect, never an answer."""
    if not is_plan(plan, tasks, nodes_of_offer, max_usd):
        raise VerificationError("the training plan breaks a limit it was made under")


def frontier(columns: Sequence[JobColumn], job: str) -> list[JobColumn]:
    """What each end costs: columns of a job that none is both cheaper and sooner than, soonest first."""
    found: list[JobColumn] = []
    for column in sorted((c for c in columns if c.job == job), key=lambda c: (c.usd, c.finish_s, c.offer, c.nodes)):
        if not found or column.finish_s < found[-1].finish_s:
            found.append(column)
    return found[::-1]
