"""POST /v1/estimates: predict fixed deployments."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.adapters import ADAPTERS_ARE_AGGREGATED, ADAPTERS_DO_NOT_DRAFT, AdaptersIn, AdaptersOut
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.lasting_queue import LastingQueueOut
from service.wire.quantities import Answer, Basis, Interval, Name, Percentiles, Request, at_most
from service.wire.roles import DisaggregatedIn, DraftingEngineIn, KvTransferOut, SpeculativeOut
from service.wire.traffic import (
    IMAGES_ARE_AGGREGATED,
    SESSIONS_ARE_AGGREGATED,
    THINKING_IS_AGGREGATED,
    Load,
    OverContext,
    TrafficShape,
)

MOST_ESTIMATES = 1_000


class EstimateIn(Request):
    """One deployment and what is asked of it: on one ``device``, or ``disaggregated`` over two pools."""

    llm: Name
    device: Name | None = None
    """Left out where ``node`` is named: what that machine holds."""
    partition: Name | None = None
    """A profile: the deployment has one instance of a device that is split so."""
    node: Name | None = None
    """The machine: how its devices are joined, and over which network a replica larger than it spans several. Null: links that every
    machine has that holds the layout."""
    layout: LayoutIn = LayoutIn()
    """Left out: one device, or where that does not hold the model the least tensor parallelism in one machine that does. As stated
    otherwise, whether it fits or not."""
    precision: PrecisionIn = PrecisionIn()
    engine: DraftingEngineIn = DraftingEngineIn()
    disaggregated: DisaggregatedIn | None = None
    traffic: TrafficShape
    adapters: AdaptersIn | None = None
    """Null: the model as published."""
    load: Load
    over_context: OverContext = "clip"

    @model_validator(mode="after")
    def _one_way_of_serving(self) -> Self:
        if self.disaggregated is None and self.device is None and self.node is None:
            raise ValueError(
                "state device, or node, which holds devices of one kind, or disaggregated, whose pools name theirs"
            )
        if self.disaggregated is not None and self.device is not None:
            raise ValueError("state either device or disaggregated, whose pools name theirs")
        if self.disaggregated is not None and self.partition is not None:
            raise ValueError("partition belongs to a device: state device instead of pools, or leave out partition")
        if self.disaggregated is not None and self.node is not None:
            raise ValueError("node belongs to the pools: disaggregated.prefill.node and disaggregated.decode.node")
        if self.disaggregated is not None and "layout" in self.model_fields_set:
            raise ValueError(
                "layout belongs to the pools: disaggregated.prefill.layout and disaggregated.decode.layout"
            )
        if self.disaggregated is not None and self.engine.speculative is not None:
            raise ValueError("drafting in disaggregated pools is not modelled: leave out engine.speculative")
        if self.disaggregated is not None and self.traffic.sessions is not None:
            raise ValueError(SESSIONS_ARE_AGGREGATED)
        if self.disaggregated is not None and self.traffic.thinking_tokens is not None:
            raise ValueError(THINKING_IS_AGGREGATED)
        if self.disaggregated is not None and self.traffic.media is not None:
            raise ValueError(IMAGES_ARE_AGGREGATED)
        if self.disaggregated is not None and self.adapters is not None:
            raise ValueError(ADAPTERS_ARE_AGGREGATED)
        if self.engine.speculative is not None and self.adapters is not None:
            raise ValueError(ADAPTERS_DO_NOT_DRAFT)
        routing = "sticky" if self.traffic.sessions is None else self.traffic.sessions.routing
        if routing != "sticky" and self.load.kind == "closed":
            raise ValueError(
                f"{routing} routing is of open loads: clients of a closed one send their sessions to one replica"
            )
        if routing != "sticky" and self.traffic.sessions is not None and self.traffic.sessions.replicas is None:
            raise ValueError(
                f"{routing} routing finds the less the more replicas there are: state traffic.sessions.replicas"
            )
        return self


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


class OperatorOut(Answer):
    """One operator of a step on one device of the tensor-parallel group, over all layers, with its place on the roofline."""

    phase: Literal["prefill", "decode"]
    operator: str
    flop: float
    bytes: float
    ms: float
    flop_per_byte: float
    tflop_per_s: float
    roof_fraction: float


class RooflineOut(Answer):
    """A device's roof at datasheet rates, and the operators of a prefill step of the mean prompt and of a decode step at the
    predicted batch on it. Passes without matrix work and links are not on it; ``step`` has their time."""

    peak_tflop_per_s: float
    memory_bandwidth_gb_per_s: float
    ridge_flop_per_byte: float
    operators: list[OperatorOut]


class BoundOut(Answer):
    """The roofline limit no engine can beat."""

    tpot_ms: float
    output_tokens_per_s: float


class Assumed(Answer):
    """The deployment as it was understood, every default filled in. ``layout``: null where pools have their own, and where only speeds
    of the system are published: then it is its maker's.
    ``partition``: the profile of the instance it runs on, null for whole devices."""

    partition: str | None = None
    node: str | None = None
    layout: LayoutIn | None
    precision: PrecisionIn
    engine: DraftingEngineIn
    disaggregated: DisaggregatedIn | None = None


class PoolOut(Answer):
    """One pool. ``step``: terms of a prefill step, or of a decode step; ``bottleneck``: what most of it waits for."""

    devices: int
    busy_fraction: float
    power_w: Interval | None
    memory: MemoryOut
    bottleneck: str
    step: list[StepTermOut]


class DisaggregatedOut(Answer):
    prefill: PoolOut
    decode: PoolOut
    kv_transfer: KvTransferOut


class ImagesOut(Answer):
    """What the images, videos or recordings of one request come to."""

    tokens_each: int
    patches_each: int
    encoding_ms: float
    host_ms: float


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
    memory: MemoryOut | None
    """Of the decode pool, where there are two; null where only speeds of the system are published."""
    bottleneck: BottleneckOut | None
    """Null where only speeds of the system are published."""
    step: list[StepTermOut]
    bound: BoundOut | None
    """Null where only speeds of the system are published."""
    roofline: RooflineOut | None
    """Null where pools have devices of their own, and where only speeds of the system are published."""
    clipped_fraction: float
    """Share of the requests that are longer than the context, and end there."""
    cautions: list[str] = Field(default_factory=list)
    ttfat_ms: Percentiles | None = None
    """Null where no tokens are hidden: it is the first token then."""
    prefix_hit_fraction: float | None = None
    """Null where requests are no turns of sessions."""
    routed_over: int | None = None
    """Null where requests are no turns of sessions."""
    speculative: SpeculativeOut | None = None
    adapters: AdaptersOut | None = None
    """Null where requests name none."""
    images: ImagesOut | None = None
    """Null where requests carry none."""
    pools: DisaggregatedOut | None = None
    lasting_queue: LastingQueueOut | None = None
    """Of an open load; null where a queue goes by itself once it has come up."""
    front_end_fraction: float | None = None
    """Null of pools that prefill and decode apart."""


class DoesNotFitOut(Assumed):
    outcome: Literal["does_not_fit"]
    detail: str
    needed_bytes_per_device: int
    available_bytes_per_device: int
    smallest_layout: LayoutIn | None = None
    """The least tensor parallelism in one machine of the device that would hold the model; null where none does."""


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
