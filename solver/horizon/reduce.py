"""What matters of a catalog for a plan over time: exact reductions, before anything is solved.

Nodes of one type are one another's equals wherever they are rented, so that only the cheapest sources of each type
count; and a type that another replaces at no higher price is not needed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from solver.horizon.problem import Commitment, HourlyOffer, SharedLimit
from solver.units import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class ReducedRow:
    """A candidate: devices it takes and requests per second it serves, and where it came from. nodes: whole ones that it
    takes, where it does not fit inside one."""

    workload: int
    node_type: str
    devices: int
    requests_per_s: float
    row: int
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """Where nodes of a type come from. term_months: 0 by the hour. usd_per_hour: of the whole term, hours unused too."""

    offer_id: str
    node_type: str
    kind: str
    usd_per_hour: float
    term_months: int
    max_nodes: int | None
    interruptible: bool


def undominated_rows(rows: Sequence[ReducedRow]) -> list[ReducedRow]:
    """Rows of one workload and node type that no other replaces: t = ⌈μ_i / μ_j⌉ replicas of j in the devices of i.

    Rows inside a node and rows over several do not replace one another here.
    """
    kept: list[ReducedRow] = []
    for one in sorted(rows, key=lambda r: (r.devices, -r.requests_per_s, r.row)):
        replaced = any(
            math.ceil(one.requests_per_s / other.requests_per_s - 1e-12) * other.devices <= one.devices
            for other in kept
            if (other.nodes > 1) == (one.nodes > 1)
        )
        if not replaced:
            kept.append(one)
    return kept


def replaces(a: Sequence[ReducedRow], a_devices: int, b: Sequence[ReducedRow], b_devices: int) -> bool:
    """Can a node of type a always stand where one of type b stood?

    A replica with g of b's G devices gets ⌊g G_a / G⌋ devices of the other node; its work must fit there. One over
    several nodes gets as many of the other.
    """

    def fits(one: ReducedRow, other: ReducedRow) -> bool:
        replicas = math.ceil(one.requests_per_s / other.requests_per_s - 1e-12)
        if one.nodes == 1:
            return other.nodes == 1 and replicas * other.devices <= one.devices * a_devices // b_devices
        if other.nodes == 1:
            return replicas <= a_devices // other.devices * one.nodes
        return replicas * other.nodes <= one.nodes

    return all(any(other.workload == one.workload and fits(one, other) for other in a) for one in b)


def _standing_in(rows: Mapping[str, Sequence[ReducedRow]], devices: Mapping[str, int]) -> Callable[[str, str], bool]:
    """``replaces`` by the types' ids, each pair looked at once."""
    known: dict[tuple[str, str], bool] = {}

    def stands_in(a: str, b: str) -> bool:
        if a == b:
            return True
        if (a, b) not in known:
            known[a, b] = replaces(rows[a], devices[a], rows[b], devices[b])
        return known[a, b]

    return stands_in


def needed_sources(
    sources: Sequence[Source], rows: Mapping[str, Sequence[ReducedRow]], devices: Mapping[str, int]
) -> list[Source]:
    """Sources that some best plan may need.

    Dropped: nodes of a type nothing runs on; beyond an unlimited source of the same type and term, dearer ones; a
    source that an unlimited one of a type that replaces it undercuts, where that one is at least as flexible: by the
    hour beats any term, and a term beats its equal. Interruptible sources replace interruptible ones only.
    """
    able = [one for one in sources if rows.get(one.node_type)]
    able.sort(key=lambda s: (s.usd_per_hour, s.offer_id))
    stands_in = _standing_in(rows, devices)
    kept: list[Source] = []
    for one in able:
        beaten = any(
            other.max_nodes is None
            and other.interruptible <= one.interruptible
            and other.term_months in (0, one.term_months)
            and stands_in(other.node_type, one.node_type)
            for other in kept
        )
        if not beaten:
            kept.append(one)
    return kept


def needed_purchases(
    bought: Sequence[Commitment],
    node_type: Mapping[str, str],
    sources: Sequence[Source],
    rows: Mapping[str, Sequence[ReducedRow]],
    devices: Mapping[str, int],
    shared_limits: Sequence[SharedLimit],
    discount_fraction_per_year: float,
) -> list[Commitment]:
    """Purchases that some best plan may need. node_type: by id.

    Dropped: machines nothing runs on; beside an unlimited steady source by the hour of a type that replaces it, those
    that cost no less for all their hours; beside an unlimited purchase of the same months, those of a type that it
    replaces at no higher price, where it takes no more of any shared limit.
    """
    able = [one for one in bought if rows.get(node_type[one.id])]
    usd = {one: one.present_usd(discount_fraction_per_year) for one in able}
    takes = {one.id: tuple(dict(limit.per_node).get(one.id, 0.0) for limit in shared_limits) for one in able}
    able.sort(key=lambda one: (usd[one], one.id, one.start_month))
    by_the_hour = [one for one in sources if not one.term_months and one.max_nodes is None and not one.interruptible]
    stands_in = _standing_in(rows, devices)
    hours_due: dict[tuple[int, int], float] = {}
    kept: list[Commitment] = []
    for one in able:
        months = (one.start_month, one.term_months)
        if months not in hours_due:
            rent = HOURS_PER_MONTH * one.term_months  # of a node at 1 USD an hour
            hours_due[months] = Commitment("", 0, "", *months, rent).present_usd(discount_fraction_per_year)
        mine = node_type[one.id]
        beaten = any(
            other.usd_per_hour * hours_due[months] <= usd[one] and stands_in(other.node_type, mine)
            for other in by_the_hour
        ) or any(
            other.max_nodes is None
            and (other.start_month, other.term_months) == months
            and all(a <= b for a, b in zip(takes[other.id], takes[one.id], strict=True))
            and stands_in(node_type[other.id], mine)
            for other in kept
        )
        if not beaten:
            kept.append(one)
    return kept


def hourly_offers(sources: Sequence[Source], index: Mapping[str, int]) -> tuple[HourlyOffer, ...]:
    return tuple(
        HourlyOffer(one.offer_id, index[one.node_type], one.usd_per_hour, one.max_nodes, one.interruptible)
        for one in sources
        if one.term_months == 0
    )


def commitments(
    sources: Sequence[Source], index: Mapping[str, int], months: int, *, beyond_horizon: bool
) -> tuple[Commitment, ...]:
    """Every month in which each term may start: so that it ends inside the horizon, or any, all payments counted."""
    return tuple(
        Commitment(
            one.offer_id,
            index[one.node_type],
            one.kind,
            start,
            one.term_months,
            one.usd_per_hour * HOURS_PER_MONTH * one.term_months,
            one.max_nodes,
        )
        for one in sources
        if one.term_months
        for start in range(months if beyond_horizon else months - one.term_months + 1)
    )
