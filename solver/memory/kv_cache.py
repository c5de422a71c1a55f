"""Bytes of key-value cache and recurrent state, by architecture.

Full attention keeps every token; sliding and chunked attention the last ``window_tokens``; latent attention one
compressed vector a token; linear attention a state of fixed size a sequence. An engine hands cache out in blocks of
``block_tokens`` tokens, and engines with one pool for several kinds of layer cut it into equal groups of layers.
"""

import math
from dataclasses import dataclass

from solver.errors import UnsupportedError
from solver.llm_shape import AttentionGroup, LlmShape
from solver.precision import KV_CACHE_BYTES


def kv_value_bytes(kv_cache: str) -> float:
    """Bytes of one cached element.

    Raises UnsupportedError for a dtype that nobody caches in.
    """
    if kv_cache not in KV_CACHE_BYTES:
        raise UnsupportedError("kv_cache_unknown", f"{kv_cache!r} is no KV-cache dtype: {', '.join(KV_CACHE_BYTES)}")
    return KV_CACHE_BYTES[kv_cache]


def kv_heads_per_device(kv_heads: int, tensor_parallel: int) -> float:
    """Key-value heads one device keeps: shared out, and replicated once there are more devices than heads.

    >>> kv_heads_per_device(8, 4), kv_heads_per_device(8, 16)
    (2.0, 1.0)
    """
    return max(kv_heads / tensor_parallel, 1.0)


def kv_values_per_token(group: AttentionGroup, tensor_parallel: int = 1) -> float:
    """Values cached per token in one layer of the group, on one device of ``tensor_parallel``.

    grouped-query   kv_heads per device · (head_dim + v_head_dim)
    latent          kv_lora_rank + qk_rope_head_dim, on every device (nothing to share out by heads)
    compressed      as the architecture states
    """
    if group.kind in ("linear", "none"):
        return 0.0
    if group.kv_values_per_token:
        return group.kv_values_per_token
    if group.kind == "mla":
        return float(group.kv_lora_rank + group.qk_rope_head_dim)
    width = group.head_dim + (group.v_head_dim or group.head_dim)
    return kv_heads_per_device(group.kv_heads, tensor_parallel) * width


def kv_cache_bytes_per_token(shape: LlmShape, kv_cache: str = "bf16", tensor_parallel: int = 1) -> float:
    """Bytes one more token occupies on one device once all windows are full: the layers that keep every token.

    Published: 327,680 bytes for Llama-3-70B, 70,272 for DeepSeek-V3 (both 16-bit, one device).
    """
    value_bytes = kv_value_bytes(kv_cache)
    if shape.bidirectional:
        return 0.0
    return math.fsum(
        g.layers * (kv_values_per_token(g, tensor_parallel) * value_bytes + g.index_bytes_per_token)
        for g in shape.attention
        if g.kind in ("full", "mla")
    )


ENDLESS_TOKENS = 2**40
"""Tokens of cache where requests hold none: it never binds."""


@dataclass(frozen=True, slots=True)
class CacheTerm:
    """``bytes_per_token`` for every token of a request, at most ``tokens_limit`` of them (0: no limit)."""

    bytes_per_token: float
    tokens_limit: int


@dataclass(frozen=True, slots=True)
class RequestCache:
    """What one request occupies on one device: a few capped terms and a constant (recurrent state)."""

    terms: tuple[CacheTerm, ...]
    state_bytes: float
    block_tokens: int = 1
    state_block_bytes: float = 0.0
    """Of a pool of blocks in which requests keep recurrent states too: one block of it. Each request's state takes one in every group of
    recurrent layers, or several."""

    @property
    def is_none(self) -> bool:
        """Whether requests hold nothing: of encoders, which read a text once and whole."""
        return not self.terms and not self.state_bytes

    def bytes_at(self, context_tokens: int) -> float:
        """Bytes of one request that has reached ``context_tokens`` and gave back what slid out of its windows."""
        return self._bytes(context_tokens, in_flight_tokens=0)

    def admission_bytes(self, context_tokens: int, in_flight_tokens: int) -> float:
        """Bytes the engine reckons with at start-up: windows still hold the tokens of the step in flight.

        tokens of a window = min(window − 1 + in flight, context), and one block for misalignment
        """
        return self._bytes(context_tokens, in_flight_tokens)

    def _bytes(self, context_tokens: int, in_flight_tokens: int) -> float:
        total = self.state_bytes
        for term in self.terms:
            tokens = _whole_blocks(context_tokens, self.block_tokens)
            if term.tokens_limit:
                held = min(term.tokens_limit - 1 + max(in_flight_tokens, 1), context_tokens)
                capped = _whole_blocks(held, self.block_tokens) + (self.block_tokens if in_flight_tokens else 0)
                tokens = capped if in_flight_tokens else min(capped, tokens)
            total += term.bytes_per_token * tokens
        return total


def _whole_blocks(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens) * block_tokens


def request_cache(
    shape: LlmShape,
    kv_cache: str = "bf16",
    tensor_parallel: int = 1,
    *,
    layers_fraction: float = 1.0,
    block_tokens: int = 1,
    pooled: bool = False,
) -> RequestCache:
    """The cache of one request on one device that holds ``layers_fraction`` of the layers.

    pooled: kinds of layer share one pool in equal groups of layers, the last group padded (see ``pooled_layers``);
    where some are recurrent, a block is made long enough for its page to hold their state (see ``pooled_block``).
    """
    value_bytes = kv_value_bytes(kv_cache)
    if shape.bidirectional:  # nothing follows a text that would look back at it
        return RequestCache((), 0.0, block_tokens)
    cached = [g for g in shape.attention if g.kind != "none"]
    scale = dict.fromkeys((_pool_key(g) for g in cached), 1.0)
    states = [_state_bytes(g, tensor_parallel) for g in cached]
    per_token = [kv_values_per_token(g, tensor_parallel) * value_bytes + g.index_bytes_per_token for g in cached]
    if pooled:
        counts = {key: sum(g.layers for g in cached if _pool_key(g) == key) for key in scale}
        padded = pooled_layers(list(counts.values()))
        scale = {key: n / have for (key, have), n in zip(counts.items(), padded, strict=True)}
        block_tokens = pooled_block(max(states, default=0.0), max(per_token, default=0.0), block_tokens)
    per_limit: dict[int, float] = {}
    state = state_block = 0.0
    for group, state_bytes, token_bytes in zip(cached, states, per_token, strict=True):
        held = group.layers * layers_fraction * scale[_pool_key(group)]
        if group.kind == "linear":
            page = max(state_bytes, block_tokens * max(per_token)) if pooled else state_bytes
            state += held * page
            if pooled:
                state_block = max(state_block, pool_group(list(counts.values())) * layers_fraction * page)
            continue
        limit = group.window_tokens if group.kind in ("sliding", "chunked") else 0
        per_limit[limit] = per_limit.get(limit, 0.0) + held * token_bytes
        if group.kind == "full" and group.window_tokens:  # compressed tokens, plus the last window as it is
            tail = held * group.head_dim * group.kv_heads * value_bytes
            per_limit[group.window_tokens] = per_limit.get(group.window_tokens, 0.0) + tail
    terms = tuple(CacheTerm(b, limit) for limit, b in sorted(per_limit.items()))
    return RequestCache(terms, state, block_tokens, state_block)


def _pool_key(group: AttentionGroup) -> tuple[str, int]:
    """Layers with equal keys are one kind of layer to the pool."""
    return ("whole", 0) if group.kind in ("full", "mla") else (group.kind, group.window_tokens)


def _state_bytes(group: AttentionGroup, tensor_parallel: int) -> float:
    """Recurrent state of one layer and sequence on one device; 0 for attention."""
    if group.kind != "linear":
        return 0.0
    return group.state_values * group.state_value_bytes / _linear_shards(group, tensor_parallel)


def pooled_block(state_bytes: float, bytes_per_token: float, block_tokens: int) -> int:
    """Tokens of a block whose page of one attention layer is no smaller than one layer's recurrent state.

    Qwen3.5-35B-A3B: 2,146,304 bytes of state, 2,048 a token: 1,048 tokens, in whole blocks of 16.

    >>> pooled_block(2_146_304, 2_048, 16), pooled_block(0, 2_048, 16)
    (1056, 16)
    """
    if not state_bytes or not bytes_per_token:
        return block_tokens
    return max(block_tokens, math.ceil(state_bytes / bytes_per_token / block_tokens) * block_tokens)


def _linear_shards(group: AttentionGroup, tensor_parallel: int) -> int:
    return min(tensor_parallel, group.heads) if group.heads else tensor_parallel


def pooled_layers(layers: list[int]) -> list[int]:
    """Layers of each kind after padding to groups of one size, as an engine with one block pool keeps them.

    >>> pooled_layers([10, 52]), pooled_layers([18, 18]), pooled_layers([25, 30])
    ([10, 60], [18, 18], [30, 30])
    """
    if not layers:
        return layers
    size = pool_group(layers)
    return [-(-n // size) * size for n in layers]


def pool_group(layers: list[int]) -> int:
    """Layers of a group, of which each block of the pool is: as many as the rarest kind has, or the commonest where they differ by less
    than a quarter (vLLM's rule); a kind is padded to whole groups."""
    smallest, largest = min(layers), max(layers)
    return largest if 4 * largest < 5 * smallest else smallest
