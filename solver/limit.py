"""What a request may limit, as a thing: which limit it is and whose. What it is called is the service's business."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from solver.errors import InvalidInputError
from solver.workload import Percentile, Targets

DomainKind = Literal["provider", "region"]
"""What may be lost as a whole."""
TargetMetric = Literal["time_to_first_token_s", "time_per_output_token_s", "end_to_end_s", "time_to_first_answer_s"]
TARGET_METRICS: tuple[TargetMetric, ...] = (
    "time_to_first_token_s", "time_per_output_token_s", "end_to_end_s", "time_to_first_answer_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class TargetLimit:
    """One percentile of one latency that a workload states a target for."""

    metric: TargetMetric
    percentile: Percentile


def target_limits(targets: Targets) -> Iterator[tuple[TargetLimit, float]]:
    """Every target that is stated, with its seconds."""
    for metric in TARGET_METRICS:
        for percentile, seconds in getattr(targets, metric).items():
            yield TargetLimit(metric, percentile), seconds


class LimitKind(StrEnum):
    """What is limited. Values in SI units: USD an hour, watts, requests a second, seconds; the rest are counts and shares."""

    BUDGET = "budget"
    POWER = "power"
    SPOT_SHARE = "spot_share"
    SPARE_NODES = "spare_nodes"
    QUOTA = "quota"
    """``of``: its name; empty: all of them."""
    LOSSES = "losses"
    """How many providers or regions (``of``) may be lost."""
    NODES = "nodes"
    """Of an offer (``of``: its id); empty: of all that state how many there are."""
    NODES_UNLESS_STATED = "nodes_unless_stated"
    """Of every offer that does not."""
    PLACES_USED = "places_used"
    """In how many providers, regions or kinds of devices (``of``) a workload may be."""
    MIN_REPLICAS = "min_replicas"
    UTILISATION = "utilisation"
    """Share of what a replica sustains that a plan may use."""
    ADMITTED_OFFERS = "admitted_offers"
    """Which offers a workload may stand on."""
    TARGET = "target"
    ALL_TARGETS = "all_targets"
    """Times a factor."""
    RATE = "rate"
    CHOICE = "choice"
    """Of regions, providers or commitments (``of``), which leaves offers out."""
    BUYING_RULE = "buying_rule"
    """Of the buyer's policy (``of``: its name), which leaves offers out; empty: the whole policy, places used included."""
    CANDIDATES = "candidates"
    """That anything allowed can run the model at all."""


@dataclass(frozen=True, slots=True, order=True)
class Limit:
    """workload: its number, −1 where it is the fleet's. target, traffic_class: of a target only; the class where there are some."""

    kind: LimitKind
    of: str = ""
    workload: int = -1
    target: TargetLimit | None = None
    traffic_class: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """At most ``max_devices`` devices over these offers together (an account's limit in a region)."""

    name: str
    offer_ids: frozenset[str]
    max_devices: int


@dataclass(frozen=True, slots=True)
class FaultTolerance:
    """N − k: after which losses all demand is still served: any so many providers, any so many regions.

    One kind is lost at a time. Regions are told apart by name: providers that share a name share its fate.
    utilisation_limit_fraction: share of a replica's capacity that may be used after such a loss; in normal operation
    the workload's own limit holds. nodes: any so many, whose replicas restart on idle spares (``Limits.spare_nodes``).
    """

    providers: int = 0
    regions: int = 0
    utilisation_limit_fraction: float = 1.0
    nodes: int = 0

    def __post_init__(self) -> None:
        if min(self.providers, self.regions, self.nodes) < 0:
            raise InvalidInputError("what is to be survived cannot be negative")
        if not 0.0 < self.utilisation_limit_fraction <= 1.0:
            raise InvalidInputError("utilisation_limit_fraction must lie in (0, 1]")

    @property
    def losses(self) -> tuple[tuple[DomainKind, int], ...]:
        """(kind of failure domain, how many may be lost) of what is asked for."""
        asked: tuple[tuple[DomainKind, int], ...] = (("provider", self.providers), ("region", self.regions))
        return tuple((kind, count) for kind, count in asked if count)
