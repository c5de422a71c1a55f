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


@dataclass(frozen=True, slots=True)
class TrainingPrior:
    """One catalog row: ``*`` stands for every family or stack. fitted: published runs moved it."""

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
    stack_gemm_fraction, stack_attention_fraction: what this software reaches of that.
    selective_recompute_fraction, selective_kept_fraction: what selective recomputation repeats of the forward pass, and keeps of it.
    saturation_width: the smallest dimension at which a product reaches half of its rate.
    """

    gemm_efficiency: Values
    sixteen_bit_efficiency: Values
    stack_gemm_fraction: Values
    saturation_width: Values
    attention_efficiency: Values
    stack_attention_fraction: Values
    attention_backward_ratio: Values
    expert_gemm_fraction: Values
    expert_layer_s: Values
    element_passes: Values
    recurrent_passes: Values
    dequantise_passes: Values
    adapter_passes: Values
    layer_floor_s: Values
    link_efficiency: Values
    network_efficiency: Values
    collective_latency_s: Values
    tensor_exposed_fraction: Values
    context_exposed_fraction: Values
    expert_exposed_fraction: Values
    data_exposed_fraction: Values
    step_overhead_s: Values
    selective_recompute_fraction: Values
    straggler_fraction: Values
    weight_bytes: Values
    quantised_weight_bytes: Values
    gradient_bytes: Values
    optimizer_bytes: Values
    activation_factor: Values
    selective_kept_fraction: Values
    logit_bytes: Values
    reserved_bytes: Values
    fragmentation_fraction: Values


PER_PRECISION = ("gemm_efficiency", "sixteen_bit_efficiency")
NAMES = tuple(f.name for f in fields(TrainingConstants))


def constant_name(field: str, precision: str) -> str:
    """The catalog's name of a constant.

    >>> constant_name("gemm_efficiency", "mxfp8"), constant_name("layer_floor_s", "bf16")
    ('gemm_efficiency_mxfp8', 'layer_floor_s')
    """
    if field == "gemm_efficiency":
        return GEMM_EFFICIENCY[precision]
    return GEMM_EFFICIENCY["bf16"] if field == "sixteen_bit_efficiency" else field


def chosen_prior(
    priors: Iterable[TrainingPrior], name: str, family: str, stacks: Sequence[str]
) -> TrainingPrior | None:
    """The row that is about this family, then about the earliest of ``stacks`` (the release first, then what it is one of)."""
    found: tuple[tuple[bool, int], TrainingPrior] | None = None
    for one in priors:
        if one.name != name or one.family not in ("*", family) or one.stack not in ("*", *stacks):
            continue
        rank = (one.family != "*", -stacks.index(one.stack) if one.stack != "*" else -len(stacks))
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
        row = chosen_prior(priors.get(name, ()), name, family, stacks)
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
