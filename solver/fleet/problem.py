"""The fleet problem: what may be rented, what can run on it, what must be served, within which limits.

Latency targets are not here: they are already in each deployment's capacity (0 = cannot serve that class within its
targets), so a change of target is a new table of deployments and a new solve.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from solver.errors import InvalidInputError
from solver.hardware import PlaceKind

Objective = Literal["cost", "throughput", "power", "carbon"]
Resource = Literal["cost", "power", "carbon"]
"""What a fleet takes: USD per hour, W, kg CO2e per hour."""
DomainKind = Literal["provider", "region"]
Role = Literal["aggregated", "prefill", "decode"]
"""aggregated: prefills and decodes. prefill, decode: one side of an exchange, whose caches travel to the other."""
ROLES: tuple[Role, ...] = ("aggregated", "prefill", "decode")
AGGREGATED, PREFILL, DECODE = range(3)
ANY_SITE = -1
WHOLE = -1
"""``DeploymentTable.split`` of a replica on whole devices."""
MOST_LOSSES = 500
"""Sets of lost domains of which each needs a routing of its own; only workloads of several traffic classes do."""
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OfferSlot:
    """Nodes of one type somebody rents out at one price.

    max_nodes: None is unlimited. host_power_w: what a node draws beyond its replicas (host, idle devices).
    interruptible: capacity the provider may take back (spot), counted against ``Limits.max_spot_fraction``.
    kg_co2e_per_kwh: of what host and devices draw, cooling included.
    """

    id: str
    node_type_id: str
    device_id: str
    devices: int
    provider: str
    region: str
    commitment: str
    usd_per_hour: float
    max_nodes: int | None = None
    host_power_w: float = 0.0
    interruptible: bool = False
    kg_co2e_per_kwh: float = 0.0

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise InvalidInputError(f"offer {self.id}: a node needs at least one device")
        _require_not_negative(self.usd_per_hour, f"offer {self.id}: usd_per_hour")
        _require_not_negative(self.host_power_w, f"offer {self.id}: host_power_w")
        _require_not_negative(self.kg_co2e_per_kwh, f"offer {self.id}: kg_co2e_per_kwh")
        if self.max_nodes is not None and self.max_nodes < 0:
            raise InvalidInputError(f"offer {self.id}: max_nodes is negative")

    def domain(self, kind: DomainKind) -> str:
        """What this offer fails together with."""
        return self.provider if kind == "provider" else self.region

    def place(self, kind: PlaceKind) -> str:
        """What this offer counts as where a workload may use few of a kind."""
        match kind:
            case "provider":
                return self.provider
            case "region":
                return f"{self.provider} {self.region}"
            case "device":
                return self.device_id


@dataclass(frozen=True, slots=True)
class Split:
    """A device divided into ``instances`` equal parts that work apart, all of one profile (MIG)."""

    name: str
    instances: int

    def __post_init__(self) -> None:
        if self.instances < 2:
            raise InvalidInputError(f"split {self.name}: a split device has at least two instances")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One way of running one workload on one node type.

    devices_per_replica: devices of one node that a replica takes; ignored when ``nodes_per_replica`` > 1, because a
    replica over several nodes takes them whole. capacity_requests_per_s: by traffic class, alone on the replica.
    regions: where it serves that much, because users are so far away; None is anywhere. split: how its one device is
    divided, of which a replica takes one instance; None is not at all. exchange: what the other side of an exchange must
    share with a prefill or decode replica, beside provider and region.
    """

    workload: int
    node_type_id: str
    devices_per_replica: int
    nodes_per_replica: int
    capacity_requests_per_s: tuple[float, ...]
    power_w_per_replica: float
    key: int
    regions: frozenset[str] | None = None
    split: Split | None = None
    role: Role = "aggregated"
    exchange: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DeploymentTable:
    """Deployments as columns; tens of thousands of them are read by numpy, never one by one.

    node_type: index into ``node_type_ids``. capacity_requests_per_s: rows × classes, zero where a workload has fewer
    classes. key: unique and the caller's own; plans name deployments by it. site: index into ``sites``, the regions
    where a deployment may run; ANY_SITE is anywhere, and None says so of all. split: index into ``splits``, where a
    replica takes one instance of a device divided so; WHOLE is not divided, and None says so of all. role: index into
    ``ROLES``; None: all are aggregated. exchange: of prefill and decode rows, a number of what both sides must share.
    """

    node_type_ids: tuple[str, ...]
    workload: IntArray
    node_type: IntArray
    devices_per_replica: IntArray
    nodes_per_replica: IntArray
    capacity_requests_per_s: FloatArray
    power_w_per_replica: FloatArray
    key: IntArray
    site: IntArray | None = None
    sites: tuple[frozenset[str], ...] = ()
    split: IntArray | None = None
    splits: tuple[Split, ...] = ()
    role: IntArray | None = None
    exchange: IntArray | None = None

    def __post_init__(self) -> None:
        rows = len(self.key)
        columns = (self.workload, self.node_type, self.devices_per_replica, self.nodes_per_replica)
        if any(len(column) != rows for column in (*columns, self.capacity_requests_per_s, self.power_w_per_replica)):
            raise InvalidInputError("columns of a deployment table differ in length")
        if self.capacity_requests_per_s.ndim != 2:
            raise InvalidInputError("capacity needs one column for each traffic class")
        if len(np.unique(self.key)) != rows:
            raise InvalidInputError("deployment keys are not unique")
        if rows == 0:
            return
        if self.site is not None and (
            len(self.site) != rows or self.site.min() < ANY_SITE or self.site.max() >= len(self.sites)
        ):
            raise InvalidInputError("a deployment names an unknown site")
        self._check_splits(rows)
        self._check_roles(rows)
        if self.node_type.min() < 0 or self.node_type.max() >= len(self.node_type_ids):
            raise InvalidInputError("a deployment names an unknown node type")
        if self.devices_per_replica.min() < 1 or self.nodes_per_replica.min() < 1 or self.workload.min() < 0:
            raise InvalidInputError("a replica needs at least one device, one node and a workload")
        for column in (self.capacity_requests_per_s, self.power_w_per_replica):
            if not np.isfinite(column).all() or (column < 0).any():
                raise InvalidInputError("capacities and power must be finite and not negative")

    def _check_splits(self, rows: int) -> None:
        if self.split is None:
            return
        if len(self.split) != rows or self.split.min() < WHOLE or self.split.max() >= len(self.splits):
            raise InvalidInputError("a deployment names an unknown split")
        divided = self.split >= 0
        if (self.devices_per_replica[divided] > 1).any() or (self.nodes_per_replica[divided] > 1).any():
            raise InvalidInputError("a replica on an instance of a split device takes that one instance only")

    def _check_roles(self, rows: int) -> None:
        if (self.role is None) != (self.exchange is None):
            raise InvalidInputError("roles need exchanges, and exchanges roles")
        if self.role is None or self.exchange is None:
            return
        if len(self.role) != rows or self.role.min() < AGGREGATED or self.role.max() > DECODE:
            raise InvalidInputError("a deployment has an unknown role")
        if len(self.exchange) != rows or (self.exchange[self.role != AGGREGATED] < 0).any():
            raise InvalidInputError("prefill and decode need an exchange")

    @property
    def roles(self) -> IntArray:
        """The role of each deployment, an index into ``ROLES``."""
        return np.zeros(len(self), dtype=np.int64) if self.role is None else self.role

    @property
    def instances(self) -> IntArray:
        """Into how many instances, of which a replica takes one, its device is divided: 1 is not at all."""
        counts = np.array([*(split.instances for split in self.splits), 1], dtype=np.int64)
        return np.ones(len(self), dtype=np.int64) if self.split is None else counts[self.split]

    @classmethod
    def from_rows(cls, rows: Sequence[Deployment]) -> "DeploymentTable":
        """Columns from one object each; for tests and small problems."""
        node_types = tuple(dict.fromkeys(row.node_type_id for row in rows))
        index = {node_type: i for i, node_type in enumerate(node_types)}
        classes = max((len(row.capacity_requests_per_s) for row in rows), default=1)
        capacity = np.zeros((len(rows), classes))
        for i, row in enumerate(rows):
            capacity[i, : len(row.capacity_requests_per_s)] = row.capacity_requests_per_s
        return cls(
            node_types,
            np.array([row.workload for row in rows], dtype=np.int64),
            np.array([index[row.node_type_id] for row in rows], dtype=np.int64),
            np.array([row.devices_per_replica for row in rows], dtype=np.int64),
            np.array([row.nodes_per_replica for row in rows], dtype=np.int64),
            capacity,
            np.array([row.power_w_per_replica for row in rows], dtype=np.float64),
            np.array([row.key for row in rows], dtype=np.int64),
            *_sites(rows),
            *_splits(rows),
            *_roles(rows),
        )

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: IntArray | BoolArray) -> "DeploymentTable":
        """The same table with only these rows; keys stay."""
        return replace(
            self,
            workload=self.workload[rows],
            node_type=self.node_type[rows],
            devices_per_replica=self.devices_per_replica[rows],
            nodes_per_replica=self.nodes_per_replica[rows],
            capacity_requests_per_s=self.capacity_requests_per_s[rows],
            power_w_per_replica=self.power_w_per_replica[rows],
            key=self.key[rows],
            site=None if self.site is None else self.site[rows],
            split=None if self.split is None else self.split[rows],
            role=None if self.role is None else self.role[rows],
            exchange=None if self.exchange is None else self.exchange[rows],
        )

    def sites_of(self, region: str) -> frozenset[int]:
        """The sites a region belongs to."""
        return frozenset(number for number, regions in enumerate(self.sites) if region in regions)


def _sites(rows: Sequence[Deployment]) -> tuple[IntArray | None, tuple[frozenset[str], ...]]:
    named = tuple(dict.fromkeys(row.regions for row in rows if row.regions is not None))
    if not named:
        return None, ()
    numbers = [ANY_SITE if row.regions is None else named.index(row.regions) for row in rows]
    return np.array(numbers, dtype=np.int64), named


def _splits(rows: Sequence[Deployment]) -> tuple[IntArray | None, tuple[Split, ...]]:
    named = tuple(dict.fromkeys(row.split for row in rows if row.split is not None))
    if not named:
        return None, ()
    return np.array([WHOLE if row.split is None else named.index(row.split) for row in rows], dtype=np.int64), named


def _roles(rows: Sequence[Deployment]) -> tuple[IntArray | None, IntArray | None]:
    if all(row.role == "aggregated" for row in rows):
        return None, None
    named = sorted({row.exchange for row in rows})
    exchanges = [named.index(row.exchange) for row in rows]
    return np.array([ROLES.index(row.role) for row in rows], dtype=np.int64), np.array(exchanges, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Demand:
    """What one workload must be served.

    utilisation_limit_fraction: share of a replica's capacity that may be used. allowed_offer_ids: None is all.
    is_fixed: served once, whatever multiple of the other workloads the objective throughput finds. min_replicas: so many at
    least take part in each phase, prefill and decode; an aggregated replica in both.
    most_places: of how many different places of a kind its replicas may be, at most.
    """

    requests_per_s: tuple[float, ...]
    utilisation_limit_fraction: float = 1.0
    min_replicas: int = 1
    allowed_offer_ids: frozenset[str] | None = None
    is_fixed: bool = False
    most_places: tuple[tuple[PlaceKind, int], ...] = ()

    def __post_init__(self) -> None:
        if any(most < 1 for _, most in self.most_places) or len(dict(self.most_places)) < len(self.most_places):
            raise InvalidInputError("a workload needs at least one place of every kind, and one number for each kind")
        for rate in self.requests_per_s:
            _require_not_negative(rate, "requests_per_s")
        if not self.requests_per_s:
            raise InvalidInputError("a workload needs at least one traffic class")
        if not 0.0 < self.utilisation_limit_fraction <= 1.0:
            raise InvalidInputError("utilisation_limit_fraction must lie in (0, 1]")
        if self.min_replicas < 0:
            raise InvalidInputError("min_replicas is negative")


@dataclass(frozen=True, slots=True)
class Quota:
    """At most ``max_devices`` devices over these offers together (an account's limit in a region)."""

    name: str
    offer_ids: frozenset[str]
    max_devices: int


@dataclass(frozen=True, slots=True)
class Survive:
    """Losses after which the replicas that remain still serve all demand: any so many providers, any so many regions.

    One kind is lost at a time. Regions are told apart by name: providers that share a name share its fate.
    utilisation_limit_fraction: share of a replica's capacity that may be used after such a loss; in normal operation
    the workload's own limit holds.
    """

    providers: int = 0
    regions: int = 0
    utilisation_limit_fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.providers < 0 or self.regions < 0:
            raise InvalidInputError("what is to be survived cannot be negative")
        if not 0.0 < self.utilisation_limit_fraction <= 1.0:
            raise InvalidInputError("utilisation_limit_fraction must lie in (0, 1]")

    @property
    def losses(self) -> tuple[tuple[DomainKind, int], ...]:
        """(kind of failure domain, how many may be lost) of what is asked for."""
        asked: tuple[tuple[DomainKind, int], ...] = (("provider", self.providers), ("region", self.regions))
        return tuple((kind, count) for kind, count in asked if count)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the whole fleet; None is no limit.

    spare_nodes: idle nodes kept in every group in use, so that any k nodes may fail and their replicas restart on the
    spares. max_spot_fraction: share of all devices that may be interruptible.
    """

    budget_usd_per_hour: float | None = None
    power_w: float | None = None
    spare_nodes: int = 0
    max_spot_fraction: float | None = None
    quotas: tuple[Quota, ...] = ()
    survive: Survive = field(default_factory=Survive)
    carbon_kg_per_hour: float | None = None

    def __post_init__(self) -> None:
        for name in ("budget_usd_per_hour", "power_w", "carbon_kg_per_hour", "max_spot_fraction"):
            value = getattr(self, name)
            if value is not None:
                _require_not_negative(value, name)
        if self.spare_nodes < 0 or any(quota.max_devices < 0 for quota in self.quotas):
            raise InvalidInputError("spare nodes and quotas cannot be negative")
        if self.max_spot_fraction is not None and self.max_spot_fraction > 1.0:
            raise InvalidInputError("max_spot_fraction is above 1")


@dataclass(frozen=True, slots=True)
class MustUse:
    """At least one replica of these deployments (keys; None is any) on these offers (None is any)."""

    name: str
    keys: frozenset[int] | None = None
    offer_ids: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FleetProblem:
    """Choose nodes, replicas and routing.

    ``objective``: cost (USD per hour), power (W), carbon (kg CO2e per hour), or throughput (the largest multiple θ of
    all demand together that is not fixed, at most ``most_multiple``).
    ``required``: what every plan must contain, for asking what that costs.
    """

    offers: tuple[OfferSlot, ...]
    deployments: DeploymentTable
    demands: tuple[Demand, ...]
    limits: Limits = field(default_factory=Limits)
    objective: Objective = "cost"
    most_multiple: float | None = None
    required: tuple[MustUse, ...] = ()

    def __post_init__(self) -> None:
        if len({offer.id for offer in self.offers}) != len(self.offers):
            raise InvalidInputError("offer ids are not unique")
        if not self.demands:
            raise InvalidInputError("a fleet needs at least one workload")
        if self.objective not in ("cost", "throughput", "power", "carbon"):
            raise InvalidInputError(f"unknown objective {self.objective!r}")
        shape: dict[str, tuple[int, float]] = {}
        for offer in self.offers:
            if shape.setdefault(offer.node_type_id, (offer.devices, offer.host_power_w)) != (
                offer.devices,
                offer.host_power_w,
            ):
                raise InvalidInputError(f"offers of node type {offer.node_type_id} disagree on devices or host power")
        table = self.deployments
        if len(table):
            if table.workload.max() >= len(self.demands):
                raise InvalidInputError("a deployment names an unknown workload")
            classes = max(len(demand.requests_per_s) for demand in self.demands)
            if table.capacity_requests_per_s.shape[1] < classes:
                raise InvalidInputError("the deployment table has fewer classes than the demand")
        throughput_is_bounded = (
            self.most_multiple is not None
            or self.limits.budget_usd_per_hour is not None
            or self.limits.power_w is not None
            or self.limits.carbon_kg_per_hour is not None
            or all(offer.max_nodes is not None for offer in self.offers)
        )
        if self.objective == "throughput" and not throughput_is_bounded:
            raise InvalidInputError("throughput needs a budget, a limit of power or carbon, or one on every offer")
        if self.objective == "throughput" and not any(
            sum(demand.requests_per_s) > 0 for demand in self.demands if not demand.is_fixed
        ):
            raise InvalidInputError("throughput needs a demand to multiply")
        if self.objective != "throughput" and any(demand.is_fixed for demand in self.demands):
            raise InvalidInputError("fixed demands are for the objective throughput")
        if any(sum(rate > 0 for rate in demand.requests_per_s) > 1 for demand in self.demands):
            for kind, count in self.limits.survive.losses:
                losses = math.comb(len({offer.domain(kind) for offer in self.offers}), count)
                if losses > MOST_LOSSES:
                    raise InvalidInputError(
                        f"{losses} ways to lose {count} {kind}s are more than {MOST_LOSSES};"
                        " allow fewer of them, or state workloads of one traffic class"
                    )

    def matters(self, resource: Resource) -> bool:
        """Whether the plan depends on how much of ``resource`` it takes."""
        return self.objective == resource or self.limit_of(resource) is not None

    def limit_of(self, resource: Resource) -> float | None:
        """The most of ``resource`` that the whole fleet may take."""
        match resource:
            case "cost":
                return self.limits.budget_usd_per_hour
            case "power":
                return self.limits.power_w
            case "carbon":
                return self.limits.carbon_kg_per_hour

    def multiples(self, multiple: float) -> tuple[float, ...]:
        """What each workload is served of its demand when θ is ``multiple``."""
        return tuple(1.0 if demand.is_fixed else multiple for demand in self.demands)


def _require_not_negative(value: float, name: str) -> None:
    if not math.isfinite(value) or value < 0:
        raise InvalidInputError(f"{name} must be finite and not negative, not {value!r}")
