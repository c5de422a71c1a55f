"""How a model is deployed: layout, precision, engine."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.quantities import (
    DiskCacheGib,
    DiskRate,
    HostCacheGib,
    KvCacheFormat,
    Name,
    PositiveFraction,
    Request,
    Slug,
    TokenCount,
    WeightFormat,
)

Degree = Annotated[int, Field(ge=1, le=100_000)]


class LayoutIn(Request):
    """Parallel degrees; each is 1 unless stated."""

    tensor_parallel: Degree = 1
    pipeline_parallel: Degree = 1
    data_parallel: Degree = 1
    expert_parallel: Degree = 1


class PrecisionIn(Request):
    """Formats of weights and of the key-value cache; 16-bit bfloat unless stated."""

    weights: WeightFormat = "bf16"
    kv_cache: KvCacheFormat = "bf16"


class EngineIn(Request):
    """The serving engine and the settings that change memory or time.

    ``max_context_tokens``: null means the longest request of the traffic, as far as the model takes it.
    """

    name: Slug = "vllm"
    """Unless stated: vLLM, or the device's own where that is not known to run."""
    version: Name | None = None
    release: Literal["any", "planned"] = "any"
    max_batched_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 8192
    max_sequences: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    memory_fraction: PositiveFraction = 0.92
    max_context_tokens: TokenCount | None = None
    host_cache_gib: HostCacheGib = 0.0
    """What requests of sessions leave in the cache is kept there too, by vLLM and SGLang; loading it takes its time on PCIe."""
    disk_cache_gib: DiskCacheGib = 0.0
    """Under that host memory: prompts that go on there are read into it before they are queued, at the rate of the node's disks."""
    disk_read_gbytes_per_s: DiskRate | None = None
    admission_interval_steps: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """SGLang's --scheduler-recv-interval; null: what the engine's documentation starts this model with on this device, else 1."""
    api_servers: Annotated[int, Field(ge=1, le=256)] = 1
    """vLLM's --api-server-count, divided by data_parallel, which is how many vLLM starts unless told."""
    max_captured_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """vLLM's --max-cudagraph-capture-size; null: as many as the engine captures unless told."""
    scan_kernel: Literal["triton", "flashinfer"] | None = None
    """vLLM's --gdn-prefill-backend, of models with gated delta rules (Qwen3-Next, Qwen3.5); null: FlashInfer's on Hopper and on data-centre
    Blackwell, Triton's elsewhere, and intervals hold the other where vLLM is not told and could have either."""

    load_format: Literal["auto", "dummy"] = "auto"
    """vLLM's and SGLang's --load-format; dummy: weights hold random values, as in benchmarks without a checkpoint. Routers of mixtures
    then spread tokens over experts as was measured with such, less evenly than trained ones, so that steps are shorter."""

    @model_validator(mode="after")
    def _disk_under_host_memory(self) -> Self:
        if self.disk_cache_gib and not self.host_cache_gib:
            raise ValueError("disk_cache_gib needs host_cache_gib: engines reach a disk through host memory")
        return self
