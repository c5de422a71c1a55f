"""POST /v1/estimates: predict fixed deployments."""

from typing import Annotated, Literal

from pydantic import Field

from service.wire.deployment import EngineIn, LayoutIn, PrecisionIn
from service.wire.quantities import Answer, Basis, Interval, Name, Percentiles, Request, at_most
from service.wire.traffic import Load, TrafficShape

MOST_ESTIMATES = 1_000


class EstimateIn(Request):
    """One deployment and what is asked of it."""

    llm: Name
    device: Name
    layout: LayoutIn = LayoutIn()
    precision: PrecisionIn = PrecisionIn()
    engine: EngineIn = EngineIn()
    traffic: TrafficShape
    load: Load


class EstimatesIn(Request):
    estimates: Annotated[
        tuple[EstimateIn, ...],
        Field(min_length=1, max_length=MOST_ESTIMATES),
        at_most(MOST_ESTIMATES, "estimates"),
    ]


class MemoryOut(Answer):
    """Per device, on the fullest one; ``kv_cache_tokens`` and ``max_concurrent_requests`` are of one replica."""

    weights_gib: float
    kv_cache_gib: float
    activations_gib: float
    reserved_gib: float
    kv_cache_tokens: int
    max_concurrent_requests: int


class BottleneckOut(Answer):
    prefill: str
    decode: str


class StepTermOut(Answer):
    """One term of the time of a decode step at the predicted batch."""

    term: str
    ms: float


class BoundOut(Answer):
    """The roofline limit no engine can beat."""

    tpot_ms: float
    output_tokens_per_s: float


class Assumed(Answer):
    """The deployment as it was understood, every default filled in."""

    layout: LayoutIn
    precision: PrecisionIn
    engine: EngineIn


class EstimatedOut(Assumed):
    outcome: Literal["estimated"]
    basis: Basis
    evidence: list[str]
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    itl_ms: Percentiles
    e2e_ms: Percentiles
    output_tokens_per_s: Interval
    requests_per_s: Interval
    power_w: Interval | None
    """Null where nobody has published what the device draws."""
    joules_per_output_token: Interval | None
    memory: MemoryOut
    bottleneck: BottleneckOut
    step: list[StepTermOut]
    bound: BoundOut


class DoesNotFitOut(Assumed):
    outcome: Literal["does_not_fit"]
    detail: str
    needed_bytes_per_device: int
    available_bytes_per_device: int


class UnsupportedOut(Assumed):
    """It cannot run. ``reason`` is a stable slug: unknown_llm, unknown_device, figure_missing, …"""

    outcome: Literal["unsupported"]
    reason: str
    detail: str
    close_matches: list[str]


class SaturatedOut(Assumed):
    outcome: Literal["saturated"]
    detail: str
    capacity_requests_per_s: float


EstimateOut = Annotated[EstimatedOut | DoesNotFitOut | UnsupportedOut | SaturatedOut, Field(discriminator="outcome")]


class EstimatesOut(Answer):
    """In the order asked. One bad case does not spoil the rest."""

    estimates: list[EstimateOut]
