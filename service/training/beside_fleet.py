"""What a stored fleet leaves to training jobs: nodes it has committed to and does not use at some hours, and what of quotas it
does not take. The fleet is as it was planned; how much less both together could cost at most is bounded, not solved."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlmodel import Session

from service.answers.queries import answer_by_id
from service.fleets.tables import FleetTable
from service.problems import FieldError, InvalidFieldsError
from service.training.said import BY_THE_HOUR, IDLE
from service.wire.fleet_answers import FleetResultOut
from solver.hardware import Node, Offer
from solver.training.programme import HOURS_OF_DAY, Hours
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

HOURS_OF_WEEK = 168


@dataclass(frozen=True)
class Beside:
    """idle: nodes that are paid for and free, at no price, by hour of the day in ``free``. taken: the most nodes of each offer by
    the hour that the fleet has. quotas: nodes of an offer that the fleet's request allows. lasts_s: until when
    that was looked at.
    """

    fleet: str = ""
    idle: tuple[Offer, ...] = ()
    free: Mapping[str, Hours] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    lasts_s: float = math.inf
    fleet_usd: float | None = None
    fleet_bound_usd: float | None = None
    """What the fleet costs in present value, and what no plan of its demand costs less than."""

    def left_of(self, offer: Offer) -> Offer:
        """The offer with as many nodes as the fleet never takes, where a quota says how many there are."""
        stated = [most for most in (offer.max_nodes, self.quotas.get(offer.id)) if most is not None]
        return offer if not stated else replace(offer, max_nodes=max(0, min(stated) - self.taken.get(offer.id, 0)))


def read_beside(session: Session, fleet: str | None, nodes: Mapping[str, Node], until_s: float) -> Beside:
    """until_s: after which no job runs. Raises InvalidFieldsError for a fleet that is not stored or has no plan to be beside."""
    if fleet is None:
        return Beside()
    row = answer_by_id(session, FleetTable, fleet)
    if row is None:
        raise InvalidFieldsError([FieldError(f"no fleet {fleet[:80]!r} is stored", pointer="/beside_fleet")])
    result = FleetResultOut.model_validate(row.result)
    if not result.periods or not result.calendar:
        why = f"is {result.outcome}" if not result.periods else "was stored before plans said what each hour needs"
        raise InvalidFieldsError([FieldError(f"{fleet} {why}: nothing can be beside it", pointer="/beside_fleet")])
    months = min(len(result.calendar), max(1, math.ceil(until_s / SECONDS_PER_HOUR / HOURS_PER_MONTH)))
    limits = row.request["limits"]
    quotas = {
        offer: int(own["max_nodes"]) for offer, own in limits["offers"].items() if own.get("max_nodes") is not None
    }
    solve = result.solve
    return replace(
        beside(fleet, result, nodes, months, quotas),
        fleet_usd=None if solve.usd is None else float(solve.usd),
        fleet_bound_usd=None if solve.bound_usd is None else float(solve.bound_usd),
    )


def beside(
    fleet: str, result: FleetResultOut, nodes: Mapping[str, Node], months: int, quotas: Mapping[str, int]
) -> Beside:
    """Of the first months of a fleet: at each hour of the day the fewest nodes that any day leaves idle."""
    taken: defaultdict[str, int] = defaultdict(int)
    every = sum(one.nodes for one in result.commitments)
    free: dict[str, list[int]] = {one.offer: [every] * HOURS_OF_DAY for one in result.commitments}
    for month in range(months):
        there = _committed(result, month)
        for hour, position in hours_of(result.calendar[month], month):
            used = dict[str, int]()
            for one in result.periods[position].nodes:
                if one.commitment in BY_THE_HOUR:
                    taken[one.offer] = max(taken[one.offer], one.nodes)
                else:
                    used[one.offer] = used.get(one.offer, 0) + one.nodes
            for offer, least in free.items():
                least[hour] = min(least[hour], there.get(offer, 0) - used.get(offer, 0))
    idle = [
        Offer(
            f"{IDLE}{one.offer}", nodes[one.node], one.provider, one.region, one.commitment, 0.0, max(free[one.offer])
        )
        for one in {one.offer: one for one in result.commitments}.values()
        if one.node in nodes and max(free[one.offer]) > 0
    ]
    return Beside(
        fleet,
        tuple(idle),
        {offer.id: tuple(free[offer.id.removeprefix(IDLE)]) for offer in idle},
        dict(taken),
        quotas,
        months * HOURS_PER_MONTH * SECONDS_PER_HOUR,
    )


def _committed(result: FleetResultOut, month: int) -> dict[str, int]:
    """Nodes of each offer or purchase whose term runs in a month."""
    there: dict[str, int] = {}
    for one in result.commitments:
        if one.start_month <= month < one.start_month + one.term_months:
            there[one.offer] = there.get(one.offer, 0) + one.nodes
    return there


def hours_of(calendar: list[int], month: int) -> Iterable[tuple[int, int]]:
    """Hour of the day and position of the period, of each hour of a month's calendar: of a week, or of all of its hours."""
    first = 0 if len(calendar) == HOURS_OF_WEEK else round(month * HOURS_PER_MONTH)
    return {((first + n) % HOURS_OF_DAY, position) for n, position in enumerate(calendar)}


def idle_hours(free: Hours, nodes: int) -> Hours:
    """Hours of the day at which so many are free; empty: all of them.

    >>> idle_hours((2, 2, 1, *(0,) * 21), 2), idle_hours((3,) * 24, 2)
    ((0, 1), ())
    """
    found = tuple(hour for hour, there in enumerate(free) if there >= nodes)
    return () if len(found) == HOURS_OF_DAY else found


def stretches(hours: Hours) -> int:
    """Times a day that work on these hours begins: midnight does not interrupt it.

    >>> stretches((22, 23, 0, 1, 8)), stretches(())
    (2, 0)
    """
    return sum((hour - 1) % HOURS_OF_DAY not in hours for hour in hours)


def worked_s_a_day(hours: Hours, pause_s: float) -> float:
    """Seconds of each day that are left for work on these hours: each stretch ends with a checkpoint and began with a restart.

    >>> worked_s_a_day((0, 1), 600.0)
    6600.0
    """
    length = (len(hours) or HOURS_OF_DAY) * SECONDS_PER_HOUR
    return length - stretches(hours) * pause_s
