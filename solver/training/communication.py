"""Seconds of what devices send one another. Ranks of one group are neighbours in the order tensor, context, expert or data,
pipeline, so the first ones share a scale-up domain."""

import numpy as np

from solver.training.constants import TrainingConstants
from solver.training.shape import VALUE_BYTES
from solver.training.work import Values, Work

TENSOR_COLLECTIVES = 8.0
"""Of one layer, forward and backward: before and after each of its two blocks, gather or scatter (arXiv:2205.05198, section 4.2)."""
EXPERT_EXCHANGES = 4.0
"""Dispatch and combine, forward and backward."""
RING_PASSES = 3.0
"""Keys and values go round forward; they and their gradients go round backward."""


def group_bytes_per_s(work: Work, c: TrainingConstants, spanned: Values) -> Values:
    """What a device sends in a group whose ranks spread over ``spanned`` neighbours: the link's rate within a domain, else
    the network's.
    """
    link = work.link_bytes_per_s * c.link_efficiency
    network = work.network_bytes_per_s * c.network_efficiency
    return np.where(spanned <= work.link_domain_devices, link, network)


def ring_s(size_bytes: Values, ranks: Values, bytes_per_s: Values) -> Values:
    """An all-gather or reduce-scatter of ``size_bytes`` over ``ranks``: (n − 1)/n of it passes every device.

    >>> ring_s(np.array([800.0]), np.array([8.0]), np.array([100.0]))
    array([7.])
    """
    return np.where(ranks > 1.0, size_bytes * (ranks - 1.0) / ranks / np.maximum(bytes_per_s, 1e-9), 0.0)


def tensor_s(work: Work, c: TrainingConstants) -> Values:
    """Sequence and tensor parallelism of a stage and a micro-batch, exposed part. Recomputing all, or a reference model, repeats the
    forward half.
    """
    size = VALUE_BYTES * work.tokens * work.hidden
    rate = group_bytes_per_s(work, c, work.tensor_parallel)
    one = ring_s(size, work.tensor_parallel, rate) + c.collective_latency_s * (work.tensor_parallel > 1.0)
    layers = work.layers / work.pipeline_parallel
    again = 1.0 + 0.5 * (work.recompute_full + work.reference_passes)
    return TENSOR_COLLECTIVES * layers * one * again * c.tensor_exposed_fraction


def context_s(work: Work, c: TrainingConstants, attention_s: Values) -> Values:
    """Keys and values round the ring of a stage; hidden behind attention as far as that lasts."""
    size = RING_PASSES * VALUE_BYTES * work.tokens * work.kv_values_per_token
    size = size / (work.tensor_parallel * work.pipeline_parallel) * (work.context_parallel - 1.0)
    size = size * (1.0 + work.reference_passes / RING_PASSES)
    rate = group_bytes_per_s(work, c, work.tensor_parallel * work.context_parallel)
    return exposed_s(size / np.maximum(rate, 1e-9), attention_s, c.context_exposed_fraction)


def expert_s(work: Work, c: TrainingConstants) -> Values:
    """Tokens to their experts and back, of a stage and a micro-batch. Between domains a token goes once to each it is needed in."""
    tokens = work.tokens / work.tensor_parallel
    size = VALUE_BYTES * tokens * work.expert_hidden
    domains = np.maximum(1.0, work.expert_parallel / work.link_domain_devices)
    inside = (
        work.top_k * (1.0 - 1.0 / work.expert_parallel) / np.maximum(work.link_bytes_per_s * c.link_efficiency, 1e-9)
    )
    between = np.minimum(work.top_k, domains) * (1.0 - 1.0 / domains)
    between = between / np.maximum(work.network_bytes_per_s * c.network_efficiency, 1e-9)
    layers = work.expert_layers / work.pipeline_parallel
    exchanges = EXPERT_EXCHANGES * (1.0 + 0.5 * work.reference_passes)
    return exchanges * layers * size * np.maximum(inside, between) * c.expert_exposed_fraction


def stage_s(work: Work, c: TrainingConstants) -> Values:
    """Activations from stage to stage and their gradients back, of a micro-batch, exposed part."""
    size = 2.0 * VALUE_BYTES * work.tokens * work.hidden / work.tensor_parallel * work.virtual_pipeline
    rate = group_bytes_per_s(work, c, work.devices)
    sent = size / np.maximum(rate, 1e-9) + 2.0 * c.collective_latency_s * work.virtual_pipeline
    sent = sent * (1.0 + 0.5 * work.reference_passes)
    return np.where(work.pipeline_parallel > 1.0, sent * c.stage_exposed_fraction, 0.0)


def sharded_s(work: Work, c: TrainingConstants, size_bytes: Values, ranks: Values, neighbours: Values) -> Values:
    """A ring over ranks in and between domains. Those that share one have its network between them: the two parts overlap."""
    inside = np.maximum(1.0, np.minimum(ranks, np.floor(work.link_domain_devices / neighbours)))
    link = np.maximum(work.link_bytes_per_s * c.link_efficiency, 1e-9)
    network = np.maximum(work.network_bytes_per_s * c.network_efficiency, 1e-9)
    within = np.where(inside > 1.0, ring_s(size_bytes, np.minimum(ranks, inside), link), 0.0)
    between = np.where(ranks > inside, size_bytes * (1.0 - inside / np.maximum(ranks, 1.0)) / (inside * network), 0.0)
    return np.maximum(within, between)


def dense_weights_per_stage(work: Work) -> Values:
    """Parameters beside routed experts that one tensor-parallel rank of a stage has, before sharding."""
    whole = work.linear_weights + work.embedding_weights + work.other_weights
    return whole / (work.tensor_parallel * work.pipeline_parallel)


def expert_weights_per_stage(work: Work) -> Values:
    """Parameters of the routed experts that one expert-parallel rank of a stage has, before sharding."""
    return work.expert_weights / (work.expert_parallel * work.pipeline_parallel)


def replicas(work: Work) -> Values:
    """Ranks that hold the same dense parameters."""
    return work.data_parallel * work.context_parallel


def expert_replicas(work: Work) -> Values:
    """Ranks that hold the same experts."""
    return np.maximum(1.0, work.data_parallel * work.context_parallel * work.tensor_parallel / work.expert_parallel)


def data_s(work: Work, c: TrainingConstants, micro_batch_s: Values) -> Values:
    """What a step exposes of data parallelism.

    States sharded (ZeRO-1): weights gathered once a step beside the first forward passes, gradients scattered beside the last
    backward ones, in pieces of which one stands alone: a layer, or with a pipeline the layers of one of its parts (Megatron
    Bridge, communication overlap). A pipeline begins every part with as many micro-batches as it has stages. Weights sharded
    too (ZeRO-3, FSDP): gathered forward and backward and gradients scattered, with every micro-batch and beside it; a
    reference model's once more. With adapters alone trained, gradients are theirs only.
    """
    weights = c.sent_weight_bytes * dense_weights_per_stage(work)
    experts = c.sent_weight_bytes * expert_weights_per_stage(work)
    share = work.trained_weights / np.maximum(
        work.linear_weights + work.expert_weights + work.embedding_weights + work.other_weights, 1.0
    )
    ranks, expert_ranks = replicas(work), expert_replicas(work)
    gathered = sharded_s(work, c, weights, ranks, work.tensor_parallel)
    gathered = gathered + sharded_s(work, c, experts, expert_ranks, work.expert_parallel)
    scattered = gathered * share * c.sent_gradient_bytes / c.sent_weight_bytes
    begun = np.where(work.pipeline_parallel > 1.0, np.minimum(work.micro_batches, work.pipeline_parallel), 1.0)
    alone = 1.0 / np.where(work.pipeline_parallel > 1.0, work.virtual_pipeline, np.maximum(work.layers, 1.0))
    forward_s = begun * micro_batch_s * FORWARD_FRACTION
    backward_s = begun * micro_batch_s - forward_s
    once = in_pieces_s(gathered * share, alone, forward_s, c) + in_pieces_s(scattered, alone, backward_s, c)
    sent = (2.0 + work.reference_passes) * gathered + scattered
    each = exposed_s(sent, micro_batch_s * FSDP_HIDEABLE_FRACTION, c.data_exposed_fraction)
    return np.where(work.sharded_weights > 0, work.micro_batches * each, once)


def in_pieces_s(sent_s: Values, alone: Values, beside_s: Values, c: TrainingConstants) -> Values:
    """What is exposed of a collective that is sent in pieces, of which the share ``alone`` has nothing beside it."""
    return alone * sent_s + exposed_s((1.0 - alone) * sent_s, beside_s, c.data_exposed_fraction)


FORWARD_FRACTION = 1.0 / 3.0
"""Of a micro-batch: its backward pass computes twice as much."""
FSDP_HIDEABLE_FRACTION = 0.9
"""Of a micro-batch, what gathering ahead can hide behind: the first layer's weights are waited for."""


def exposed_s(sent_s: Values, beside_s: Values, fraction: Values) -> Values:
    """What communication adds to the computation it runs beside: all beyond it, and ``fraction`` of what is hidden, since both
    share the memory and the multiprocessors.

    >>> exposed_s(np.array([3.0]), np.array([2.0]), np.array([0.5]))
    array([2.])
    """
    return np.maximum(0.0, sent_s - beside_s) + fraction * np.minimum(sent_s, beside_s)
