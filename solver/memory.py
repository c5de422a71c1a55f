"""Does it fit, and how many tokens of cache remain: the memory of one device of a deployment.

    device memory · memory fraction = weights + activations + reserve + key-value cache

The engine measures activations and reserve at start-up by running its largest step; ``EngineMemory`` holds what that
step allocates besides the widths of the model. Every pipeline stage is planned; the one with the least room for
tokens decides for all.
"""

import math
from dataclasses import dataclass

from solver.errors import DoesNotFitError, InvalidInputError
from solver.layout import Layout
from solver.llm_shape import FeedForwardGroup, LlmShape
from solver.memory_cache import RequestCache, kv_cache_bytes_per_token, request_cache
from solver.memory_weights import padded_vocabulary, stage_weight_bytes, weight_bytes, weight_format
from solver.precision import UNQUANTISED_BYTES, Precision
from solver.workload import EngineSettings

__all__ = [
    "EngineMemory",
    "MemoryPlan",
    "Stage",
    "activation_bytes",
    "kv_cache_bytes_per_token",
    "max_concurrent_requests",
    "memory_plan",
    "reserve_bytes",
    "stages",
    "weight_bytes",
]

FP32_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """What an engine takes on a device beyond weights and cache; catalog constants of the same names.

    driver_reserve_bytes: memory the driver shows but no process can have (the engine's fraction is of the rest).
    runtime_bytes: libraries, workspaces and buffers of the engine itself.
    collective_bytes: buffers of collective communication, where a replica has more than one device.
    graph_bytes_per_layer, graph_bytes_per_expert_layer: captured graphs, per layer with a dense or sparse block.
    hidden_copies: hidden-wide vectors alive per token while a block runs (input, residual, output).
    logits_copies: fp32 vocabulary-wide rows alive per sequence while sampling (logits, probabilities, noise).
    block_tokens: tokens a block of key-value cache holds.
    pooled_cache: layers of different kinds share one pool (see ``memory_cache.pooled_layers``).
    """

    driver_reserve_bytes: float
    runtime_bytes: float
    collective_bytes: float
    graph_bytes_per_layer: float
    graph_bytes_per_expert_layer: float
    hidden_copies: float
    logits_copies: float
    block_tokens: int = 16
    pooled_cache: bool = True


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive layers of one pipeline stage, and whether embedding or head live there."""

    layers: int
    embedding: bool
    head: bool


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory of one device in the stage that decides. Bytes; ``kv_cache_tokens`` as an engine reports it."""

    weights_bytes: float
    activations_bytes: float
    reserved_bytes: float
    kv_cache_bytes: float
    kv_cache_tokens: int
    cache: RequestCache
    """What one request takes on this device: see ``max_concurrent_requests``."""


def stages(layers: int, pipeline_parallel: int) -> tuple[Stage, ...]:
    """Distinct stages of a pipeline. What does not divide goes one layer each to the stages before the last.

    >>> [s.layers for s in stages(80, 3)], [s.layers for s in stages(81, 2)]
    ([27, 27, 26], [41, 40])
    """
    if not 1 <= pipeline_parallel <= max(layers, 1):
        raise InvalidInputError(f"{pipeline_parallel} pipeline stages for {layers} layers")
    share, left = divmod(layers, pipeline_parallel)
    counts = [share] * pipeline_parallel
    for i in range(left):  # from the last but one towards the front (vLLM's rule)
        counts[-2 - i] += 1
    last = pipeline_parallel - 1
    return tuple(Stage(n, i == 0, i == last) for i, n in enumerate(counts))


def block_activation_bytes(
    block: FeedForwardGroup, shape: LlmShape, tokens: int, layout: Layout, quantised_bytes: float
) -> float:
    """Peak of one feed-forward block over ``tokens``, beside the hidden vectors.

        dense    tokens · (matrices into the block + its activation) · width / TP · 2 bytes
        experts  tokens · top_k · (max(matrices in · width, hidden) + width) · 2 bytes, and the shared experts

    Where activations are quantised, the block's activation is held a second time at ``quantised_bytes``.
    """
    fan = (2 if block.gated else 1) + 1
    if not block.experts:
        width = block.intermediate / layout.tensor_parallel
        return tokens * width * (fan * UNQUANTISED_BYTES + quantised_bytes)
    cut = 1 if layout.expert_parallel > 1 else layout.tensor_parallel
    width = block.expert_intermediate / cut
    inner = block.expert_hidden or shape.hidden
    rows = tokens * block.top_k
    routed = rows * (max((fan - 1) * width, inner) + width) * UNQUANTISED_BYTES + rows * width * quantised_bytes
    shared = tokens * block.shared_intermediate / layout.tensor_parallel * fan * UNQUANTISED_BYTES
    return routed + shared


def activation_bytes(
    shape: LlmShape, precision: Precision, layout: Layout, settings: EngineSettings, memory: EngineMemory, *, head: bool
) -> float:
    """Largest moment of the engine's largest step: a feed-forward block over all tokens, or sampling.

    block     hidden_copies · tokens · hidden · 2 + block
    sampling  sequences · vocabulary · (2 + 4 · logits_copies), on the stage with the head
    """
    fmt = weight_format(precision.weights)
    quantised = 1.0 if fmt.quantised and fmt.compute[0] in ("fp8", "int8") else 0.0
    tokens = settings.max_batched_tokens
    blocks = [block_activation_bytes(f, shape, tokens, layout, quantised) for f in shape.feed_forward]
    forward = memory.hidden_copies * tokens * shape.hidden * UNQUANTISED_BYTES + max(blocks, default=0.0)
    if not head:
        return forward
    sampled = min(settings.max_sequences, tokens)
    row = padded_vocabulary(shape.vocabulary) * (UNQUANTISED_BYTES + FP32_BYTES * memory.logits_copies)
    return max(forward, sampled * row)


def reserve_bytes(shape: LlmShape, layout: Layout, memory: EngineMemory, layers_fraction: float = 1.0) -> float:
    """Engine and captured graphs: runtime, collectives where there are any, graphs per layer held."""
    sparse = min(sum(f.layers for f in shape.feed_forward if f.experts), shape.layers)
    graphs = sparse * memory.graph_bytes_per_expert_layer
    graphs += (shape.layers - sparse) * memory.graph_bytes_per_layer
    devices = layout.devices_per_replica if layout.expert_parallel == 1 else layout.devices
    return memory.runtime_bytes + (memory.collective_bytes if devices > 1 else 0.0) + graphs * layers_fraction


def memory_plan(
    shape: LlmShape,
    device_memory_bytes: float,
    precision: Precision,
    layout: Layout,
    settings: EngineSettings,
    memory: EngineMemory,
) -> MemoryPlan:
    """Plan the memory of one device.

    kv_cache_tokens is the engine's own reckoning: pool / bytes of one request of ``max_context_tokens`` · that
    context, so that windowed layers count as little as they hold.

    Raises DoesNotFitError when not even one request of ``max_context_tokens`` fits; InvalidInputError for figures
    outside their domain; UnsupportedError for an unknown format.
    """
    if not (device_memory_bytes > 0 and math.isfinite(device_memory_bytes)):
        raise InvalidInputError(f"device memory of {device_memory_bytes} bytes")
    if not 0 < settings.memory_fraction <= 1:
        raise InvalidInputError(f"memory fraction {settings.memory_fraction} is not in (0, 1]")
    budget = (device_memory_bytes - memory.driver_reserve_bytes) * settings.memory_fraction
    context = context_limit(shape, settings)
    plans = [
        _stage_plan(shape, budget, precision, layout, settings, memory, stage, context)
        for stage in sorted(set(stages(shape.layers, layout.pipeline_parallel)), key=lambda s: (s.layers, s.head))
    ]
    worst = min(plans, key=lambda p: p.kv_cache_bytes / max(p.cache.bytes_at(context), 1.0))
    one_request = worst.cache.admission_bytes(context, settings.max_batched_tokens)
    if worst.kv_cache_bytes < one_request:
        needed = budget - worst.kv_cache_bytes + one_request
        raise DoesNotFitError(needed, budget)
    return worst


def context_limit(shape: LlmShape, settings: EngineSettings) -> int:
    """Longest request the engine admits: its setting, at most the model's context."""
    if settings.max_context_tokens is None:
        return shape.max_context_tokens
    if settings.max_context_tokens < 1:
        raise InvalidInputError(f"context of {settings.max_context_tokens} tokens")
    return min(settings.max_context_tokens, shape.max_context_tokens)


def _stage_plan(
    shape: LlmShape,
    budget_bytes: float,
    precision: Precision,
    layout: Layout,
    settings: EngineSettings,
    memory: EngineMemory,
    stage: Stage,
    context: int,
) -> MemoryPlan:
    fraction = stage.layers / max(shape.layers, 1)
    weights = stage_weight_bytes(
        shape, precision.weights, layout, layers_fraction=fraction, embedding=stage.embedding, head=stage.head
    )
    activations = activation_bytes(shape, precision, layout, settings, memory, head=stage.head)
    reserved = reserve_bytes(shape, layout, memory, fraction)
    cache = request_cache(
        shape,
        precision.kv_cache,
        layout.tensor_parallel,
        layers_fraction=fraction,
        block_tokens=memory.block_tokens,
        pooled=memory.pooled_cache,
    )
    pool = budget_bytes - weights - activations - reserved
    one_request = cache.admission_bytes(context, settings.max_batched_tokens)
    tokens = int(pool / one_request * context) if one_request > 0 and pool > 0 else 0
    return MemoryPlan(weights, activations, reserved, pool, tokens, cache)


def max_concurrent_requests(plan: MemoryPlan, context_tokens: float) -> int:
    """Requests of ``context_tokens`` each that the cache holds at once (the engine's own limit aside)."""
    if context_tokens < 1:
        raise InvalidInputError(f"context of {context_tokens} tokens")
    one_request = plan.cache.bytes_at(math.ceil(context_tokens))
    return int(plan.kv_cache_bytes // one_request) if one_request > 0 else 0
