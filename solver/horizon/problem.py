"""The horizon problem: periods with demand, machines by the hour, and machines committed to for months.

As in ``solver.fleet.problem`` latency targets are inside the capacities.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from solver.errors import InvalidInputError
from solver.fleet.model.packing import is_chain
from solver.horizon.operation import Operation
from solver.tco.capital import discount_factors
from solver.units import HOURS_PER_MONTH

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROUNDING_FRACTION = 1e-9
"""Of a demand: what sums of capacities are off by."""
MOST_NODES = 100_000
"""Of one type in one period; a limit for the solver's integers, beyond any fleet."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """Nodes that are one another's equals. machine: the catalog's name; types of one machine differ in which workloads
    may use them, or in how far they are from users."""

    id: str
    devices: int
    machine: str = ""


@dataclass(frozen=True, slots=True)
class HorizonDeployment:
    """One way of running a workload inside a node, or on whole nodes of one source.

    devices_per_replica: beyond a node's own, a multiple of them. requests_per_s: what one replica serves within the
    targets and the utilisation limit. key: the caller's own, unique. sources: offers and commitments on whose nodes it may
    run; None where it may on all. Of its node type, all are.
    """

    workload: int
    node_type: int
    devices_per_replica: int
    requests_per_s: float
    key: int
    sources: frozenset[str] | None = None

    def replicas_for(self, requests_per_s: float) -> int:
        """The fewest that serve so much, but for rounding: ⌈λ (1 − ε) / μ⌉, so that any demand at all has one.

        >>> one = HorizonDeployment(0, 0, 1, 3.0, 0)
        >>> one.replicas_for(0.0), one.replicas_for(1e-12), one.replicas_for(6.0 * (1 + 1e-12)), one.replicas_for(6.1)
        (0, 1, 2, 3)
        """
        return math.ceil(requests_per_s * (1.0 - ROUNDING_FRACTION) / self.requests_per_s)


@dataclass(frozen=True, slots=True)
class HourlyOffer:
    """Nodes taken and given back by the hour. interruptible: the provider may take them back (spot)."""

    id: str
    node_type: int
    usd_per_hour: float
    max_nodes: int | None = None
    interruptible: bool = False


@dataclass(frozen=True, slots=True)
class Commitment:
    """Nodes of one offer, or bought ones, paid for ``term_months`` from ``start_month`` on, used or not.

    usd_per_node: all payments of the whole term, the part beyond the horizon included. payments: (months after the start
    of the horizon, USD), received money negative; None is equal ones at the end of each month of the term. max_nodes holds
    for all terms of the offer that run at the same time.
    """

    id: str
    node_type: int
    kind: str
    start_month: int
    term_months: int
    usd_per_node: float
    max_nodes: int | None = None
    payments: tuple[tuple[int, float], ...] | None = None

    @property
    def end_month(self) -> int:
        """First month in which it runs no more."""
        return self.start_month + self.term_months

    def present_usd(self, discount_fraction_per_year: float) -> float:
        """Σ_k p_k (1 + r)^(−k/12), k months after the start of the horizon.

        >>> round(Commitment("buy", 0, "purchase", 0, 24, 80.0, payments=((0, 100.0), (24, -20.0))).present_usd(0.1), 4)
        83.4711
        """
        if discount_fraction_per_year == 0.0:
            return self.usd_per_node
        payments = self.payments
        if payments is None:
            monthly = self.usd_per_node / self.term_months
            payments = tuple((month + 1, monthly) for month in range(self.start_month, self.end_month))
        factors = discount_factors(discount_fraction_per_year, max(month for month, _ in payments))
        return math.fsum(usd * float(factors[month]) for month, usd in payments)


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """Σ per_node · nodes ≤ most, in every month, over the commitments of these ids that run in it: an owner's room or
    supply of power."""

    name: str
    per_node: tuple[tuple[str, float], ...]
    most: float


@dataclass(frozen=True, slots=True)
class Period:
    """``hours`` of month ``month`` in which every workload asks for ``requests_per_s`` (batch work: 0)."""

    month: int
    hours: float
    requests_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BatchWork:
    """``requests`` of a workload that may be served at any hour of the months [from_month, to_month)."""

    workload: int
    requests: float
    from_month: int
    to_month: int


@dataclass(frozen=True, slots=True)
class SpotRule:
    """What interruptible nodes need.

    max_fraction: most of the devices in use that may be interruptible, in any period. unavailable_fraction: share of
    time that a node is gone, at random. availability_fraction: share of time in which the nodes left, without the
    spares, must be as many as planned. reclaims_at_once: fewest nodes that may go together without harm.
    """

    max_fraction: float = 0.0
    unavailable_fraction: float = 0.0
    availability_fraction: float = 0.999
    reclaims_at_once: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.max_fraction <= 1.0:
            raise InvalidInputError("the share of spot must lie in [0, 1]")
        if not 0.0 <= self.unavailable_fraction < 1.0:
            raise InvalidInputError("a spot node must be available for some of the time")
        if not 0.0 < self.availability_fraction < 1.0:
            raise InvalidInputError("availability_fraction must lie between 0 and 1")
        if self.reclaims_at_once < 0:
            raise InvalidInputError("reclaims_at_once is negative")


@dataclass(frozen=True, eq=False)
class HorizonProblem:
    """Choose commitments once, and nodes and replicas in every period, at least cost over ``months`` months."""

    months: int
    workloads: tuple[str, ...]
    periods: tuple[Period, ...]
    node_types: tuple[NodeType, ...]
    deployments: tuple[HorizonDeployment, ...]
    hourly: tuple[HourlyOffer, ...]
    commitments: tuple[Commitment, ...] = ()
    batch: tuple[BatchWork, ...] = ()
    spot: SpotRule = field(default_factory=SpotRule)
    shared_limits: tuple[SharedLimit, ...] = ()
    discount_fraction_per_year: float = 0.0
    """Bills of a month are due at its end; what is minimised is present value at the start of the horizon."""
    operation: Operation = field(default_factory=Operation)
    sequences: tuple[tuple[int, ...], ...] = ()
    """By month, the period of each of its hours in their order, which then repeats; needed by rules that tie hours."""

    def __post_init__(self) -> None:
        if self.months < 1 or not self.periods or not self.workloads:
            raise InvalidInputError("a horizon needs at least one month, one period and one workload")
        hours = [0.0] * self.months
        for period in self.periods:
            if not 0 <= period.month < self.months:
                raise InvalidInputError(f"a period lies in month {period.month} of {self.months}")
            if len(period.requests_per_s) != len(self.workloads):
                raise InvalidInputError("a period needs a rate for each workload")
            if not (math.isfinite(period.hours) and period.hours > 0):
                raise InvalidInputError("a period needs hours above zero")
            if any(not math.isfinite(rate) or rate < 0 for rate in period.requests_per_s):
                raise InvalidInputError("rates must be finite and not negative")
            hours[period.month] += period.hours
        if any(not math.isclose(total, HOURS_PER_MONTH, rel_tol=1e-6) for total in hours):
            raise InvalidInputError(f"the periods of each month must last {HOURS_PER_MONTH:g} hours together")
        kinds = range(len(self.node_types))
        for deployment in self.deployments:
            if deployment.node_type not in kinds or deployment.workload not in range(len(self.workloads)):
                raise InvalidInputError("a deployment names an unknown node type or workload")
            if deployment.devices_per_replica < 1:
                raise InvalidInputError("a replica takes at least one device")
            if self.spans(deployment) > 1:
                if deployment.devices_per_replica % self.node_types[deployment.node_type].devices:
                    raise InvalidInputError("a replica over several nodes takes whole ones")
                if len(self._supplied.get(deployment.node_type, set())) > 1:
                    raise InvalidInputError("a replica over several nodes needs a type with nodes of one source")
            if not (math.isfinite(deployment.requests_per_s) and deployment.requests_per_s > 0):
                raise InvalidInputError("a deployment must serve something")
        for t in kinds:
            inside = (d.devices_per_replica for d in self.deployments if d.node_type == t and self.spans(d) == 1)
            if not is_chain(inside):
                raise InvalidInputError("replica sizes on a node must divide one another")
        self._check_offers()
        self._check_sequences()
        for work in self.batch:
            if not (0 <= work.from_month < work.to_month <= self.months):
                raise InvalidInputError("batch work needs at least one month inside the horizon")
            if not (math.isfinite(work.requests) and work.requests > 0):
                raise InvalidInputError("batch work needs requests")

    def _check_offers(self) -> None:
        if len({d.key for d in self.deployments}) != len(self.deployments):
            raise InvalidInputError("deployment keys are not unique")
        if len({offer.id for offer in self.hourly}) != len(self.hourly):
            raise InvalidInputError("offer ids are not unique")
        for offer in self.hourly:
            if not (math.isfinite(offer.usd_per_hour) and offer.usd_per_hour >= 0):
                raise InvalidInputError(f"offer {offer.id}: the price must be finite and not negative")
        for one in self.commitments:
            if one.term_months < 1 or not 0 <= one.start_month < self.months:
                raise InvalidInputError(f"commitment {one.id} does not start inside the horizon")
            if not (math.isfinite(one.usd_per_node) and one.usd_per_node >= 0):
                raise InvalidInputError(f"commitment {one.id}: the price must be finite and not negative")
            if one.payments is not None and not math.isclose(
                math.fsum(usd for _, usd in one.payments), one.usd_per_node, rel_tol=1e-9, abs_tol=1e-6
            ):
                raise InvalidInputError(f"commitment {one.id}: its payments are not its price")
        if not -1.0 < self.discount_fraction_per_year < math.inf:
            raise InvalidInputError("a discount rate must be above -100 %")
        if (self.present_usd_per_node < 0.0).any():
            raise InvalidInputError("a commitment that earns money would be bought without end")
        for limit in self.shared_limits:
            if not (math.isfinite(limit.most) and limit.most >= 0) or any(
                not (math.isfinite(w) and w >= 0) for _, w in limit.per_node
            ):
                raise InvalidInputError(f"limit {limit.name} must be finite and not negative")
        self._check_sources()

    def _check_sequences(self) -> None:
        if not self.sequences and not self.operation.ties_hours:
            return
        if len(self.sequences) != self.months:
            raise InvalidInputError("every month needs the order of its hours")
        for month, sequence in enumerate(self.sequences):
            if set(sequence) != {t for t, period in enumerate(self.periods) if period.month == month}:
                raise InvalidInputError(f"the hours of month {month} are not those of its periods")
            if len(sequence) < self.operation.min_up_hours:
                raise InvalidInputError("a node cannot stay longer than the hours that repeat")

    def _check_sources(self) -> None:
        """Every source of a node type is one that its deployments may use."""
        for deployment in self.deployments:
            allowed = deployment.sources
            if allowed is not None and not self._supplied.get(deployment.node_type, set()) <= allowed:
                raise InvalidInputError("a node type holds nodes that one of its deployments may not use")

    @cached_property
    def _supplied(self) -> dict[int, set[str]]:
        """Offers and commitments by node type."""
        found: dict[int, set[str]] = {}
        for offer in self.hourly:
            found.setdefault(offer.node_type, set()).add(offer.id)
        for one in self.commitments:
            found.setdefault(one.node_type, set()).add(one.id)
        return found

    def spans(self, deployment: HorizonDeployment) -> int:
        """Nodes that a replica takes, or is inside of: whole ones where they are several."""
        return max(1, deployment.devices_per_replica // self.node_types[deployment.node_type].devices)

    def most_changed(self, deployment: HorizonDeployment) -> int | None:
        """Replicas that may be started, or stopped, from one hour to the next; None: any number."""
        return self.operation.most_changed(self.peaks[deployment.workload], deployment.requests_per_s)

    @cached_property
    def peaks(self) -> tuple[float, ...]:
        """Largest requests per second of each workload."""
        return tuple(self.demand.max(axis=0).tolist())

    @cached_property
    def present_usd_per_node(self) -> FloatArray:
        """Present value of all payments of a node, by commitment."""
        return np.array([one.present_usd(self.discount_fraction_per_year) for one in self.commitments])

    @cached_property
    def weights(self) -> FloatArray:
        """Hours by period, times the present value of a dollar due at the end of its month."""
        factors = discount_factors(self.discount_fraction_per_year, self.months)
        return np.array([period.hours * float(factors[period.month + 1]) for period in self.periods])

    @cached_property
    def demand(self) -> FloatArray:
        """Requests per second: periods × workloads."""
        return np.array([period.requests_per_s for period in self.periods], dtype=np.float64)

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """Does a commitment run in a month: commitments × months."""
        months = np.arange(self.months)
        starts = np.array([one.start_month for one in self.commitments], dtype=np.int64)
        ends = np.array([one.end_month for one in self.commitments], dtype=np.int64)
        return (starts[:, None] <= months) & (months < ends[:, None])

    def committed(self, nodes: Sequence[int] | FloatArray | IntArray) -> FloatArray:
        """Committed nodes by month and node type, from nodes by commitment."""
        total = np.zeros((self.months, len(self.node_types)))
        for c, one in enumerate(self.commitments):
            total[self.live[c], one.node_type] += nodes[c]
        return total
