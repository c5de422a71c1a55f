"""GET /v1/recommendations/{id}/diff: from one stored plan to another, in words and in numbers."""

from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.quantities import Answer, Usd
from service.wire.roles import StatedDraftIn


class DiffSideOut(Answer):
    """One of the two plans; nothing is rented where it is infeasible."""

    recommendation: str
    outcome: str
    usd_per_hour: Usd | None
    nodes: int


class NodesChangeOut(Answer):
    """Nodes of one offer before and after."""

    offer: str
    node: str
    device: str
    before: int
    after: int


class ReplicasChangeOut(Answer):
    """Replicas of one workload, run in one way on one offer, before and after. layout: of one replica."""

    workload: str
    offer: str
    device: str
    engine: str
    layout: LayoutIn
    precision: PrecisionIn
    speculative: StatedDraftIn | None = None
    """How they draft; null: not at all."""
    host_cache_gib: float
    disk_cache_gib: float
    max_batched_tokens: int | None = None
    max_sequences: int | None = None
    max_captured_tokens: int | None = None
    api_servers: int | None = None
    before: int
    after: int


class RoutingChangeOut(Answer):
    """Share of a traffic class that goes to replicas of one kind on one offer, before and after. layout: of one replica."""

    workload: str
    traffic_class: str
    offer: str
    device: str
    layout: LayoutIn
    precision: PrecisionIn
    max_batched_tokens: int | None = None
    before_fraction: float
    after_fraction: float


class PlanDiffOut(Answer):
    """What must change to go from one plan to the other; what stays as it is, is left out."""

    before: DiffSideOut
    after: DiffSideOut
    usd_per_hour_change: Usd | None
    nodes: list[NodesChangeOut]
    replicas: list[ReplicasChangeOut]
    routing: list[RoutingChangeOut]
    """Of traffic classes, where their shares change by half a per cent or more."""
    same: bool
    words: list[str]
