"""The fleet problem: what may be rented, what can run on it, what must be served, within which limits.

Latency targets are not here: they are already in each deployment's capacity (0 = cannot serve that class within its
targets), so a change of target is a new table of deployments and a new solve.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

from solver.errors import InvalidInputError
from solver.fleet.deployments import DeploymentTable
from solver.hardware import PlaceKind
from solver.limit import DomainKind, FaultTolerance, Quota
from solver.objective import Objective

Resource = Literal["cost", "power", "carbon"]
"""What a fleet takes: USD per hour, W, kg CO2e per hour."""
MOST_NODES_PLACED = 20_000
"""Of an offer that nobody limits, worth planning with."""
MOST_LOSSES = 500
"""Sets of lost domains of which each needs a routing of its own; only workloads of several traffic classes do."""


@dataclass(frozen=True, slots=True)
class OfferSlot:
    """Nodes of one type somebody rents out at one price.

    max_nodes: None is unlimited. host_power_w: what a node draws beyond its replicas (host, idle devices).
    interruptible: capacity the provider may take back (spot), counted against ``Limits.max_spot_fraction``.
    kg_co2e_per_kwh: of what host and devices draw, cooling included. is_default_most: nobody states ``max_nodes`` of this
    offer, it is the request's for all such.
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
    is_default_most: bool = False

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
class Demand:
    """What one workload must be served.

    utilisation_limit_fraction: share of a replica's capacity that may be used. allowed_offer_ids: None is all.
    is_fixed: served once, whatever multiple of the other workloads the objective throughput finds. min_replicas: so many at
    least take part in each phase, prefill and decode; an aggregated replica in both.
    most_places: of how many different places of a kind its replicas may be, at most.
    most_copies: of its model (``DeploymentTable.copies``) all of its replicas have together at most; None is no limit.
    fills_nodes: do devices that are paid for and left over run more of its replicas? Never where copies are limited.
    """

    requests_per_s: tuple[float, ...]
    utilisation_limit_fraction: float = 1.0
    min_replicas: int = 1
    allowed_offer_ids: frozenset[str] | None = None
    is_fixed: bool = False
    most_places: tuple[tuple[PlaceKind, int], ...] = ()
    most_copies: int | None = None
    fills_nodes: bool = True

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
        if self.most_copies is not None and self.most_copies < 1:
            raise InvalidInputError("most_copies must be at least 1")


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
    fault_tolerance: FaultTolerance = field(default_factory=FaultTolerance)
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
    ``required``: what every plan must contain, for asking what that costs. ``is_cheapest_asked``: of all that are as good by another
    objective than cost, is the cheapest asked for? Off where nothing but the objective's value is read.
    """

    offers: tuple[OfferSlot, ...]
    deployments: DeploymentTable
    demands: tuple[Demand, ...]
    limits: Limits = field(default_factory=Limits)
    objective: Objective = "cost"
    most_multiple: float | None = None
    required: tuple[MustUse, ...] = ()
    is_cheapest_asked: bool = True

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
            for kind, count in self.limits.fault_tolerance.losses:
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
