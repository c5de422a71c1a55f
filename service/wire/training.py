"""JSON of training estimates: what is trained on what, and how fast, in which memory and layout."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.deployment import Degree
from service.wire.quantities import Answer, Basis, Interval, Name, PositiveNumber, Request, TokenCount, at_most

MOST_TRAINING_ESTIMATES = 1_000
TrainingMethod = Literal["pretrain", "full", "lora", "qlora", "dpo"]
TrainingAdapters = Literal["lora", "qlora"]
TrainingReference = Literal["computed", "precomputed"]
TrainingSharding = Literal["zero1", "zero3"]
TrainingRecompute = Literal["none", "selective", "full"]
TrainingOptimizer = Literal["adamw", "adamw_8bit", "sgd"]
Sequences = Annotated[int, Field(ge=1, le=100_000_000)]
Ranks = Annotated[int, Field(ge=1, le=1_000_000)]


class TrainingLayoutIn(Request):
    """Parallel degrees of a run; the fastest that memory holds is searched for those that are not stated."""

    tensor_parallel: Degree | None = None
    pipeline_parallel: Degree | None = None
    virtual_pipeline: Degree | None = None
    context_parallel: Degree | None = None
    expert_parallel: Degree | None = None
    data_parallel: Degree | None = None


class TrainingAnchorIn(Request):
    """A measured run of the same model, device, method and precision: what it was off, others are corrected by."""

    devices: Ranks
    tokens_per_s_per_device: PositiveNumber
    sequence_tokens: TokenCount | None = None
    global_batch_sequences: Sequences | None = None
    micro_batch_sequences: Sequences | None = None
    layout: TrainingLayoutIn = TrainingLayoutIn()
    sharding: TrainingSharding | None = None
    recompute: TrainingRecompute | None = None


class TrainingCase(Request):
    """What is trained, and with which software; shared by estimates and jobs."""

    llm: Name
    method: TrainingMethod
    """dpo: preferences, in pairs of a chosen and a rejected sequence, each beside a frozen reference model."""
    adapters: TrainingAdapters | None = None
    """Of method dpo: what is trained; null: every weight."""
    reference: TrainingReference | None = None
    """Of method dpo: the reference's log-probabilities are computed with each step (null), or once before all of them."""
    precision: Name = "bf16"
    """Of the matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8."""
    sequence_tokens: TokenCount | None = None
    """Tokens of a packed sequence; null: what the stack takes unless told."""
    global_batch_sequences: Sequences | None = None
    """Sequences of one optimizer step; null: one micro-batch a device."""
    micro_batch_sequences: Sequences | None = None
    layout: TrainingLayoutIn = TrainingLayoutIn()
    sharding: TrainingSharding | None = None
    recompute: TrainingRecompute | None = None
    optimizer: TrainingOptimizer | None = None
    stack: Name | None = None
    """Software by its usual name (megatron-bridge 26.04, torchtitan, maxtext, hf-trl); null or unknown: the usual one for the
    method on the device."""
    adapter_rank: Annotated[int, Field(ge=1, le=4_096)] | None = None

    @model_validator(mode="after")
    def _preferences_alone_have_a_reference(self) -> Self:
        if self.method != "dpo" and (self.adapters is not None or self.reference is not None):
            raise ValueError(f"adapters and reference are of method dpo; {self.method} says by itself what is trained")
        return self

    @property
    def trains(self) -> Literal["pretrain", "full", "lora", "qlora"]:
        """Which weights have a gradient, and from what they start."""
        return (self.adapters or "full") if self.method == "dpo" else self.method

    @property
    def reference_used(self) -> TrainingReference | None:
        """Null without preferences."""
        return (self.reference or "computed") if self.method == "dpo" else None


class TrainingEstimateIn(TrainingCase):
    """One run on so many devices."""

    device: Name
    node: Name | None = None
    """The machine that holds the devices; null: the best networked one of the catalog that does."""
    devices: Ranks
    devices_per_node: Ranks | None = None
    anchors: Annotated[tuple[TrainingAnchorIn, ...], at_most(100, "anchors")] = ()


class TrainingEstimatesIn(Request):
    """Runs to predict. One bad case does not spoil the rest."""

    estimates: Annotated[
        tuple[TrainingEstimateIn, ...],
        at_most(MOST_TRAINING_ESTIMATES, "estimates"),
        Field(min_length=1),
    ]


class TrainingLayoutOut(Answer):
    """How the devices share the work."""

    tensor_parallel: int
    pipeline_parallel: int
    virtual_pipeline: int
    context_parallel: int
    expert_parallel: int
    data_parallel: int
    micro_batch_sequences: int
    sharding: TrainingSharding
    recompute: TrainingRecompute
    recomputed_layers_fraction: float


class TrainingChoiceOut(Answer):
    """A layout as fast as the chosen one within 5 %, which the model cannot tell from it."""

    layout: TrainingLayoutOut
    tokens_per_s_per_device: float
    peak_gib: float
    verdict: Literal["fits", "tight", "does_not_fit"]


class TrainingMemoryOut(Answer):
    """By part, on the fullest device."""

    weights_gib: float
    gradients_gib: float
    optimizer_gib: float
    activations_gib: float
    logits_gib: float
    reserved_gib: float
    peak_gib: float
    available_gib: float
    verdict: Literal["fits", "tight", "does_not_fit"]


class TrainingTermOut(Answer):
    """One term of the time of a step; the terms sum to it."""

    term: str
    time_s: float
    time_fraction: float


class TrainingEstimatedOut(Answer):
    """``does_not_fit``: the figures say how fast it would be if memory held it."""

    outcome: Literal["estimated", "does_not_fit"]
    detail: str
    basis: Basis
    evidence: list[str]
    tokens_per_s_per_device: Interval
    step_s: Interval
    mfu_fraction: Interval
    mfu_convention: str
    memory: TrainingMemoryOut
    layout: TrainingLayoutOut
    shortlist: list[TrainingChoiceOut]
    considered: int
    terms: list[TrainingTermOut]
    stack: str
    sequence_tokens: int
    global_batch_sequences: int
    cautions: list[str]


class TrainingUnsupportedOut(Answer):
    """It cannot run, or a figure is missing. ``reason`` is a stable slug: unknown_llm, batch_not_divisible, figure_missing, …"""

    outcome: Literal["unsupported"]
    reason: str
    detail: str
    close_matches: list[str]


TrainingEstimateOut = Annotated[TrainingEstimatedOut | TrainingUnsupportedOut, Field(discriminator="outcome")]


class TrainingEstimatesOut(Answer):
    """In the order asked."""

    estimates: list[TrainingEstimateOut]
