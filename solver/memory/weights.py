"""Bytes of weights on one device: by number format, what stays unquantised, and how parallelism cuts them."""

from dataclasses import dataclass

from solver.adapted_products import adapter_values
from solver.errors import UnsupportedError
from solver.layout import Layout
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.precision import UNQUANTISED_BYTES, WEIGHT_FORMATS, WeightFormat

VOCABULARY_PADDING = 64
"""Rows of embedding and head are padded to a multiple of this before they are cut (vLLM's definition)."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Bytes of one parameter, by where it sits."""

    experts: float
    matrices: float
    embedding: float
    small: float
    """Norms, biases, routers, convolutions, indexers."""


def weight_format(name: str) -> WeightFormat:
    """Raises UnsupportedError for a name that is not in WEIGHT_FORMATS."""
    if name not in WEIGHT_FORMATS:
        raise UnsupportedError("weights_unknown", f"{name!r} is no weight format: {', '.join(WEIGHT_FORMATS)}")
    return WEIGHT_FORMATS[name]


def stored_bytes(shape: LlmShape, weights: str) -> StoredBytes:
    """What one parameter of each kind takes in this format.

    A quantised checkpoint keeps embedding, head and small tensors in 16 bits. A GGUF file's average covers all of
    them. Where the publisher quantised only the experts, that very format keeps the rest as published.
    """
    layout = weight_format(weights)
    bytes_each = layout.bytes_per_weight
    if not layout.quantised or layout.whole_file:
        return StoredBytes(bytes_each, bytes_each, bytes_each, bytes_each)
    matrices = bytes_each
    if weights == shape.native_weights and shape.native_beside_experts is not None:
        matrices = weight_format(shape.native_beside_experts).bytes_per_weight
    return StoredBytes(bytes_each, matrices, UNQUANTISED_BYTES, UNQUANTISED_BYTES)


def padded_vocabulary(vocabulary: int) -> int:
    """
    >>> padded_vocabulary(128256), padded_vocabulary(50257)
    (128256, 50304)
    """
    return -(-vocabulary // VOCABULARY_PADDING) * VOCABULARY_PADDING


def routed_weights(group: FeedForwardGroup) -> float:
    """Parameters of one layer's routed experts, from the difference between all of them and the active ones.

    all − active = (experts − top_k) · one expert
    """
    if not group.experts:
        return 0.0
    if group.experts == group.top_k:
        return 0.0  # every expert is always active: it is dense for all that matters here
    return group.experts * (group.weights - group.active_weights) / (group.experts - group.top_k)


def replicated_weights(group: AttentionGroup, hidden: int, tensor_parallel: int) -> float:
    """Parameters of one layer that a device holds beyond its 1/tensor_parallel share.

    Key and value projections are copied once devices outnumber key-value heads; the down-projections to a latent
    (MLA) are whole on every device.
    """
    whole = 1.0 - 1.0 / tensor_parallel
    if group.kind == "mla":
        return hidden * (group.q_lora_rank + group.kv_lora_rank + group.qk_rope_head_dim) * whole
    if group.kind not in ("full", "sliding", "chunked"):
        return 0.0
    values = 0 if group.kv_values_per_token else (group.v_head_dim or group.head_dim)  # one vector is key and value
    key_value = hidden * group.kv_heads * (group.head_dim + values)
    copied = 1.0 / min(tensor_parallel, max(group.kv_heads, 1)) - 1.0 / tensor_parallel
    return key_value * copied + hidden * group.q_lora_rank * whole


def experts_cut(tensor_parallel: int, expert_parallel: int) -> float:
    """Into how many parts each expert is cut: tensor parallelism beyond expert parallelism.

    >>> experts_cut(4, 1), experts_cut(4, 2), experts_cut(4, 8)
    (4.0, 2.0, 1.0)
    """
    return max(1.0, tensor_parallel / expert_parallel)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Parameters on one device, summed over all layers of the model."""

    experts: float
    matrices: float
    small: float


def layer_weights(shape: LlmShape, tensor_parallel: int, expert_parallel: int) -> LayerWeights:
    """All layers' parameters on one device of the layout.

    Experts are spread whole over ``expert_parallel`` devices (the fullest decides), and cut by what tensor parallelism is
    beyond that; other matrices are cut by ``tensor_parallel``; small tensors are whole everywhere.
    """
    routed = kept = 0.0
    for block in shape.feed_forward:
        experts = block.layers * routed_weights(block)
        routed += experts
        if block.experts and expert_parallel > 1:
            cut = experts_cut(tensor_parallel, expert_parallel)
            kept += experts * -(-block.experts // expert_parallel) / block.experts / cut
        else:
            kept += experts / tensor_parallel
    small = shape.unquantised_weights
    everything = shape.total_weights - shape.embedding_weights
    replicated = sum(a.layers * replicated_weights(a, shape.hidden, tensor_parallel) for a in shape.attention)
    matrices = max(everything - routed - small, 0.0) / tensor_parallel + replicated
    return LayerWeights(kept, matrices, small)


@dataclass(frozen=True, slots=True)
class TableWeights:
    """Parameters of one vocabulary table on one device, and bytes of rotary angles."""

    vocabulary: float
    rotary_bytes: float
    tied: bool


def table_weights(shape: LlmShape, tensor_parallel: int) -> TableWeights:
    """The padded vocabulary is cut by tensor parallelism; every stage keeps the rotary angles."""
    rows = padded_vocabulary(shape.vocabulary) * shape.hidden / tensor_parallel
    return TableWeights(rows, rotary_table_bytes(shape), shape.tied_embeddings)


def device_weight_bytes(
    layers: LayerWeights,
    tables: TableWeights,
    stored: StoredBytes,
    *,
    layers_fraction: float,
    embedding: bool,
    head: bool,
) -> float:
    """Bytes on one device that holds ``layers_fraction`` of the layers' parameters, and the tables of its stage.

    A tied embedding that serves as head on another stage is stored there again.
    """
    in_layers = layers.experts * stored.experts + layers.matrices * stored.matrices + layers.small * stored.small
    count = 1 if embedding and head and tables.tied else int(embedding) + int(head)
    return in_layers * layers_fraction + count * tables.vocabulary * stored.embedding + tables.rotary_bytes


def stage_weight_bytes(
    shape: LlmShape, weights: str, layout: Layout, *, layers_fraction: float, embedding: bool, head: bool
) -> float:
    """Bytes of weights on one device of a pipeline stage: format, cut and tables together."""
    return device_weight_bytes(
        layer_weights(shape, layout.tensor_parallel, layout.expert_parallel),
        table_weights(shape, layout.tensor_parallel),
        stored_bytes(shape, weights),
        layers_fraction=layers_fraction,
        embedding=embedding,
        head=head,
    )


def adapter_slot_bytes(shape: LlmShape, tensor_parallel: int) -> float:
    """Bytes of all adapter slots on one device, over all layers: they are reserved at start, in 16 bits, whether full or not.

    Llama 3.1 8B, all seven matrices, rank 16: 83.9 MB a slot. Source: vLLM reserves them for every module it may adapt
    (lora/layers: (slots, 1, rank, inner) and (slots, 1, columns, rank) of each matrix).
    """
    if shape.adapters is None:
        return 0.0
    return shape.adapters.slots * UNQUANTISED_BYTES * adapter_values(shape, shape.adapters.rank, tensor_parallel)


def vision_weight_bytes(shape: LlmShape, tensor_parallel: int) -> float:
    """Bytes of the encoder of images or audio on one device, cut like the language model and kept in 16 bits; 0 for text alone: an engine
    that is told to take no images leaves it out."""
    if shape.encoder is None:
        return 0.0
    return shape.encoder.weights * UNQUANTISED_BYTES / tensor_parallel


def rotary_table_bytes(shape: LlmShape) -> float:
    """Sine and cosine for every position: positions · rotary width · 2 bytes, once for all layers alike.

    Llama 3.1: 131,072 · 128 · 2 = 33.6 MB.
    """
    widths = {
        g.qk_rope_head_dim if g.kind == "mla" else g.head_dim
        for g in shape.attention
        if g.kind in ("full", "sliding", "chunked", "mla")
    }
    return shape.max_context_tokens * UNQUANTISED_BYTES * max(widths, default=0)


def weight_bytes(shape: LlmShape, weights: str) -> float:
    """Bytes of the whole model on one device, without engine tables: the size of the checkpoint.

    A 70B model (70.55e9 parameters): 141.1 GB in bf16, 282.2 GB in fp32.
    """
    stored = stored_bytes(shape, weights)
    routed = sum(f.layers * routed_weights(f) for f in shape.feed_forward)
    small = shape.unquantised_weights
    rest = shape.total_weights - shape.embedding_weights - routed - small
    return (
        routed * stored.experts
        + rest * stored.matrices
        + small * stored.small
        + shape.embedding_weights * stored.embedding
    )
