"""What POST /v1/fleets answers."""

import datetime as dt
from typing import Any, Literal

from pydantic import Field

from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.operating import OperationOut
from service.wire.owning import DiscountOut, OwnUsedOut
from service.wire.plan_explained import RejectedOut
from service.wire.quantities import Answer, Usd
from service.wire.recommendations import InputsOut


class DemandFitOut(Answer):
    """How representative periods stand for the demand: each has the largest rates of the hours it stands for, so that
    a plan serves every hour. ``overstated_fraction``: what that adds to the requests; ``worst_hour_fraction``: the most
    it adds to a workload in an hour, as a share of its peak."""

    points: int
    hours: int
    periods: int
    overstated_fraction: float
    worst_hour_fraction: float
    peak_requests_per_s: dict[str, float]


class FleetSolveOut(Answer):
    """Amounts are in present value."""

    status: Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible"]
    usd: Usd | None
    bound_usd: Usd | None
    """No plan of the same demand, offers and capacities costs less."""
    gap_fraction: float | None
    distinct_periods: int
    periods_solved: int
    branches: int
    simulations: int
    seconds: float


class CommitmentOut(Answer):
    """Nodes reserved or bought at the start of month ``start_month`` (0 is the first).

    usd: all payments of the term, present_usd: in present value at the start of the horizon. beyond_horizon_usd: the part
    due after the horizon. used_fraction: of the node-hours inside the horizon. lines: of bought nodes, what usd is made
    of; sales are negative.
    """

    offer: str
    provider: str
    region: str
    commitment: str
    node: str
    device: str
    start_month: int
    term_months: int
    nodes: int
    usd: Usd
    present_usd: Usd | None = None
    usd_per_node_hour: Usd
    beyond_horizon_usd: Usd
    used_fraction: float
    lines: dict[str, Usd] | None = None


def _inside_one() -> int:
    """Of plans stored before replicas could span nodes."""
    return 1


class FleetDeploymentOut(Answer):
    """One way of running a workload. ``requests_per_s``: of a replica, at the utilisation limit. ``nodes_per_replica``: whole
    nodes of one offer that a replica takes, where it does not fit inside one."""

    id: int
    workload: str
    node: str
    device: str
    engine: str
    layout: LayoutIn
    precision: PrecisionIn
    requests_per_s: float
    nodes_per_replica: int = Field(default_factory=_inside_one)
    network_ms: float | None = None
    """Round trip to the users that it is counted with; null where the workload states none."""
    max_batched_tokens: int | None = None
    """Most tokens of a step of its engine, a count; null in plans stored before it was told."""


class PeriodNodesOut(Answer):
    """Nodes in use. ``spare``: idle ones among them that ride out a reclaim. Plans stored before regions were told have
    neither provider nor region here."""

    offer: str
    provider: str = Field(default_factory=str)
    region: str = Field(default_factory=str)
    commitment: str
    nodes: int
    spare: int


class PeriodReplicasOut(Answer):
    workload: str
    deployment: int
    replicas: int


class PeriodOut(Answer):
    """Hours of one month with one demand, and what runs in them. ``usd_per_hour``: of nodes taken by the hour."""

    month: int
    hours: float
    requests_per_s: dict[str, float]
    nodes: list[PeriodNodesOut]
    replicas: list[PeriodReplicasOut]
    usd_per_hour: Usd


class FleetTotalsOut(Answer):
    """Over the horizon, undiscounted, and as ``present_…`` in present value, which is what is minimised. ``saved_usd``:
    against ``on_demand_usd``, the same demand on demand alone. ``purchase_usd``: of bought nodes, all they cost to own and
    run, less what they are sold for."""

    usd: Usd
    usd_per_month: Usd
    purchase_usd: Usd
    reserved_usd: Usd
    on_demand_part_usd: Usd
    spot_usd: Usd
    on_demand_usd: Usd | None
    saved_usd: Usd | None
    saved_fraction: float | None
    present_usd: Usd | None = None
    on_demand_present_usd: Usd | None = None
    saved_present_usd: Usd | None = None
    saved_present_fraction: float | None = None


class FleetAlternativeOut(Answer):
    """Amounts are in present value."""

    why: str
    usd: Usd | None
    """Null where no plan exists that way."""
    bound_usd: Usd | None
    gap_fraction: float | None
    extra_usd: Usd | None


class CommitmentLeftOutOut(Answer):
    commitment: str
    why: str


class SpotUsedOut(Answer):
    """The figures the spare rule used, and where they come from."""

    max_fraction: float
    interruptions_per_node_month: float
    lost_hours_per_interruption: float
    unavailable_fraction: float
    availability_fraction: float
    reclaims_at_once: int
    sources: list[str]


class FleetResultOut(Answer):
    """What the solver found: stored as it is."""

    outcome: Literal["optimal", "feasible", "infeasible"]
    solve: FleetSolveOut
    demand: DemandFitOut
    totals: FleetTotalsOut | None
    commitments: list[CommitmentOut]
    deployments: list[FleetDeploymentOut]
    periods: list[PeriodOut]
    calendar: list[list[int]] = Field(default_factory=list)
    """By month, the position in ``periods`` of each hour in order, which then repeats: 168 hours of a week from Monday on where every
    workload has a profile, else the month's 730. Plans stored before there were rules of operation have none."""
    operation: OperationOut | None = None
    """How the plan is run, and what the rules of operation cost; null without a plan."""
    alternatives: list[FleetAlternativeOut]
    rejected: list[RejectedOut]
    left_out: list[CommitmentLeftOutOut]
    spot: SpotUsedOut | None
    discount: DiscountOut | None = None
    own: list[OwnUsedOut] = Field(default_factory=list)
    reasons: list[str]


class FleetOut(FleetResultOut):
    id: str
    created_at: dt.datetime
    inputs: InputsOut
    request: dict[str, Any]
    """The request with every default filled in; a long series is replaced by its number of values and SHA-256."""


class FleetSummaryOut(Answer):
    """A line of the list."""

    id: str
    created_at: dt.datetime
    outcome: str
    workloads: list[str]
    llms: list[str]
    months: int
    usd: Usd | None
