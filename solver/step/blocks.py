"""The matrices of one model's layers, and the attention work per token and per pair of tokens.

Only shapes: no rates and no time. ``per rank`` figures are for one device of a tensor-parallel group.
"""

from dataclasses import dataclass

import numpy as np

from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.step.gemm import Quantity


@dataclass(frozen=True, slots=True)
class Matrix:
    """One weight matrix per layer: inner × columns. ``split`` says which side tensor parallelism cuts."""

    columns: float
    inner: float
    split: str
    """columns | inner | none."""

    def per_rank(self, tensor_parallel: Quantity) -> tuple[Quantity, Quantity]:
        """(columns, inner) on one device."""
        if self.split == "columns":
            return self.columns / tensor_parallel, self.inner
        if self.split == "inner":
            return self.columns, self.inner / tensor_parallel
        return self.columns, self.inner


def attention_matrices(
    group: AttentionGroup, hidden: int, tensor_parallel: Quantity
) -> list[tuple[Quantity, Quantity]]:
    """(columns, inner) per rank of one token-mixing block's projections.

    Grouped-query attention fuses query, key and value; key/value heads are replicated once there are more ranks than heads.
    Latent attention projects down to the latent (replicated) and up to the heads (cut). Linear blocks are one matrix of
    the block's parameter count: their projections dominate and have the hidden width on one side.
    """
    if group.kind == "none":
        return []
    if group.kind == "linear":
        return [Matrix(group.weights / hidden, float(hidden), "columns").per_rank(tensor_parallel)]
    if group.kind == "mla":
        query_key = group.qk_nope_head_dim + group.qk_rope_head_dim
        value = group.v_head_dim or group.qk_nope_head_dim
        down = group.kv_lora_rank + group.qk_rope_head_dim + group.q_lora_rank
        query_inner = group.q_lora_rank or hidden
        return [
            Matrix(float(down), float(hidden), "none").per_rank(tensor_parallel),
            Matrix(float(group.heads * query_key), float(query_inner), "columns").per_rank(tensor_parallel),
            Matrix(float(group.heads * (group.qk_nope_head_dim + value)), float(group.kv_lora_rank), "columns").per_rank(tensor_parallel),
            Matrix(float(hidden), float(group.heads * value), "inner").per_rank(tensor_parallel),
        ]  # fmt: skip
    query = group.heads / tensor_parallel
    key_value = np.maximum(1.0, group.kv_heads / tensor_parallel)
    value = group.v_head_dim or group.head_dim
    return [
        (query * group.head_dim + key_value * (group.head_dim + value), float(hidden)),
        (float(hidden), query * value),
    ]


def attention_width(group: AttentionGroup, tensor_parallel: Quantity) -> tuple[Quantity, Quantity]:
    """Values per token and rank of (query, key + value): what element-wise passes around attention touch."""
    if group.kind == "none":
        return 0.0, 0.0
    if group.kind == "linear":
        return group.heads * group.head_dim / tensor_parallel, 0.0
    if group.kind == "mla":
        query = group.heads / tensor_parallel * (group.qk_nope_head_dim + group.qk_rope_head_dim)
        return query, float(group.kv_lora_rank + group.qk_rope_head_dim)
    query = group.heads / tensor_parallel * group.head_dim
    return query, np.maximum(1.0, group.kv_heads / tensor_parallel) * (
        group.head_dim + (group.v_head_dim or group.head_dim)
    )


def kv_values_read_per_token(group: AttentionGroup, tensor_parallel: Quantity) -> Quantity:
    """Cached values one decode step reads per context token, layer and rank."""
    if group.kind in ("none", "linear"):
        return 0.0
    if group.kv_values_per_token:
        return group.kv_values_per_token
    return attention_width(group, tensor_parallel)[1]


def pair_flops(group: AttentionGroup, tensor_parallel: Quantity) -> Quantity:
    """Floating-point operations of one (query token, key token) pair in prefill, per layer and rank: score and value product."""
    if group.kind in ("none", "linear"):
        return 0.0
    if group.kind == "mla":
        value = group.v_head_dim or group.qk_nope_head_dim
        return 2.0 * group.heads / tensor_parallel * (group.qk_nope_head_dim + group.qk_rope_head_dim + value)
    return 2.0 * group.heads / tensor_parallel * (group.head_dim + (group.v_head_dim or group.head_dim))


def decode_pair_flops(group: AttentionGroup, tensor_parallel: Quantity) -> Quantity:
    """The same in decode: latent attention works on the latent itself (absorbed projections), so it is wider there."""
    if group.kind == "mla":
        return 2.0 * group.heads / tensor_parallel * (2.0 * group.kv_lora_rank + group.qk_rope_head_dim)
    return pair_flops(group, tensor_parallel)


def context_limit(group: AttentionGroup) -> float:
    """Most context tokens one query of this group looks at; infinite for full attention."""
    if group.kind in ("sliding", "chunked") and group.window_tokens > 0:
        return float(group.window_tokens)
    return float(group.attended_tokens_limit) if group.attended_tokens_limit > 0 else float("inf")


def attention_pairs(new_tokens: Quantity, cached_tokens: Quantity, limit: float = float("inf")) -> Quantity:
    """(query, key) pairs of a prefill chunk: ``new_tokens`` after ``cached_tokens``, each query looking back at most ``limit``.

        q·c₀ + q²/2 without a limit

    >>> [float(pairs) for pairs in (attention_pairs(4, 0), attention_pairs(2, 10), attention_pairs(10, 0, limit=4))]
    [8.0, 22.0, 32.0]
    """
    if limit == float("inf"):
        return new_tokens * cached_tokens + new_tokens * new_tokens / 2.0
    inside = np.minimum(np.maximum(limit - cached_tokens, 0.0), new_tokens)
    return inside * cached_tokens + inside * inside / 2.0 + (new_tokens - inside) * limit


def dense_width(group: FeedForwardGroup) -> float:
    """Width of the always-active part: the dense block, or the shared experts."""
    return float(group.intermediate if group.experts == 0 else group.shared_intermediate)


def distinct_experts(experts: int, top_k: int, tokens: Quantity, evenness: Quantity = 1e6) -> Quantity:
    """Experts that at least one of ``tokens`` picks.

        even routing            E·(1 − (1 − k/E)^T)
        popularity ~ gamma(a)   E·(1 − (1 − T·ln(1 − k/E)/a)^−a)         never fewer than k

    The second tends to the first for a → ∞: an expert picked at rate m has e^(−mT) left out, averaged over m.

    >>> round(float(distinct_experts(128, 8, 1.0)), 4), round(float(distinct_experts(128, 8, 1e6)), 4)
    (8.0, 128.0)
    >>> float(distinct_experts(128, 8, 64.0, 0.1)) < 45.0
    True
    """
    share = min(top_k / experts, 1.0 - 1e-12)
    picks = np.asarray(tokens) * -np.log1p(-share)
    missed: Quantity = np.exp(-np.asarray(evenness) * np.log1p(picks / evenness))
    return np.maximum(experts * (1.0 - missed), float(min(top_k, experts)))


def expert_width(group: FeedForwardGroup, shape: LlmShape) -> float:
    """Input width of the routed experts."""
    return float(group.expert_hidden or shape.hidden)


def reduced_blocks(shape: LlmShape) -> int:
    """Blocks whose output tensor-parallel ranks add up: attention's and feed-forward's of every layer."""
    return sum(a.layers for a in shape.attention if a.kind != "none") + sum(f.layers for f in shape.feed_forward)


def expert_layers(shape: LlmShape) -> int:
    """Layers with routed experts."""
    return sum(ffn.layers for ffn in shape.feed_forward if ffn.experts > 0)


def quantised_blocks(shape: LlmShape) -> int:
    """Blocks with dense products, two of which are in a plain layer: attention's, and feed-forward's but for routed experts alone."""
    return sum(a.layers for a in shape.attention if a.kind != "none") + sum(
        f.layers for f in shape.feed_forward if dense_width(f) > 0
    )
