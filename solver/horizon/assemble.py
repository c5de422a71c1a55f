"""What is asked of a fleet over time, and the horizon problem that it makes: sources and deployments that may matter."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from solver.candidates.screening import Screened, one_process_is_enough
from solver.capacity.sustained_rate import Bracket
from solver.horizon.demand import Profile, Series
from solver.horizon.operation import Operation
from solver.horizon.places import Standing, distance, may_stand, standing
from solver.horizon.problem import (
    BatchWork,
    Commitment,
    HorizonDeployment,
    HorizonProblem,
    NodeType,
    Period,
    SharedLimit,
    SpotRule,
)
from solver.horizon.reduce import (
    ReducedRow,
    Source,
    commitments,
    hourly_offers,
    needed_purchases,
    needed_sources,
    undominated_rows,
)
from solver.planning.types import PlanningInput

PURCHASE = "purchase"
"""Kind of commitment."""
OWN = "own"
"""Provider of bought nodes: no workload that is pinned to others runs on them."""


@dataclass(frozen=True, slots=True)
class BatchDemand:
    """Requests of a workload (by position) to be done in the months [from_month, to_month)."""

    workload: int
    requests: float
    from_month: int
    to_month: int


@dataclass(frozen=True, slots=True)
class Purchase:
    """Buying nodes of one machine at one site in one month. payments: (months after the start of the horizon, USD) of a
    node, from its price to what it is sold for; see ``Commitment``."""

    id: str
    machine: str
    devices: int
    region: str
    start_month: int
    term_months: int
    payments: tuple[tuple[int, float], ...]
    max_nodes: int | None = None

    @property
    def usd_per_node(self) -> float:
        return math.fsum(usd for _, usd in self.payments)


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
    shared_limits: tuple[SharedLimit, ...] = ()
    discount_fraction_per_year: float = 0.0
    default_max_nodes: int | None = None
    """Most nodes of an offer that states no limit; None: as many as wanted."""
    beyond_horizon: bool = False
    operation: Operation = field(default_factory=Operation)
    time_limit_s: float = 60.0
    gap_fraction: float = 0.01

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """Provider and region by source."""
        return {one.id: (OWN, one.region) for one in self.purchases} | {
            offer.id: (offer.provider, offer.region) for offer in self.planning.offers
        }


Known = Mapping[tuple[int, int], Bracket]
"""What is known of the rates that candidates sustain, by (workload, row)."""


@dataclass(frozen=True, slots=True)
class _Types:
    """Node types: machine and standing by name, and the name by source."""

    machine: dict[str, str]
    standing: dict[str, Standing]
    of: dict[str, str]


@dataclass(frozen=True, slots=True)
class FleetCandidate:
    """A way of running a workload inside one machine, or on ``nodes`` whole ones of one source.

    distance: which of the workload's round trips it was counted at; network_s: that round trip. row: of the workload's
    search space.
    """

    workload: int
    machine: str
    distance: int
    network_s: float
    devices: int
    requests_per_s: float
    row: int
    nodes: int = 1


def build_problem(
    asked: FleetInput,
    screened: Sequence[Screened],
    periods: tuple[Period, ...],
    brackets: Known,
    *,
    limited: bool = False,
    confirmed: bool = False,
) -> HorizonProblem:
    """The problem of everything screened, with the capacities that simulation has left; see ``candidates``, ``problem_of``."""
    machines = {offer.node.id for offer in asked.planning.offers} | {one.machine for one in asked.purchases}
    peaks = [
        math.inf if any(one.workload == w for one in asked.batch) else max(p.requests_per_s[w] for p in periods)
        for w in range(len(screened))
    ]
    able = candidates(screened, brackets, machines, peaks, confirmed=confirmed)
    return problem_of(asked, able, periods, limited=limited)


def candidates(
    screened: Sequence[Screened],
    brackets: Known,
    machines: Set[str],
    peaks: Sequence[float],
    *,
    confirmed: bool = False,
) -> list[FleetCandidate]:
    """What serves anything on machines that can be had: over several nodes only where a workload fits inside none.

    peaks: requests a second of each workload at most; infinite where that is open.
    confirmed: only what simulation has seen to hold, at the rates it was seen to hold.
    """
    found: list[FleetCandidate] = []
    for w, one in enumerate(screened):
        space = one.space
        limit = one.workload.utilisation_limit_fraction
        per_copy = max(1, len(space.rows) // one.copies)
        mine: list[FleetCandidate] = []
        able = (one.only.most_requests_per_s > 0.0) & ~one_process_is_enough(one, peaks[w])
        for row in np.flatnonzero(able).tolist():
            rate = _rate(brackets.get((w, row)), float(one.only.most_requests_per_s[row]), confirmed=confirmed) * limit
            if rate <= 0.0:
                continue
            devices, nodes = int(space.devices_per_replica[row]), int(space.nodes_per_replica[row])
            mine += [
                FleetCandidate(w, machine, row // per_copy, one.network_of(row), devices, rate, row, nodes)
                for machine in space.platforms[int(space.platform_index[row])].node_ids
                if machine in machines
            ]
        within = {candidate.machine for candidate in mine if candidate.nodes == 1}
        found += [candidate for candidate in mine if candidate.nodes == 1 or candidate.machine not in within]
    return found


def _rate(known: Bracket | None, most: float, *, confirmed: bool) -> float:
    """Requests per second of a replica: what it was seen to sustain, or what nothing has shown to be too much."""
    if confirmed:
        return 0.0 if known is None else known.holds
    return most if known is None else known.at_most


def problem_of(
    asked: FleetInput, able: Sequence[FleetCandidate], periods: tuple[Period, ...], *, limited: bool = False
) -> HorizonProblem:
    """Sources and deployments that may matter.

    limited: offers without a limit of their own have the default one. Off, the programme is far smaller, and a plan
    that stays within the default limits is as good.
    """
    devices = {offer.node.id: offer.node.devices for offer in asked.planning.offers}
    devices |= {one.machine: one.devices for one in asked.purchases}
    spanned = frozenset(one.machine for one in able if one.nodes > 1)
    types = _types(asked, spanned)
    rows = _rows(able, types, devices)
    in_type = {name: devices[machine] for name, machine in types.machine.items()}
    sources = needed_sources(_sources(asked, types, limited=limited), rows, in_type)
    bought = [
        Commitment(one.id, 0, PURCHASE, one.start_month, one.term_months, one.usd_per_node, one.max_nodes, one.payments)
        for one in asked.purchases
    ]
    of_type = {one.id: types.of[one.id] for one in asked.purchases}
    kept = needed_purchases(
        bought, of_type, sources, rows, in_type, asked.shared_limits, asked.discount_fraction_per_year
    )
    used = sorted({one.node_type for one in sources} | {of_type[one.id] for one in kept})
    index = {name: i for i, name in enumerate(used)}
    allowed = _allowed(asked, able)
    away = {(one.workload, one.row): one.network_s for one in able}
    return HorizonProblem(
        months=asked.months,
        workloads=tuple(workload.name for workload in asked.planning.workloads),
        periods=periods,
        node_types=tuple(NodeType(name, in_type[name], types.machine[name]) for name in used),
        deployments=tuple(
            HorizonDeployment(
                row.workload,
                index[name],
                row.devices,
                row.requests_per_s,
                deployment_key(row.workload, row.row, index[name]),
                allowed.get((row.workload, away[row.workload, row.row])),
            )
            for name in used
            for row in rows[name]
        ),
        hourly=hourly_offers(sources, index),
        commitments=commitments(sources, index, asked.months, beyond_horizon=asked.beyond_horizon)
        + tuple(replace(one, node_type=index[of_type[one.id]]) for one in kept),
        batch=tuple(BatchWork(b.workload, b.requests, b.from_month, b.to_month) for b in asked.batch),
        spot=asked.spot,
        shared_limits=asked.shared_limits,
        discount_fraction_per_year=asked.discount_fraction_per_year,
    )


def _types(asked: FleetInput, spanned: Set[str]) -> _Types:
    """Sources of a machine are one type where all workloads see them alike; where a replica takes several nodes
    (``spanned``), they must be of one source, and each is a type of its own."""
    workloads = asked.planning.workloads
    machine_of = {offer.id: offer.node.id for offer in asked.planning.offers}
    machine_of |= {one.id: one.machine for one in asked.purchases}
    kinds = {
        source: (machine_of[source], standing(workloads, *place), source if machine_of[source] in spanned else "")
        for source, place in asked.places.items()
    }
    names: dict[tuple[str, Standing, str], str] = {}
    ordered = sorted(
        set(kinds.values()), key=lambda kind: (kind[0], [-1 if d is None else d for d in kind[1]], kind[2])
    )
    for machine in dict.fromkeys(kind[0] for kind in ordered):
        mine = [kind for kind in ordered if kind[0] == machine]
        names |= {kind: machine if len(mine) == 1 else f"{machine}#{i}" for i, kind in enumerate(mine)}
    return _Types(
        {name: kind[0] for kind, name in names.items()},
        {name: kind[1] for kind, name in names.items()},
        {source: names[kind] for source, kind in kinds.items()},
    )


def _rows(able: Sequence[FleetCandidate], types: _Types, devices: Mapping[str, int]) -> dict[str, list[ReducedRow]]:
    """Candidates by node type, without those that others of the same workload replace."""
    of_machine: dict[str, list[str]] = {}
    for name, machine in types.machine.items():
        of_machine.setdefault(machine, []).append(name)
    found: dict[tuple[str, int], list[ReducedRow]] = {}
    for one in able:
        whole = devices.get(one.machine, 0)
        if one.nodes == 1 and one.devices > whole:
            continue
        taken = one.devices if one.nodes == 1 else one.nodes * whole
        for name in of_machine.get(one.machine, ()):
            if types.standing[name][one.workload] == one.distance:
                row = ReducedRow(one.workload, name, taken, one.requests_per_s, one.row, one.nodes)
                found.setdefault((name, one.workload), []).append(row)
    rows: dict[str, list[ReducedRow]] = {}
    for name, _ in found:
        rows.setdefault(name, [])
    for (name, _), mine in sorted(found.items()):
        rows[name].extend(undominated_rows(mine))
    return rows


def _allowed(asked: FleetInput, able: Sequence[FleetCandidate]) -> dict[tuple[int, float], frozenset[str]]:
    """Sources that a workload's replicas at a round trip may stand on; nothing where every workload may use all."""
    workloads = asked.planning.workloads
    places = asked.places
    if all(distance(w, *place) == 0 for w in workloads for place in set(places.values())):
        return {}
    return {
        (w, away): frozenset(name for name, place in places.items() if may_stand(workloads[w], away, *place))
        for w, away in {(one.workload, one.network_s) for one in able}
    }


def _sources(asked: FleetInput, types: _Types, *, limited: bool) -> list[Source]:
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
        found.append(Source(offer.id, types.of[offer.id], offer.commitment, offer.usd_per_hour, term, most, spot))
    return found


KEY_ROWS = 10_000_000
KEY_WORKLOADS = 1_000


def deployment_key(workload: int, row: int, node_type: int) -> int:
    return (node_type * KEY_WORKLOADS + workload) * KEY_ROWS + row


def row_of(key: int) -> int:
    """Row of the workload's space that a deployment is."""
    return key % KEY_ROWS
