"""Constants of the training model: which exist, and which value holds for a device family and a software stack."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from solver.errors import FigureMissingError
from solver.training.work import Values

GEMM_EFFICIENCY = {
    "bf16": "gemm_efficiency_16bit",
    "fp16": "gemm_efficiency_16bit",
    "fp8": "gemm_efficiency_fp8",
    "mxfp8": "gemm_efficiency_mxfp8",
    "nvfp4": "gemm_efficiency_fp4",
    "int8": "gemm_efficiency_int8",
}
"""Precision of a run → the constant that says what share of that rate its products reach."""
NARROW = ("nvfp4",)
"""Precisions of 4 bits: routed experts, whose products are small, gain less from them."""
EIGHT_BITS = ("fp8", "mxfp8", "nvfp4")
"""Precisions under which some software keeps frozen weights in 8 bits."""
GATHERED_IN_EIGHT_BITS = ("fp8", "mxfp8")
"""Precisions under which some software sends weights between replicas as products read them."""


@dataclass(frozen=True, slots=True)
class TrainingPrior:
    """One catalog row: ``*`` stands for every family or stack. family: or one device. fitted: published runs moved it."""

    name: str
    family: str
    stack: str
    value: float
    low: float
    high: float
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class TrainingConstants:
    """The constants of one run (or, in arrays of one length, of many).

    gemm_efficiency: share of the datasheet rate that large products reach, with this device and precision.
    sixteen_bit_efficiency: the same of products that stay at 16 bits (the head).
    device_fraction: of one device beside its family's others with the same datasheet rate (clocks under load).
    stack_gemm_fraction, stack_attention_fraction: what this software reaches of that; stack_family_fraction: on this family.
    stack_expert_factor: by how much a release's mixture layers take longer than those of others.
    sent_gradient_bytes, sent_weight_bytes: of one gradient, one weight between replicas, which may be less than it is kept in.
    native_head_dim: the narrowest head at which attention reaches its rate.
    context_imbalance_fraction: by how much the last rank of a ring attends to more than the mean one.
    adapter_activation_fraction: of what the backward pass reads, kept when adapters alone are trained.
    saved_input_bytes: of a product's input, kept for the backward pass.
    selective_recompute_fraction, selective_kept_fraction: what selective recomputation repeats of the forward pass, and keeps of it.
    saturation_width: the smallest dimension at which a product reaches half of its rate.
    """

    gemm_efficiency: Values
    sixteen_bit_efficiency: Values
    device_fraction: Values
    stack_gemm_fraction: Values
    stack_family_fraction: Values
    saturation_width: Values
    attention_efficiency: Values
    stack_attention_fraction: Values
    native_head_dim: Values
    context_imbalance_fraction: Values
    attention_backward_ratio: Values
    expert_gemm_fraction: Values
    stack_expert_factor: Values
    expert_layer_s: Values
    expert_passes: Values
    element_passes: Values
    recurrent_passes: Values
    dequantise_passes: Values
    adapter_passes: Values
    layer_floor_s: Values
    quantised_floor_fraction: Values
    trained_floor_fraction: Values
    link_efficiency: Values
    network_efficiency: Values
    collective_latency_s: Values
    tensor_exposed_fraction: Values
    context_exposed_fraction: Values
    expert_exposed_fraction: Values
    data_exposed_fraction: Values
    stage_exposed_fraction: Values
    sent_gradient_bytes: Values
    sent_weight_bytes: Values
    step_overhead_s: Values
    selective_recompute_fraction: Values
    straggler_fraction: Values
    weight_bytes: Values
    saved_input_bytes: Values
    frozen_weight_bytes: Values
    quantised_weight_bytes: Values
    gradient_bytes: Values
    optimizer_bytes: Values
    activation_factor: Values
    adapter_activation_fraction: Values
    selective_kept_fraction: Values
    logit_bytes: Values
    reserved_bytes: Values
    fragmentation_fraction: Values


NAMES = tuple(f.name for f in fields(TrainingConstants))


def constant_name(field: str, precision: str) -> str:
    """The catalog's name of a constant.

    >>> constant_name("gemm_efficiency", "mxfp8"), constant_name("layer_floor_s", "bf16")
    ('gemm_efficiency_mxfp8', 'layer_floor_s')
    """
    if field == "gemm_efficiency":
        return GEMM_EFFICIENCY[precision]
    if field == "expert_gemm_fraction" and precision in NARROW:
        return "expert_gemm_fraction_fp4"
    if field == "frozen_weight_bytes" and precision in EIGHT_BITS:
        return "frozen_weight_bytes_fp8"
    if field == "sent_weight_bytes" and precision in GATHERED_IN_EIGHT_BITS:
        return "sent_weight_bytes_fp8"
    if field == "saved_input_bytes" and precision in EIGHT_BITS:
        return "saved_input_bytes_fp4" if precision in NARROW else "saved_input_bytes_fp8"
    return GEMM_EFFICIENCY["bf16"] if field == "sixteen_bit_efficiency" else field


def chosen_prior(
    priors: Iterable[TrainingPrior], name: str, kinds: Sequence[str], stacks: Sequence[str]
) -> TrainingPrior | None:
    """The row that is about the earliest of ``kinds`` (the device, then its family), then about the earliest of ``stacks``
    (the release first, then what it is one of).
    """
    found: tuple[tuple[int, int], TrainingPrior] | None = None
    for one in priors:
        if one.name != name or one.family not in ("*", *kinds) or one.stack not in ("*", *stacks):
            continue
        rank = (
            -kinds.index(one.family) if one.family != "*" else -len(kinds),
            -stacks.index(one.stack) if one.stack != "*" else -len(stacks),
        )
        if found is None or rank > found[0]:
            found = rank, one
    return None if found is None else found[1]


def chosen_rows(
    priors: Mapping[str, Sequence[TrainingPrior]], *, device: str, family: str, stacks: Sequence[str], precision: str
) -> dict[str, TrainingPrior]:
    """Each constant's row. Raises FigureMissingError naming the first constant that no row gives."""
    rows = {}
    for field in NAMES:
        name = constant_name(field, precision)
        row = chosen_prior(priors.get(name, ()), name, (device, family), stacks)
        if row is None:
            raise FigureMissingError(device, f"training constant {name} (family {family})")
        rows[field] = row
    return rows


def resolve(rows: Mapping[str, TrainingPrior]) -> TrainingConstants:
    """Rows to arrays of one value, which numpy spreads over layouts."""
    return TrainingConstants(**{field: np.array([rows[field].value]) for field in NAMES})


def by_name(priors: Iterable[TrainingPrior]) -> dict[str, list[TrainingPrior]]:
    grouped: dict[str, list[TrainingPrior]] = {}
    for one in priors:
        grouped.setdefault(one.name, []).append(one)
    return grouped
