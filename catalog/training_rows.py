"""The shapes of rows about training: software stacks and published runs. Constants are ``ConstantRow``, a stack in place of an engine."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field, model_validator

from catalog.rows import Positive, Provenance, Row, Slug

Axis = Literal["tensor", "pipeline", "context", "expert"]
Count = Annotated[int, Field(ge=1)]


class TrainingStackRow(Row):
    """One software stack, or the releases of one that share constants.

    names: how sources spell it; the longest that a given name begins with decides. part_of: the stack whose constants
    hold where this one has none of its own. axes: how it can split a model beside data parallelism. sharding: what it shards
    unless told otherwise. recompute: what its own recipes say; without it, as much as memory asks. recomputes_layers: it can
    recompute some layers and keep the rest. uneven_micro_batches: a device's share of the batch need not be a multiple of its
    micro-batch. trains: the methods it is chosen for when none is named, on devices of these
    families (all: empty).
    """

    id: Slug
    name: str
    names: list[str]
    part_of: Slug | None = None
    axes: tuple[Axis, ...] = ()
    sharding: list[Literal["zero1", "zero3"]]
    recompute: Literal["none", "selective", "full"] | None = None
    recomputes_layers: bool = False
    uneven_micro_batches: bool = False
    trains: tuple[Literal["pretrain", "full", "lora", "qlora"], ...] = ()
    families: tuple[str, ...] = ()
    provenance: Provenance


class TrainingRunRow(Row):
    """One published run: what its source states, nothing else. ``left_out_because``: why no constant is fitted to it."""

    id: Slug
    source: Slug
    stack: str
    device: Slug
    devices: Count
    llm: Slug
    method: Literal["pretrain", "full", "lora", "qlora"]
    precision: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8"] | None = None
    sequence_tokens: Count | None = None
    global_batch_sequences: Count | None = None
    micro_batch_sequences: Count | None = None
    tensor_parallel: Count | None = None
    pipeline_parallel: Count | None = None
    virtual_pipeline: Count | None = None
    context_parallel: Count | None = None
    expert_parallel: Count | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    tokens_per_s_per_device: Positive | None = None
    peak_memory_gib: Positive | None = None
    left_out_because: str = ""

    @model_validator(mode="after")
    def _measured_something(self) -> "TrainingRunRow":
        if self.tokens_per_s_per_device is None and self.peak_memory_gib is None:
            raise ValueError("neither a rate nor a peak of memory")
        return self


class TrainingSourceRow(Row):
    """Where runs come from, under the short key of their column ``source``."""

    text: Annotated[str, Field(min_length=10)]
    retrieved_on: dt.date
