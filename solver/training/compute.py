"""Seconds of the arithmetic of one micro-batch on one stage of the pipeline."""

import numpy as np

from solver.training.constants import TrainingConstants
from solver.training.shape import VALUE_BYTES
from solver.training.work import Values, Work

FORWARD_FLOP_PER_WEIGHT = 2.0
"""A multiplication and an addition."""


def saturation_fraction(width: Values, half_width: Values) -> Values:
    """What a matrix product reaches of its best rate when its smallest dimension is ``width``: d/(d + d₀).

    Tiles at the edge and the time to fill the pipeline of a product weigh the more the smaller it is.

    >>> saturation_fraction(np.array([512.0]), np.array([512.0]))
    array([0.5])
    """
    return width / (width + half_width)


def linear_forward_s(work: Work, c: TrainingConstants) -> Values:
    """The dense products of a stage, forward: 2·P·T/(tp·pp) over the reached rate."""
    width = np.minimum(
        np.minimum(work.tokens, work.hidden), np.maximum(work.widest, work.hidden) / work.tensor_parallel
    )
    rate = work.flop_per_s * c.gemm_efficiency * software_fraction(c) * saturation_fraction(width, c.saturation_width)
    flop = FORWARD_FLOP_PER_WEIGHT * work.linear_weights * work.tokens
    return flop / (work.tensor_parallel * work.pipeline_parallel) / rate


def software_fraction(c: TrainingConstants) -> Values:
    """Of what products could reach, what this software on this device does."""
    return c.device_fraction * c.stack_gemm_fraction * c.stack_family_fraction


def expert_forward_s(work: Work, c: TrainingConstants) -> Values:
    """The routed experts of a stage, forward. A rank keeps T/tp tokens; an expert sees what ``ep`` ranks send it of them.

    No sooner than its weights are read once.
    """
    tokens = work.tokens / work.tensor_parallel
    experts = np.maximum(work.experts, 1.0)
    per_expert = tokens * work.expert_parallel * work.top_k / experts
    width = np.maximum(np.minimum(np.minimum(per_expert, work.expert_intermediate), work.expert_hidden), 1.0)
    rate = work.flop_per_s * c.gemm_efficiency * software_fraction(c) * c.expert_gemm_fraction
    rate = rate * saturation_fraction(width, c.saturation_width) / c.stack_expert_factor
    computed = FORWARD_FLOP_PER_WEIGHT * work.active_expert_weights * tokens / work.pipeline_parallel / rate
    read = VALUE_BYTES * work.expert_weights / (work.expert_parallel * work.pipeline_parallel) / work.memory_bytes_per_s
    return np.where(work.expert_layers > 0, np.maximum(computed, read), 0.0)


def expert_routing_s(work: Work, c: TrainingConstants) -> Values:
    """Tokens sorted to their experts and back, forward and backward: passes over the copies that experts work on."""
    copied = VALUE_BYTES * work.expert_hidden * work.top_k * work.tokens / work.tensor_parallel
    passed = copied * c.expert_passes / work.memory_bytes_per_s
    return (passed + c.expert_layer_s) * c.stack_expert_factor * work.expert_layers / work.pipeline_parallel


def attention_forward_s(work: Work, c: TrainingConstants) -> Values:
    """Queries with keys and scores with values, forward, at 16 bits whatever the precision of the rest.

    Heads narrower than kernels are written for leave matrix units partly idle. In a ring whose ranks hold stretches of the
    sequence as they come, the last one attends to all of it: 2 − 1/cp times the mean.
    """
    narrow = np.minimum(1.0, work.head_dim / c.native_head_dim)
    rate = work.sixteen_bit_flop_per_s * c.attention_efficiency * c.stack_attention_fraction * narrow
    slowest = 1.0 + c.context_imbalance_fraction * (1.0 - 1.0 / work.context_parallel)
    flop = work.attention_flop_per_token * work.tokens * slowest / c.device_fraction
    return flop / (work.tensor_parallel * work.pipeline_parallel) / rate


def head_s(work: Work, c: TrainingConstants) -> Values:
    """The output head, forward and backward, and what passes over its logits."""
    passes = 2.0 + work.trained_fraction
    width = np.minimum(work.tokens, work.hidden)
    rate = work.sixteen_bit_flop_per_s * c.sixteen_bit_efficiency * software_fraction(c)
    rate = rate * saturation_fraction(width, c.saturation_width)
    whole = passes * FORWARD_FLOP_PER_WEIGHT * work.head_weights * work.tokens / work.tensor_parallel / rate
    logits = work.tokens * work.vocabulary * c.logit_bytes / work.tensor_parallel / work.memory_bytes_per_s
    return whole + logits


def unbalanced_s(head: Values, layer: Values, stages: Values) -> Values:
    """By how much the stage with the head takes longer than the mean one.

    Splits count the embedding and the head as a layer each: of (layers + 2)/p places the last stage has a layer less.
    """
    beyond = head * (1.0 - 1.0 / stages) - layer * (1.0 - 2.0 / stages)
    return np.where(stages > 1.0, np.maximum(beyond, 0.0), 0.0)


def element_s(work: Work, c: TrainingConstants) -> Values:
    """Norms, activations, residuals, forward and backward: passes over the hidden state at the memory's rate."""
    passed = VALUE_BYTES * work.hidden * work.tokens / work.tensor_parallel / work.pipeline_parallel
    adapters = c.adapter_passes * (1.0 - work.trained_fraction)
    return passed * work.layers * (c.element_passes + adapters) / work.memory_bytes_per_s


def recurrent_s(work: Work, c: TrainingConstants) -> Values:
    """State-space and linear-attention layers, forward and backward: bound by memory too, in passes over all they project."""
    passed = VALUE_BYTES * work.recurrent_values_per_token * work.tokens / work.tensor_parallel / work.pipeline_parallel
    return passed * c.recurrent_passes / work.memory_bytes_per_s


def dequantise_s(work: Work, c: TrainingConstants) -> Values:
    """Frozen 4-bit weights spread to 16 bits before each product, forward and backward (QLoRA)."""
    weights = (work.linear_weights + work.expert_weights) / (work.tensor_parallel * work.pipeline_parallel)
    moved = (c.quantised_weight_bytes + VALUE_BYTES) * weights * c.dequantise_passes
    return work.quantised_fraction * moved / work.memory_bytes_per_s


def launch_floor_s(work: Work, c: TrainingConstants) -> Values:
    """The host's time for a stage's layers, forward and backward: a layer of little work takes no less.

    More of it where weights are spread from 4 bits first, and where each trained weight's gradient is handed over by hooks.
    """
    again = 1.0 + (work.recompute_full + work.reference_passes) / 3.0
    more = c.quantised_floor_fraction * work.quantised_fraction + c.trained_floor_fraction * work.trained_fraction
    return c.layer_floor_s * (1.0 + more) * work.layers / work.pipeline_parallel * again
