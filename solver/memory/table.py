"""Memory of many deployments of one model at once.

``MemoryTable`` holds, for each (precision, layout), what depends on the model alone; engine constants and device
memory enter as arrays. Results equal ``memory.memory_plan`` entry by entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.fits import EngineMemory, Stage, context_limit, stages, step_activations
from solver.memory.kv_cache import ENDLESS_TOKENS, RequestCache, request_cache
from solver.memory.weights import (
    LayerWeights,
    StoredBytes,
    TableWeights,
    adapter_slot_bytes,
    device_weight_bytes,
    layer_weights,
    padded_vocabulary,
    stored_bytes,
    table_weights,
    vision_weight_bytes,
    weight_format,
)
from solver.precision import UNQUANTISED_BYTES, Precision
from solver.workload import EngineSettings

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MemoryPlans:
    """One entry per candidate: bytes of a device in the deciding stage. ``fits`` says whether a request fits at all."""

    weights_bytes: Floats
    activations_bytes: Floats
    reserved_bytes: Floats
    kv_cache_bytes: Floats
    kv_cache_tokens: Integers
    fits: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Rows are deployments, the second axis their distinct stages (the last one repeated where there are fewer)."""

    settings: EngineSettings
    context_tokens: int
    weights_bytes: Floats
    workspace_bytes: Floats
    """Buffers of the routed experts, kept beside everything else."""
    block_bytes: Floats
    """Peak of the largest dense block in the largest step."""
    hidden_bytes: float
    """One hidden-wide vector for every token of the largest step."""
    logits_values: Floats
    """Values of the sampled rows; 0 on stages without the head."""
    dense_layers: Floats
    expert_layers: Floats
    recurrent_layers: Floats
    collective: Floats
    """1 where a replica has several devices."""
    admission_bytes: Floats
    caches: tuple[tuple[RequestCache, ...], ...]

    def request_bytes(self, context_tokens: int) -> Floats:
        """Bytes of one request at this context, for every deployment and stage."""
        at_context = {c: c.bytes_at(context_tokens) for row in self.caches for c in row}
        return np.array([[at_context[c] for c in row] for row in self.caches])

    def plans(
        self,
        entries: Integers,
        device_memory_bytes: Floats,
        memories: Sequence[EngineMemory],
        memory_index: Integers,
    ) -> MemoryPlans:
        """Plan candidate i: deployment ``entries[i]`` on a device with ``device_memory_bytes[i]``, whose engine
        constants are ``memories[memory_index[i]]``."""
        reserve, hidden, logits = self._engine(memories)
        activations = self.workspace_bytes[entries] + np.maximum(
            hidden[memory_index, None] + self.block_bytes[entries],
            self.logits_values[entries] * logits[memory_index, None],
        )
        driver = np.array([m.driver_reserve_bytes for m in memories])[memory_index]
        budget = (device_memory_bytes - driver) * self.settings.memory_fraction
        reserved = reserve[memory_index, entries]
        weights = self.weights_bytes[entries]
        pool = budget[:, None] - weights - activations - reserved
        requests = self.request_bytes(self.context_tokens)[entries]
        stage = np.argmin(pool / np.maximum(requests, 1.0), axis=1)
        rows = np.arange(len(entries))
        pool, admission = pool[rows, stage], self.admission_bytes[entries][rows, stage]
        tokens = np.where(admission > 0, np.maximum(pool, 0.0) / np.maximum(admission, 1e-9), 0.0)
        none = all(cache.is_none for row in self.caches for cache in row)
        cached = np.minimum(pool, 0.0) if none else pool
        return MemoryPlans(
            weights[rows, stage],
            activations[rows, stage],
            reserved[rows, stage],
            cached,
            np.full(len(entries), ENDLESS_TOKENS) if none else (tokens * self.context_tokens).astype(np.int64),
            pool >= admission,
        )

    def _engine(self, memories: Sequence[EngineMemory]) -> tuple[Floats, Floats, Floats]:
        """Reserve by (constants, deployment, stage), hidden bytes and bytes a logit by constants."""
        runtime = np.array([m.runtime_bytes for m in memories])[:, None, None]
        collective = np.array([m.collective_bytes for m in memories])[:, None, None] * self.collective[:, None]
        dense = np.array([m.graph_bytes_per_layer for m in memories])[:, None, None] * self.dense_layers
        sparse = np.array([m.graph_bytes_per_expert_layer for m in memories])[:, None, None] * self.expert_layers
        joined = np.array([m.joined_graph_bytes_per_expert_layer for m in memories])[:, None, None] * self.expert_layers
        recurrent = (
            np.array([m.graph_bytes_per_recurrent_layer for m in memories])[:, None, None] * self.recurrent_layers
        )
        hidden = np.array([m.hidden_copies for m in memories]) * self.hidden_bytes
        logits = np.array([UNQUANTISED_BYTES + 4.0 * m.logits_copies for m in memories])
        return runtime + collective + dense + sparse + joined * self.collective[:, None] + recurrent, hidden, logits


def memory_table(
    shape: LlmShape,
    deployments: Sequence[tuple[Precision, Layout]],
    settings: EngineSettings,
    *,
    block_tokens: int,
    pooled_cache: bool,
) -> MemoryTable:
    """Prepare the table once for a model and an engine: its settings and how it keeps its cache.

    ``block_tokens`` and ``pooled_cache`` are those of the EngineMemory the table will be asked with.
    """
    context, tokens = context_limit(shape, settings), settings.max_batched_tokens
    build = _Builder(shape, tokens, block_tokens, pooled_cache)
    layouts = [layout for _, layout in deployments]
    by_row = [build.stages(layout) for layout in layouts]
    caches = [
        tuple(build.cache(precision.kv_cache, layout.tensor_parallel, s.layers) for s in row)
        for (precision, layout), row in zip(deployments, by_row, strict=True)
    ]
    admission = {c: c.admission_bytes(context, tokens) for row in caches for c in row}
    activations = np.array([build.activations(precision, layout) for precision, layout in deployments])
    sampled = min(settings.max_sequences, tokens) * padded_vocabulary(shape.logits)
    sparse = min(sum(f.layers for f in shape.feed_forward if f.experts), shape.layers)
    fractions = np.array([[s.layers / max(shape.layers, 1) for s in row] for row in by_row])
    devices = [lay.devices_per_replica if lay.expert_parallel == 1 else lay.devices for lay in layouts]
    return MemoryTable(
        settings=settings,
        context_tokens=context,
        weights_bytes=np.array(
            [
                [build.weights(precision.weights, layout, s) for s in row]
                for (precision, layout), row in zip(deployments, by_row, strict=True)
            ]
        ),
        workspace_bytes=activations[:, :1],
        block_bytes=activations[:, 1:],
        hidden_bytes=tokens * shape.hidden * UNQUANTISED_BYTES,
        logits_values=np.array([[float(sampled) * s.head for s in row] for row in by_row]),
        dense_layers=fractions * (shape.layers - sparse),
        expert_layers=fractions * sparse,
        recurrent_layers=fractions * shape.layers_of("linear"),
        collective=np.array([float(n > 1) for n in devices]),
        admission_bytes=np.array([[admission[c] for c in row] for row in caches]),
        caches=tuple(caches),
    )


class _Builder:
    """Parts of the table, each computed once: deployments repeat layouts, formats and stages."""

    def __init__(self, shape: LlmShape, tokens: int, block_tokens: int, pooled_cache: bool) -> None:
        self._shape, self._tokens, self._block_tokens, self._pooled = shape, tokens, block_tokens, pooled_cache
        self._layers = max(shape.layers, 1)
        self._cut: dict[tuple[int, int], tuple[LayerWeights, TableWeights]] = {}
        self._stored: dict[str, StoredBytes] = {}
        self._caches: dict[tuple[str, int, int], RequestCache] = {}
        self._activations: dict[tuple[float, int, int], tuple[float, float]] = {}
        self._stages: dict[int, tuple[Stage, Stage, Stage]] = {}

    def stages(self, layout: Layout) -> tuple[Stage, Stage, Stage]:
        depth = layout.pipeline_parallel
        if depth not in self._stages:
            self._stages[depth] = _stage_triple(self._shape, depth)
        return self._stages[depth]

    def weights(self, weights: str, layout: Layout, stage: Stage) -> float:
        key = (layout.tensor_parallel, layout.expert_parallel)
        if key not in self._cut:
            self._cut[key] = layer_weights(self._shape, *key), table_weights(self._shape, layout.tensor_parallel)
        if weights not in self._stored:
            self._stored[weights] = stored_bytes(self._shape, weights)
        fraction = stage.layers / self._layers
        own = fraction * adapter_slot_bytes(self._shape, layout.tensor_parallel)
        own += stage.embedding * vision_weight_bytes(self._shape, layout.tensor_parallel)
        return own + device_weight_bytes(
            *self._cut[key],
            self._stored[weights],
            layers_fraction=fraction,
            embedding=stage.embedding,
            head=stage.head,
        )

    def cache(self, kv_cache: str, tensor_parallel: int, layers: int) -> RequestCache:
        key = (kv_cache, tensor_parallel, layers)
        if key not in self._caches:
            self._caches[key] = request_cache(
                self._shape,
                kv_cache,
                tensor_parallel,
                layers_fraction=layers / self._layers,
                block_tokens=self._block_tokens,
                pooled=self._pooled,
            )
        return self._caches[key]

    def activations(self, precision: Precision, layout: Layout) -> tuple[float, float]:
        quantised = weight_format(precision.weights).quantised_activation_bytes
        key = (quantised, layout.tensor_parallel, layout.expert_parallel)
        if key not in self._activations:
            self._activations[key] = step_activations(self._shape, layout, self._tokens, quantised)
        return self._activations[key]


def _stage_triple(shape: LlmShape, pipeline_parallel: int) -> tuple[Stage, Stage, Stage]:
    """First, largest and last stage: among them is the one that decides."""
    every = stages(shape.layers, pipeline_parallel)
    inner = max(every[1:-1], key=lambda s: s.layers, default=every[-1])
    return every[0], inner, every[-1]
