"""Measurements that somebody wants, and the leases under which agents take them."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from service.wire.benchmarks import (
    AgentIdentity,
    Degree,
    MeasuredEngine,
    MeasuredLayout,
    MeasuredLengths,
    MeasuredLoad,
    MeasuredPrecision,
    Text,
    Words,
)
from service.wire.quantities import Answer, Basis, Instant, Request, Slug, Usd

MeasurementStatus = Literal["queued", "leased", "done", "dead", "cancelled"]
"""queued: an agent may take it (a lease that ran out is queued again). dead: given up after too many attempts."""


class WantedTraffic(Request):
    """Lengths to send."""

    prompt_tokens: MeasuredLengths
    output_tokens: MeasuredLengths


class MeasurementIn(Request):
    """A deployment to measure under one or more loads: the body of POST /v1/measurements."""

    device: Slug
    devices: Degree
    llm: Slug
    layout: MeasuredLayout = MeasuredLayout()
    precision: MeasuredPrecision = MeasuredPrecision()
    engine: MeasuredEngine
    traffic: WantedTraffic
    loads: Annotated[tuple[MeasuredLoad, ...], Field(min_length=1, max_length=50)]
    recommendation: Annotated[Text, Field(max_length=40)] | None = None
    priority: Annotated[int, Field(strict=True, ge=0, le=1_000)] = 0
    """Larger is taken earlier."""
    most_attempts: Annotated[int, Field(strict=True, ge=1, le=20)] = 3
    notes: Words = ""


class LeaseIn(Request):
    """What an agent can run: the body of POST /v1/measurements/lease."""

    agent: AgentIdentity
    device: Slug
    devices: Degree
    """The most it has; a measurement needs no more."""
    lease_s: Annotated[float, Field(strict=True, ge=10, le=86_400, allow_inf_nan=False)] = 600.0
    """How long it may go without a heartbeat."""


class HeartbeatIn(Request):
    """Still working: the lease runs anew from now."""

    lease: Annotated[Text, Field(max_length=40)]
    lease_s: Annotated[float, Field(strict=True, ge=10, le=86_400, allow_inf_nan=False)] = 600.0


class CompletionIn(Request):
    """Measured: the ids of the uploaded results."""

    lease: Annotated[Text, Field(max_length=40)]
    benchmarks: Annotated[tuple[Annotated[Text, Field(max_length=40)], ...], Field(min_length=1, max_length=100)]


class FailureIn(Request):
    """Could not be measured this time."""

    lease: Annotated[Text, Field(max_length=40)]
    reason: Annotated[Text, Field(min_length=1, max_length=2_000)]


class AttemptOut(Answer):
    """One lease and how it ended; ``ended_at`` is null while it runs or when it ran out."""

    lease: str
    agent: str
    started_at: Instant
    ended_at: Instant | None
    outcome: str
    detail: str


class MeasurementOut(Answer):
    id: str
    status: MeasurementStatus
    wanted: MeasurementIn
    created_at: Instant
    lease_expires_at: Instant | None
    attempts: list[AttemptOut]
    benchmarks: list[str]


class LeaseOut(Answer):
    """A measurement to take now. Answers to its lease after ``expires_at`` are refused."""

    lease: str
    expires_at: Instant
    measurement: MeasurementOut


class RegistrationIn(Request):
    """An agent says that it is there: the body of PUT /v1/agents/{id}, sent again as its heartbeat."""

    version: Annotated[Text, Field(max_length=100)]
    hostname: Annotated[Text, Field(max_length=200)]
    device: Slug | None = None
    devices: Annotated[int, Field(strict=True, ge=0, le=10_000)] = 0
    probe: dict[str, Any] = Field(default_factory=dict)


class AgentOut(Answer):
    id: str
    version: str
    hostname: str
    device: str | None
    devices: int
    first_seen_at: Instant
    last_seen_at: Instant


Figure = Annotated[float, Field(strict=True, ge=1e-9, le=1e9, allow_inf_nan=False)]
Size = Annotated[int, Field(strict=True, ge=1, le=10**13)]


class CopyFigure(Request):
    """A device-to-device copy; every byte is read once and written once."""

    bytes: Size
    read_plus_write_gb_per_s: Figure


class GemmFigure(Request):
    """[m, k] × [k, n], 2·m·n·k operations."""

    dtype: Literal["bf16", "fp16", "fp8"]
    m: Size
    n: Size
    k: Size
    tflop_per_s: Figure


class AllReduceFigure(Request):
    """Over ``world_size`` devices, ``bytes`` on each."""

    world_size: Annotated[int, Field(strict=True, ge=2, le=100_000)]
    bytes: Size
    us: Figure


class DeviceMeasurementIn(Request):
    """What a device did in micro-measurements: the body of POST /v1/device-measurements."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    device: Slug
    name: Annotated[Text, Field(max_length=200)]
    """As the driver calls it."""
    driver: Annotated[Text, Field(max_length=200)] | None = None
    torch: Annotated[Text, Field(max_length=100)]
    copy_rates: Annotated[tuple[CopyFigure, ...], Field(max_length=200, alias="copy")] = ()
    gemm: Annotated[tuple[GemmFigure, ...], Field(max_length=1_000)] = ()
    all_reduce: Annotated[tuple[AllReduceFigure, ...], Field(max_length=1_000)] = ()


class RefinedOut(Answer):
    """A constant of the performance model by these figures alone.

    value = probed_fraction · engine_share: the share of the datasheet's rate that bare kernels reached, times how much of
    it an engine reaches. low–high follows the range of the engine's share.
    """

    constant: str
    unit: str
    probed_fraction: float
    engine_share: float
    value: float
    low: float
    high: float


class DeviceMeasurementOut(Answer):
    """``refines``: what the figures say of the device's constants; empty when quarantined."""

    id: str
    status: Literal["accepted", "quarantined"]
    reasons: list[str]
    recorded_at: Instant
    figures: DeviceMeasurementIn
    refines: list[RefinedOut]


class MeasurementWantedOut(Answer):
    """A measurement that would decide something. ``measurement`` is a body of POST /v1/measurements."""

    why: str
    basis: Basis
    decides_usd_per_hour: Usd
    """What lies between the ends of the line's price, or what an alternative may save."""
    measurement: MeasurementIn


class WantedListOut(Answer):
    """The most decisive first; empty when everything in the plan has been measured closely enough to decide nothing."""

    items: list[MeasurementWantedOut]
