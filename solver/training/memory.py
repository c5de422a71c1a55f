"""Bytes of a training step on the fullest device, by part."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from solver.training import communication
from solver.training.constants import TrainingConstants
from solver.training.shape import VALUE_BYTES
from solver.training.work import Values, Work, added

Verdict = Literal["fits", "tight", "does_not_fit"]
FITS_BELOW, REFUSED_ABOVE = 0.90, 1.10
"""Of the device's memory: published peaks scatter around the predicted ones by about a tenth."""
RESIDENT_LAYERS = 2.0
"""Gathered layers of a sharded model that are whole at one time: the one computed with and the one fetched ahead."""


def weights_bytes(work: Work, c: TrainingConstants) -> Values:
    """Weights as products read them: sharded over replicas with ZeRO-3, 4-bit in layers under QLoRA. A reference
    model that is not the trained one without its adapters is held beside it, frozen.
    """
    frozen = work.quantised_fraction
    kept = np.where(work.trained_fraction > 0, c.weight_bytes, c.frozen_weight_bytes)
    per_weight = kept * (1.0 - frozen) + c.quantised_weight_bytes * frozen
    split = work.tensor_parallel * work.pipeline_parallel
    beside = work.embedding_weights + work.other_weights
    beside = beside * np.where(work.trained_fraction > 0, c.weight_bytes, VALUE_BYTES)
    dense = (work.linear_weights * per_weight + beside) / split
    experts = communication.expert_weights_per_stage(work) * per_weight
    adapters = (1.0 - work.trained_fraction) * work.trained_weights * c.weight_bytes / split
    shards, expert_shards = _shards(work, work.sharded_weights)
    layers = np.maximum(work.layers / work.pipeline_parallel, 1.0)
    whole = RESIDENT_LAYERS / layers * (work.linear_weights / split + communication.expert_weights_per_stage(work))
    gathered = np.where((work.sharded_weights > 0) & (shards > 1.0), whole * VALUE_BYTES, 0.0)
    reference = c.frozen_weight_bytes * work.reference_copies
    held = reference * (communication.dense_weights_per_stage(work) / shards)
    held = held + reference * (communication.expert_weights_per_stage(work) / expert_shards)
    return dense / shards + experts / expert_shards + adapters + gathered + held


def gradients_bytes(work: Work, c: TrainingConstants) -> Values:
    """One for each trained weight; sharded with ZeRO-3 alone."""
    return _trained_bytes(work, c.gradient_bytes, work.sharded_weights)


def optimizer_bytes(work: Work, c: TrainingConstants) -> Values:
    """Master weights and moments of each trained weight, sharded over replicas (ZeRO-1 and up)."""
    return _trained_bytes(work, c.optimizer_bytes, np.ones_like(work.sharded_weights))


def activations_bytes(work: Work, c: TrainingConstants) -> Values:
    """What the forward pass keeps for the backward one, of all micro-batches that the first stage has under way. A recomputed layer
    keeps its input, and everything while it is at work.
    """
    everything, inputs, at_work = _activations(work, c)
    again = work.recompute_full
    return again * inputs + (1.0 - again) * everything + np.where(again > 0, at_work, 0.0)


def _activations(work: Work, c: TrainingConstants) -> tuple[Values, Values, Values]:
    """Bytes where no layer is recomputed, of inputs alone where all are, and of the layers at work.

    A pipeline of p stages keeps p micro-batches, in v interleaved parts (p·v + p − 1)/v (arXiv:2205.05198, section 4.2.3), never more
    than a step has. Inputs of products are kept as the products read them.
    """
    p, v = work.pipeline_parallel, work.virtual_pipeline
    under_way = np.where(p > 1.0, np.minimum(work.micro_batches, p + (p - 1.0) * (v > 1.0) / v), 1.0)
    adapters = np.where(work.trained_fraction > 0, 1.0, c.adapter_activation_fraction)
    narrow = work.product_inputs_per_token * (VALUE_BYTES - c.saved_input_bytes)
    per_token = (work.saved_values_per_token * VALUE_BYTES - narrow) * c.activation_factor * adapters
    part = np.where(work.recompute_selective > 0, c.selective_kept_fraction, 1.0)
    tokens = work.tokens / work.tensor_parallel
    held = tokens * under_way / p
    at_work = tokens * (RESIDENT_LAYERS * per_token / np.maximum(work.layers, 1.0))
    return held * part * per_token, held * work.saved_inputs_per_token * VALUE_BYTES, at_work


def logits_bytes(work: Work, c: TrainingConstants) -> Values:
    """The head's output, its copy at 32 bits and its gradient, on the stage that has it; a reference model's output meets
    them, since its forward pass follows that of the trained model.
    """
    each = c.logit_bytes + VALUE_BYTES * work.reference_passes
    return work.tokens * work.vocabulary / work.tensor_parallel * each


def micro_batches_held(work: Work) -> Values:
    """By the first stage at a time, interleaving left out."""
    return np.maximum(np.minimum(work.micro_batches, work.pipeline_parallel), 1.0)


def memory_parts(work: Work, c: TrainingConstants) -> Mapping[str, Values]:
    """By part. The last stage holds logits but few micro-batches under way, the first the other way round: the larger counts."""
    activations, logits = activations_bytes(work, c), logits_bytes(work, c)
    single = activations / micro_batches_held(work)
    last = np.where(work.pipeline_parallel > 1.0, np.maximum(logits + single - activations, 0.0), logits)
    parts = {
        "weights": weights_bytes(work, c),
        "gradients": gradients_bytes(work, c),
        "optimizer": optimizer_bytes(work, c),
        "activations": activations,
        "logits": last,
    }
    counted = added(parts.values())
    return parts | {"reserved": c.reserved_bytes + c.fragmentation_fraction * counted}


def peak_bytes(work: Work, c: TrainingConstants) -> Values:
    return added(memory_parts(work, c).values())


def least_recompute(work: Work, c: TrainingConstants, by_layer: bool) -> Values:
    """The share of a stage's layers that must be recomputed for the rest to fit, in whole layers; all or none unless
    ``by_layer``. Activations are linear in it, but for the layers at work.
    """
    states = weights_bytes(work, c) + gradients_bytes(work, c) + optimizer_bytes(work, c)
    room = (work.memory_bytes - c.reserved_bytes) / (1.0 + c.fragmentation_fraction) - states
    logits = logits_bytes(work, c)
    first = np.minimum(room, micro_batches_held(work) * (room - logits))
    allowed = np.where(work.pipeline_parallel > 1.0, first, room - logits)
    none, inputs, at_work = _activations(work, c)
    some, every = none + at_work, inputs + at_work
    layers = np.maximum(np.round(work.layers / work.pipeline_parallel), 1.0) if by_layer else 1.0
    share = np.clip((some - allowed) / np.maximum(some - every, 1.0), 0.0, 1.0)
    share = np.maximum(np.ceil(share * layers - 1e-9), 1.0) / layers
    return np.where((none <= allowed) | (every >= none), 0.0, share)


def verdict(needed_bytes: float, available_bytes: float) -> Verdict:
    """
    >>> [verdict(part, 100.0) for part in (80.0, 100.0, 120.0)]
    ['fits', 'tight', 'does_not_fit']
    """
    if needed_bytes < FITS_BELOW * available_bytes:
        return "fits"
    return "tight" if needed_bytes <= REFUSED_ABOVE * available_bytes else "does_not_fit"


def _shards(work: Work, sharded: Values) -> tuple[Values, Values]:
    dense = np.where(sharded > 0, communication.replicas(work), 1.0)
    return dense, np.where(sharded > 0, communication.expert_replicas(work), 1.0)


def _trained_bytes(work: Work, bytes_per_weight: Values, sharded: Values) -> Values:
    whole = work.linear_weights + work.expert_weights + work.embedding_weights + work.other_weights
    share = work.trained_weights / np.maximum(whole, 1.0)
    dense, experts = communication.dense_weights_per_stage(work), communication.expert_weights_per_stage(work)
    shards, expert_shards = _shards(work, sharded)
    return share * bytes_per_weight * (dense / shards + experts / expert_shards)
