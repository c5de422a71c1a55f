"""Does it fit, and how many tokens of cache remain: the memory of one device of a deployment.

    device memory · memory fraction = weights + activations + reserve + key-value cache

The engine measures activations and reserve at start-up by running its largest step; ``EngineMemory`` holds what that
step allocates besides the widths of the model. Every pipeline stage is planned; the one with the least room for
tokens decides for all.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from solver.audio import AudioEncoder
from solver.errors import DoesNotFitError, FigureMissingError, InvalidInputError
from solver.layout import Layout
from solver.llm_shape import FeedForwardGroup, LlmShape
from solver.memory.kv_cache import ENDLESS_TOKENS, RequestCache, kv_cache_bytes_per_token, request_cache
from solver.memory.weights import (
    adapter_slot_bytes,
    experts_cut,
    padded_vocabulary,
    stage_weight_bytes,
    vision_weight_bytes,
    weight_bytes,
    weight_format,
)
from solver.precision import UNQUANTISED_BYTES, Precision
from solver.workload import EngineSettings

__all__ = [
    "EngineMemory",
    "MemoryPlan",
    "Stage",
    "activation_bytes",
    "engine_memory",
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
    graph_bytes_per_layer, graph_bytes_per_expert_layer: captured graphs of all sizes, per layer with a dense or sparse block.
    graph_bytes_per_recurrent_layer: what a layer that carries a state takes beside that.
    joined_graph_bytes_per_expert_layer: what a layer with a sparse block takes more where a replica has more than one device.
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
    graph_bytes_per_recurrent_layer: float
    joined_graph_bytes_per_expert_layer: float
    hidden_copies: float
    logits_copies: float
    block_tokens: int
    pooled_cache: bool


GRAPH_SIZE_BYTES = "graph_bytes_per_size_and_expert_layer"
JOINED_GRAPH_SIZE_BYTES = "joined_graph_bytes_per_size_and_expert_layer"
LARGE_STEP_TOKENS = 512
"""Up to which graphs of several devices take no more than those of one, by the caches of servers measured here."""


def engine_memory(subject: str, constants: Mapping[str, float], captured_sizes: Collection[int]) -> EngineMemory:
    """The constants named like the fields of EngineMemory, for an engine that captures steps of these sizes, in tokens; ``subject`` says
    whose they are, for the error.

    Raises FigureMissingError naming the first that is absent.
    """
    named = [f.name for f in fields(EngineMemory) if f.name != "joined_graph_bytes_per_expert_layer"]
    for name in (*named, GRAPH_SIZE_BYTES, JOINED_GRAPH_SIZE_BYTES):
        if name not in constants:
            raise FigureMissingError(subject, name)
    values = {name: constants[name] for name in named}
    values["graph_bytes_per_expert_layer"] += len(captured_sizes) * constants[GRAPH_SIZE_BYTES]
    large = sum(size > LARGE_STEP_TOKENS for size in captured_sizes)
    values["joined_graph_bytes_per_expert_layer"] = large * constants[JOINED_GRAPH_SIZE_BYTES]
    block, pooled = int(values.pop("block_tokens")), bool(values.pop("pooled_cache"))
    return EngineMemory(**values, block_tokens=block, pooled_cache=pooled)


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

    @property
    def most_states(self) -> int:
        """Requests of which each has a block of the pool for its recurrent state, however short it is; endless where none keeps one there.
        vLLM does not start with more seats (``max_num_seqs (512) exceeds available Mamba cache blocks (397)``)."""
        block = self.cache.state_block_bytes
        return int(max(self.kv_cache_bytes, 0.0) // block) if block else ENDLESS_TOKENS

    @property
    def used_bytes(self) -> float:
        """All that is no cache."""
        return self.weights_bytes + self.activations_bytes + self.reserved_bytes


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


def dense_activation_bytes(block: FeedForwardGroup, tokens: int, tensor_parallel: int, quantised_bytes: float) -> float:
    """Peak of a dense block, or of the shared experts of a sparse one, over ``tokens``, beside the hidden vectors.

        tokens · (matrices into the block + its activation) · width / TP · 2 bytes

    Where activations are quantised, the block's activation is held a second time at ``quantised_bytes``.
    """
    width = max(block.intermediate, block.shared_intermediate) / tensor_parallel
    return tokens * width * (block.matrices * UNQUANTISED_BYTES + quantised_bytes)


def expert_workspace_bytes(
    block: FeedForwardGroup, hidden: int, tokens: int, layout: Layout, quantised_bytes: float
) -> float:
    """Two buffers for the routed rows of the largest step, kept from then on.

        tokens · top_k · (max(matrices in · width, hidden) + max(width, hidden)) · 2 bytes

    width is cut by what tensor parallelism is beyond expert parallelism. 0 for a dense block.
    """
    if not block.experts:
        return 0.0
    width = block.expert_intermediate / experts_cut(layout.tensor_parallel, layout.expert_parallel)
    inner = block.expert_hidden or hidden
    values = max((block.matrices - 1) * width, inner) + max(width, inner)
    return tokens * block.top_k * (values * UNQUANTISED_BYTES + width * quantised_bytes)


def image_activation_bytes(shape: LlmShape, tensor_parallel: int) -> float:
    """Peak of encoding the largest image, which an engine tries at start, or a larger video or recording of the requests: a block over
    its patches beside their hidden vectors, and the tokens that it becomes. 0 for text alone.

        patches · (2·h + I·matrices/TP) · 2  +  tokens · hidden · projectors · 2
    """
    encoder, images = shape.encoder, shape.images
    if images is None or encoder is None:
        return 0.0
    block = 2.0 * encoder.hidden + encoder.intermediate * (3 if encoder.gated else 2) / tensor_parallel
    if isinstance(encoder, AudioEncoder):
        patches = float(max(encoder.most_patches, images.patches))
        return UNQUANTISED_BYTES * (patches * block + patches / encoder.pooled * shape.hidden)
    patches = float(max(encoder.most_patches, images.patches))
    tokens = encoder.tokens or patches / encoder.merge**2
    return UNQUANTISED_BYTES * (patches * block + tokens * shape.hidden * (1 + encoder.extra_projectors))


def step_activations(shape: LlmShape, layout: Layout, tokens: int, quantised_bytes: float) -> tuple[float, float]:
    """Bytes of the largest step that depend on the model alone: what stays (workspace), and the largest block."""
    workspaces = [expert_workspace_bytes(f, shape.hidden, tokens, layout, quantised_bytes) for f in shape.feed_forward]
    blocks = [dense_activation_bytes(f, tokens, layout.tensor_parallel, quantised_bytes) for f in shape.feed_forward]
    blocks.append(image_activation_bytes(shape, layout.tensor_parallel))
    return max(workspaces, default=0.0), max(blocks, default=0.0)


def activation_bytes(
    shape: LlmShape, precision: Precision, layout: Layout, settings: EngineSettings, memory: EngineMemory, *, head: bool
) -> float:
    """Workspace of the experts, and the largest moment beside it: a block over all tokens, or sampling.

    block     hidden_copies · tokens · hidden · 2 + block
    sampling  sequences · vocabulary · (2 + 4 · logits_copies), on the stage with the head
    """
    quantised = weight_format(precision.weights).quantised_activation_bytes
    tokens = settings.max_batched_tokens
    workspace, block = step_activations(shape, layout, tokens, quantised)
    forward = memory.hidden_copies * tokens * shape.hidden * UNQUANTISED_BYTES + block
    if not head:
        return workspace + forward
    sampled = min(settings.max_sequences, tokens)
    row = padded_vocabulary(shape.logits) * (UNQUANTISED_BYTES + FP32_BYTES * memory.logits_copies)
    return workspace + max(forward, sampled * row)


def reserve_bytes(shape: LlmShape, layout: Layout, memory: EngineMemory, layers_fraction: float = 1.0) -> float:
    """Engine and captured graphs: runtime, collectives where there are any, graphs per layer held, of its block and of its state."""
    sparse = min(sum(f.layers for f in shape.feed_forward if f.experts), shape.layers)
    graphs = sparse * memory.graph_bytes_per_expert_layer
    graphs += (shape.layers - sparse) * memory.graph_bytes_per_layer
    graphs += shape.layers_of("linear") * memory.graph_bytes_per_recurrent_layer
    devices = layout.devices_per_replica if layout.expert_parallel == 1 else layout.devices
    graphs += sparse * memory.joined_graph_bytes_per_expert_layer if devices > 1 else 0.0
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
    # Where nothing is cached every stage has the same cache, none: the one that is fullest decides.
    worst = min(plans, key=lambda p: (p.kv_cache_bytes / max(p.cache.bytes_at(context), 1.0), -p.used_bytes))
    one_request = worst.cache.admission_bytes(context, settings.max_batched_tokens)
    if worst.kv_cache_bytes < one_request:
        needed = budget - worst.kv_cache_bytes + one_request
        raise DoesNotFitError(needed, budget)
    return worst


def context_limit(shape: LlmShape, settings: EngineSettings) -> int:
    """Longest request the engine admits: its setting, which may be beyond what the model was published with where engines scale
    positions (``--max-model-len`` with YaRN); without one the model's context. Encoders have learnt positions and take no more."""
    if settings.max_context_tokens is None:
        return shape.max_context_tokens
    if settings.max_context_tokens < 1:
        raise InvalidInputError(f"context of {settings.max_context_tokens} tokens")
    return (
        min(settings.max_context_tokens, shape.max_context_tokens)
        if shape.bidirectional
        else settings.max_context_tokens
    )


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
    weights += fraction * adapter_slot_bytes(shape, layout.tensor_parallel)
    weights += stage.embedding * vision_weight_bytes(shape, layout.tensor_parallel)
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
    if cache.is_none:
        return MemoryPlan(weights, activations, reserved, min(pool, 0.0), ENDLESS_TOKENS, cache)
    one_request = cache.admission_bytes(context, settings.max_batched_tokens)
    tokens = int(pool / one_request * context) if one_request > 0 and pool > 0 else 0
    return MemoryPlan(weights, activations, reserved, pool, tokens, cache)


def max_concurrent_requests(plan: MemoryPlan, context_tokens: float) -> int:
    """Requests of ``context_tokens`` each that the cache holds at once (the engine's own limit aside); endless where they hold none."""
    if context_tokens < 1:
        raise InvalidInputError(f"context of {context_tokens} tokens")
    if plan.cache.is_none:
        return ENDLESS_TOKENS
    one_request = plan.cache.bytes_at(math.ceil(context_tokens))
    return int(plan.kv_cache_bytes // one_request) if one_request > 0 else 0
