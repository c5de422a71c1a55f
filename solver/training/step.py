"""The time of a training step as a sum of terms."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from solver.training import communication, compute
from solver.training.constants import TrainingConstants
from solver.training.work import Values, Work, added

SHARPNESS = 4.0
"""Exponent of the soft maximum of computing and launching: they overlap, except where both take about as long."""


def soft_maximum(first: Values, second: Values) -> Values:
    """
    >>> soft_maximum(np.array([1.0]), np.array([0.0]))
    array([1.])
    """
    larger = np.maximum(np.maximum(first, second), 1e-300)
    return larger * ((first / larger) ** SHARPNESS + (second / larger) ** SHARPNESS) ** (1.0 / SHARPNESS)


def step_terms(work: Work, c: TrainingConstants) -> Mapping[str, Values]:
    """Seconds of each term of one step; they sum to the step.

    Every micro-batch passes every stage; a pipeline of p stages, each in v interleaved parts, idles for (p − 1)/v of a
    micro-batch besides (arXiv:2104.04473, section 2.2). Stragglers lengthen all of it by a share for each doubling of devices.
    """
    backward = 1.0 + work.trained_fraction
    linear = compute.linear_forward_s(work, c)
    experts = compute.expert_forward_s(work, c)
    attention = compute.attention_forward_s(work, c)
    element = compute.element_s(work, c)
    recurrent = compute.recurrent_s(work, c)
    again = work.recompute_full + work.recompute_selective * c.selective_recompute_fraction
    recompute = again * (linear + experts + attention + element / 3.0 + recurrent / 3.0)
    micro = {
        "dense_products": linear * (1.0 + backward),
        "routed_experts": experts * (1.0 + backward),
        "expert_routing": compute.expert_routing_s(work, c),
        "attention": attention * (1.0 + c.attention_backward_ratio),
        "output_head": compute.head_s(work, c) / work.pipeline_parallel,
        "element_wise": element,
        "state_space": recurrent,
        "dequantisation": compute.dequantise_s(work, c),
        "recomputation": recompute,
    }
    micro["reference_model"] = work.reference_passes * forward_s(micro, work, c)
    computed = added(micro.values())
    micro["launches"] = soft_maximum(computed, compute.launch_floor_s(work, c)) - computed
    a_layer = (computed - micro["output_head"]) / np.maximum(work.layers / work.pipeline_parallel, 1.0)
    micro["unbalanced_stages"] = compute.unbalanced_s(
        micro["output_head"] * work.pipeline_parallel, a_layer, work.pipeline_parallel
    )
    attended = attention * (1.0 + c.attention_backward_ratio)
    micro["tensor_parallel"] = communication.tensor_s(work, c)
    micro["context_parallel"] = communication.context_s(work, c, attended)
    micro["expert_parallel"] = communication.expert_s(work, c)
    micro["stage_to_stage"] = communication.stage_s(work, c)
    micro_batch = added(micro.values())
    terms = {name: seconds * work.micro_batches for name, seconds in micro.items()}
    terms["pipeline_bubble"] = micro_batch * (work.pipeline_parallel - 1.0) / work.virtual_pipeline
    terms["data_parallel"] = communication.data_s(work, c, micro_batch)
    terms["optimizer"] = optimizer_s(work, c)
    terms["fixed"] = c.step_overhead_s + 0.0 * micro_batch
    whole = added(terms.values())
    terms["stragglers"] = whole * c.straggler_fraction * np.log2(np.maximum(work.devices, 1.0))
    return terms


def forward_s(micro: Mapping[str, Values], work: Work, c: TrainingConstants) -> Values:
    """A forward pass without gradients, of the terms of one with them: products once instead of once forward and once or
    twice backward; of what passes over memory a third, of routing and dequantisation a half.
    """
    products = micro["dense_products"] + micro["routed_experts"] + micro["output_head"]
    attention = micro["attention"] / (1.0 + c.attention_backward_ratio)
    passes = (micro["element_wise"] + micro["state_space"]) / 3.0
    halves = (micro["expert_routing"] + micro["dequantisation"]) / 2.0
    return products / (2.0 + work.trained_fraction) + attention + passes + halves


def reference_pass_s(work: Work, c: TrainingConstants) -> Values:
    """What the reference model adds to a step that computes it: as long, it takes for as many tokens on its own."""
    beside, alone = (replace(work, reference_passes=np.full(1, passes)) for passes in (1.0, 0.0))
    return step_s(beside, c) - step_s(alone, c)


def optimizer_s(work: Work, c: TrainingConstants) -> Values:
    """Read gradients, read and write weights and states, at the memory's rate, of the shard that this device updates."""
    whole = work.linear_weights + work.expert_weights + work.embedding_weights + work.other_weights
    share = work.trained_weights / np.maximum(whole, 1.0)
    dense = communication.dense_weights_per_stage(work) / communication.replicas(work)
    experts = communication.expert_weights_per_stage(work) / communication.expert_replicas(work)
    per_weight = c.gradient_bytes + 2.0 * (c.optimizer_bytes + c.weight_bytes)
    return (dense + experts) * share * per_weight / work.memory_bytes_per_s


def step_s(work: Work, c: TrainingConstants) -> Values:
    """The sum of the terms."""
    return added(step_terms(work, c).values())


def tokens_per_s_per_device(work: Work, c: TrainingConstants) -> Values:
    return work.tokens_per_step / step_s(work, c) / work.devices
