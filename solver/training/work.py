"""One training step, spelled out as numbers: a model, a device, a batch and any number of layouts, side by side in arrays.

Every formula of this package is elementwise over a ``Work``: over the layouts of one run when layouts are searched, over runs
when constants are fitted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.training.shape import TrainingShape

Values = NDArray[np.float64]
Method = Literal["pretrain", "full", "lora", "qlora"]
Sharding = Literal["zero1", "zero3"]
Recompute = Literal["none", "selective", "full"]
Reference = Literal["computed", "precomputed"]
METHODS: tuple[Method, ...] = ("pretrain", "full", "lora", "qlora")
COMPUTE_RATE = {
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4", "int8": "int8",
}  # fmt: skip
"""Precision of the products of a run → the device's rate it works at."""


@dataclass(frozen=True, slots=True)
class TrainingDevice:
    """What training needs of a device and of what joins it to others; rates are datasheet ones.

    network_bytes_per_s: of one device between nodes, one direction; 0 where nobody has published any.
    """

    id: str
    family: str
    memory_bytes: float
    memory_bytes_per_s: float
    flop_per_s: float
    sixteen_bit_flop_per_s: float
    link_bytes_per_s: float
    link_domain_devices: int
    network_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Layouts:
    """How devices share the work, a layout a position. virtual_pipeline: parts of a stage's layers that are interleaved."""

    tensor_parallel: Values
    pipeline_parallel: Values
    virtual_pipeline: Values
    context_parallel: Values
    expert_parallel: Values
    data_parallel: Values
    micro_batch_sequences: Values
    recompute_full: Values
    recompute_selective: Values
    sharded_weights: Values
    """1: weights, gradients and states are sharded (ZeRO-3, FSDP); 0: states alone (ZeRO-1)."""

    def __len__(self) -> int:
        return len(self.tensor_parallel)

    def at(self, positions: NDArray[np.intp]) -> "Layouts":
        return Layouts(*(getattr(self, f.name)[positions] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Work:
    """Everything the formulas read; arrays of one length. Names are those of shapes, devices and layouts.

    trained_fraction: 1 where every weight has a gradient, 0 where adapters alone have. trained_weights: how many have one.
    reference_passes: forward passes of a frozen model beside each of the trained one (preference tuning), 0 or 1.
    reference_copies: sets of frozen weights held for them; none where the trained model without its adapters is the reference.
    """

    layers: Values
    hidden: Values
    vocabulary: Values
    widest: Values
    head_dim: Values
    linear_weights: Values
    expert_weights: Values
    active_expert_weights: Values
    expert_layers: Values
    experts: Values
    top_k: Values
    expert_intermediate: Values
    expert_hidden: Values
    recurrent_values_per_token: Values
    head_weights: Values
    embedding_weights: Values
    other_weights: Values
    attention_flop_per_token: Values
    kv_values_per_token: Values
    saved_values_per_token: Values
    product_inputs_per_token: Values
    saved_inputs_per_token: Values
    memory_bytes: Values
    memory_bytes_per_s: Values
    flop_per_s: Values
    sixteen_bit_flop_per_s: Values
    link_bytes_per_s: Values
    link_domain_devices: Values
    network_bytes_per_s: Values
    sequence_tokens: Values
    global_batch_sequences: Values
    trained_fraction: Values
    trained_weights: Values
    quantised_fraction: Values
    reference_passes: Values
    reference_copies: Values
    tensor_parallel: Values
    pipeline_parallel: Values
    virtual_pipeline: Values
    context_parallel: Values
    expert_parallel: Values
    data_parallel: Values
    micro_batch_sequences: Values
    recompute_full: Values
    recompute_selective: Values
    sharded_weights: Values

    def at(self, position: int) -> "Work":
        """One of its layouts alone."""
        chosen = {f.name: getattr(self, f.name) for f in fields(Work)}
        return Work(**{name: v if len(v) == 1 else v[position : position + 1] for name, v in chosen.items()})

    @property
    def devices(self) -> Values:
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel * self.data_parallel

    @property
    def micro_batches(self) -> Values:
        """Of one step on one replica; a last one may be smaller, and takes its time all the same."""
        return np.ceil(self.global_batch_sequences / (self.data_parallel * self.micro_batch_sequences) - 1e-9)

    @property
    def tokens(self) -> Values:
        """Of one micro-batch on one rank of the context-parallel group."""
        return self.micro_batch_sequences * self.sequence_tokens / self.context_parallel

    @property
    def tokens_per_step(self) -> Values:
        return self.global_batch_sequences * self.sequence_tokens


@dataclass(frozen=True, slots=True)
class Run:
    """What is trained how, without its layout.

    adapter_weights: parameters of the adapters that are trained (LoRA). reference: sequences are pairs, a chosen one and a
    rejected one, whose log-probabilities under a frozen reference model are computed with each step or once before all of
    them; None: no preferences.
    """

    shape: TrainingShape
    device: TrainingDevice
    method: Method
    sequence_tokens: int
    global_batch_sequences: int
    adapter_weights: float = 0.0
    reference: Reference | None = None

    def work(self, layouts: Layouts) -> Work:
        """The run under each of the layouts."""
        adapters = self.method in ("lora", "qlora")
        own: dict[str, float] = {
            "sequence_tokens": self.sequence_tokens,
            "global_batch_sequences": self.global_batch_sequences,
            "trained_fraction": 0.0 if adapters else 1.0,
            "trained_weights": self.adapter_weights if adapters else self.shape.total_weights,
            "quantised_fraction": 1.0 if self.method == "qlora" else 0.0,
            "reference_passes": 1.0 if self.reference == "computed" else 0.0,
            "reference_copies": 1.0 if self.reference == "computed" and not adapters else 0.0,
        }
        values: dict[str, Values] = {}
        for field in fields(Work):
            name = field.name
            if hasattr(layouts, name):
                values[name] = getattr(layouts, name)
                continue
            if name in own:
                value = own[name]
            elif hasattr(self.shape, name):
                value = getattr(self.shape, name)
            else:
                value = getattr(self.device, name)
            values[name] = np.array([float(value)])  # spread over the layouts where they meet
        return Work(**values)


def side_by_side(works: Sequence[Work]) -> Work:
    """Several as one, in their order."""
    return Work(**{f.name: np.concatenate([getattr(one, f.name) for one in works]) for f in fields(Work)})


def added(parts: Iterable[Values]) -> Values:
    """Their sum; those of one value are spread over the layouts of the others.

    >>> added([np.array([1.0]), np.array([1.0, 2.0])])
    array([2., 3.])
    """
    whole = np.zeros(1)
    for part in parts:
        whole = whole + part
    return whole


def one_layout(
    *,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    virtual_pipeline: int = 1,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    data_parallel: int = 1,
    micro_batch_sequences: int = 1,
    recompute: Recompute = "none",
    sharding: Sharding = "zero1",
) -> Layouts:
    """A single layout."""
    given = (
        tensor_parallel, pipeline_parallel, virtual_pipeline, context_parallel, expert_parallel, data_parallel,
        micro_batch_sequences, recompute == "full", recompute == "selective", sharding == "zero3",
    )  # fmt: skip
    return Layouts(*(np.array([float(value)]) for value in given))
