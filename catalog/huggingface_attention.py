"""Token-mixing blocks of a Hugging Face config: which kind each layer is, its shape and its parameters."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from catalog.huggingface_fields import ConfigError, Fields
from catalog.rows import LlmAttentionRow

_FULL, _SLIDING, _CHUNKED, _LINEAR, _NONE = "full", "sliding", "chunked", "linear", "none"
_LAYER_TYPES = {
    "full_attention": _FULL,
    "attention": _FULL,
    "global_attention": _FULL,
    "deepseek_sparse_attention": _FULL,
    "sliding_attention": _SLIDING,
    "sliding_window_attention": _SLIDING,
    "local_attention": _SLIDING,
    "chunked_attention": _CHUNKED,
    "linear_attention": _LINEAR,
    "mamba": _LINEAR,
    "mamba2": _LINEAR,
    "recurrent": _LINEAR,
}
ENCODER_TYPES = frozenset({"bert", "roberta", "xlm-roberta"})
"""Encoders with learned positions, biases everywhere and two norms a layer: a text at once, no tokens made."""
ROTARY_ENCODER_TYPES = frozenset({"modernbert"})
"""Encoders built as decoders are, rotary and without biases, of which every few layers look at all of a text."""
_GATED_OUTPUT_TYPES = frozenset({"qwen3_next"})
"""Whose attention gates its output though their configs do not say so: queries and gates are one product."""
_QKV_BIAS_TYPES = frozenset({"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "gpt2", "chatglm"})
"""Architectures whose projections carry a bias without saying so in the config."""
_QK_NORM_TYPES = ("qwen3", "gemma3", "gemma4", "mimo_v2", "step3")
_DOUBLE_NORM_TYPES = ("gemma2", "gemma3", "gemma4")
"""Architectures that normalise before and after each block."""


class AttentionBlock(NamedTuple):
    """One layer's block and how many of its parameters quantised checkpoints keep at 16 bits."""

    row: LlmAttentionRow
    unquantised: float


def norms_per_block(model_type: str) -> int:
    return 2 if model_type.startswith(_DOUBLE_NORM_TYPES) else 1


def has_qk_norm(text: Fields, model_type: str) -> bool:
    return text.flag("use_qk_norm", "qk_norm", default=model_type.startswith(_QK_NORM_TYPES) and model_type != "llama4")


def attention_kinds(text: Fields, model_type: str, layers: int) -> list[str]:
    """The kind of every layer's token mixer, from whichever spelling the family uses."""
    if types := text.items("layer_types", at_least=layers):
        return [_known(_LAYER_TYPES, t, "layer_types") for t in types[:layers]]
    if pattern := text.items("hybrid_layer_pattern", length=layers):
        return [_known({0: _FULL, 1: _SLIDING}, p, "hybrid_layer_pattern") for p in pattern]
    if pattern := text.items("attn_type_list", length=layers):
        return [_known({0: _LINEAR, 1: _FULL}, p, "attn_type_list") for p in pattern]
    if (linear := text.part("linear_attn_config")) is not None:
        full = set(linear.integers("full_attn_layers"))  # counted from 1
        return [_FULL if i + 1 in full else _LINEAR for i in range(layers)]
    if text.has("full_attention_interval") and text.has("linear_num_value_heads"):
        interval = text.integer("full_attention_interval")
        return [_FULL if (i + 1) % interval == 0 else _LINEAR for i in range(layers)]
    if text.has("attention_chunk_size") and model_type.startswith("llama4"):
        rope = text.items("no_rope_layers", at_least=layers)  # 0 marks a layer without rotary embedding: full attention
        interval = text.integer("no_rope_layer_interval", default=4)
        return [_FULL if (rope[i] == 0 if rope else (i + 1) % interval == 0) else _CHUNKED for i in range(layers)]
    if model_type in ROTARY_ENCODER_TYPES:
        interval = text.integer("global_attn_every_n_layers", high=10_000)
        return [_FULL if i % interval == 0 else _SLIDING for i in range(layers)]
    return _sliding_kinds(text, model_type, layers)


def _sliding_kinds(text: Fields, model_type: str, layers: int) -> list[str]:
    if not text.has("sliding_window") or not text.flag("use_sliding_window", default=True):
        return [_FULL] * layers
    if text.integer("sliding_window", low=0) in (0, text.integer("max_position_embeddings", default=0)):
        return [_FULL] * layers
    if text.has("sliding_window_pattern"):
        interval = text.integer("sliding_window_pattern")
        return [_FULL if (i + 1) % interval == 0 else _SLIDING for i in range(layers)]
    if model_type.startswith("gemma2"):  # even layers slide
        return [_SLIDING if i % 2 == 0 else _FULL for i in range(layers)]
    if model_type.startswith("gemma3"):
        return [_FULL if (i + 1) % 6 == 0 else _SLIDING for i in range(layers)]
    if text.flag("use_sliding_window"):
        first = text.integer("max_window_layers", default=layers, low=0)
        return [_SLIDING if i >= first else _FULL for i in range(layers)]
    return [_SLIDING] * layers


def _known(table: Mapping[Any, str], key: object, field: str) -> str:
    kind = table.get(key) if isinstance(key, str | int) else None
    if kind is None:
        raise ConfigError(field, f"unknown kind of layer {key!r:.40}")
    return kind


def attention_block(text: Fields, kind: str, model_type: str, hidden: int) -> AttentionBlock:
    """The block of a layer of this kind."""
    if kind == _NONE:
        return AttentionBlock(LlmAttentionRow(kind="none", layers=1, weights=0), 0.0)
    if kind == _LINEAR:
        return linear_block(text, hidden)
    if text.has("kv_lora_rank"):
        return mla_block(text, hidden, indexed=kind != "mla_shared_index")
    return grouped_query_block(text, kind, model_type, hidden)


def grouped_query_block(text: Fields, kind: str, model_type: str, hidden: int) -> AttentionBlock:
    """Multi-head, multi-query and grouped-query attention.

    parameters = h · heads · d (queries) + h · kv_heads · (d + d_v) + heads · d_v · h, plus biases, norms, sinks, gates
    """
    prefix = ("swa_",) if kind == _SLIDING else ()
    wide = text.has("global_head_dim") and kind == _FULL  # Gemma 4: wider heads in global layers
    names = [f"{p}num_attention_heads" for p in prefix] + ["num_attention_heads", "n_head", "num_heads"]
    heads = text.integer(*names, high=100_000, called="num_attention_heads")
    head_dim = text.integer(
        *[f"{p}head_dim" for p in prefix],
        *(["global_head_dim"] if wide else []),
        "head_dim",
        "attention_head_dim",
        "kv_channels",
        default=hidden // heads,
        high=100_000,
    )
    if head_dim < 1:
        raise ConfigError("num_attention_heads", f"{heads} heads leave no width in hidden size {hidden}")
    v_head_dim = text.integer(*[f"{p}v_head_dim" for p in prefix], "v_head_dim", default=head_dim, high=100_000)
    if text.flag("multi_query") and not text.flag("new_decoder_architecture"):
        kv_heads = 1
    else:
        kv_heads = text.integer(
            *[f"{p}num_key_value_heads" for p in prefix],
            *(["num_global_key_value_heads"] if wide else []),
            "num_key_value_heads",
            "num_kv_heads",
            "n_head_kv",
            "multi_query_group_num",
            default=heads,
            high=100_000,
        )
    if heads % kv_heads:
        raise ConfigError("num_key_value_heads", f"{kv_heads} key-value heads do not divide {heads} heads")
    keys_are_values = wide and text.flag("attention_k_eq_v")  # one projection feeds both; both are cached
    gated = text.flag("attn_output_gate", "attention_output_gate", default=model_type in _GATED_OUTPUT_TYPES)
    query = hidden * heads * head_dim * (2 if gated else 1)
    key_value = hidden * kv_heads * (head_dim + (0 if keys_are_values else v_head_dim))
    output = heads * v_head_dim * hidden
    small = float(hidden * norms_per_block(model_type))
    if text.flag(
        "attention_bias",
        "use_qkv_bias",
        "add_qkv_bias",
        "bias",
        default=model_type in _QKV_BIAS_TYPES or model_type in ENCODER_TYPES,
    ):
        small += heads * head_dim + kv_heads * (head_dim + v_head_dim)
        if text.flag("attention_bias", "bias", default=model_type in ENCODER_TYPES):
            small += hidden
        if model_type in ENCODER_TYPES:
            small += hidden  # a norm has a bias too
    if has_qk_norm(text, model_type) and not model_type.startswith("llama4"):
        per_layer = text.text("qk_norm_type", default="per_head") == "per_layer"
        small += (heads + kv_heads) * head_dim if per_layer else 2 * head_dim
    if model_type.startswith("gpt_oss") or (kind == _SLIDING and text.flag("add_swa_attention_sink_bias")):
        small += heads  # one learned sink a head
    limit, extra = 0, 0.0
    if kind == "full_indexed":
        limit, index_weights, extra = _block_index(text, hidden)
        small += index_weights
    window = 0
    if kind == _SLIDING:
        window = text.integer("sliding_window", "sliding_window_size", "attention_window_size", "local_attention")
    elif kind == _CHUNKED:
        window = text.integer("attention_chunk_size")
    return AttentionBlock(
        LlmAttentionRow(
            kind=cast('Literal["full", "sliding", "chunked"]', kind.removesuffix("_indexed")),
            layers=1,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            v_head_dim=v_head_dim if v_head_dim != head_dim else 0,
            window_tokens=window,
            attended_tokens_limit=limit,
            index_bytes_per_token=extra,
            weights=query + key_value + output + small,
        ),
        small,
    )


def _block_index(text: Fields, hidden: int) -> tuple[int, float, float]:
    """Block-sparse attention (MiniMax-M3): tokens read, indexer weights, indexer key bytes cached in 16 bits."""
    sparse = text.part("sparse_attention_config")
    if sparse is None:
        raise ConfigError("sparse_attention_config", "missing")
    width = sparse.integer("sparse_index_dim", high=100_000)
    index_heads = sparse.integer("sparse_num_index_heads", high=100_000)
    read = sparse.integer("sparse_topk_blocks") * sparse.integer("sparse_block_size")
    return read, float(hidden * width * (index_heads + 1)), 2.0 * width


def mla_block(text: Fields, hidden: int, *, indexed: bool) -> AttentionBlock:
    """Multi-head latent attention (DeepSeek-V2 report, section 2.1), with the sparse indexer of V3.2 where present.

    parameters = queries (through q_lora_rank or direct) + h · (r + rope) + r · heads · (nope + v) + heads · v · h
    """
    heads = text.integer("num_attention_heads", high=100_000)
    rank, query_rank = text.integer("kv_lora_rank"), text.integer("q_lora_rank", default=0)
    nope, rope = text.integer("qk_nope_head_dim"), text.integer("qk_rope_head_dim")
    value = text.integer("v_head_dim")
    query = (hidden + heads * (nope + rope)) * query_rank if query_rank else hidden * heads * (nope + rope)
    compressed = hidden * (rank + rope) + rank * heads * (nope + value)
    output = heads * value * hidden * (2 if text.flag("mla_use_output_gate") else 1)
    small = float(hidden + query_rank + rank)
    index_bytes, limit = 0.0, 0
    if text.has("index_topk"):
        limit = text.integer("index_topk")
        if indexed:
            width, index_heads = text.integer("index_head_dim"), text.integer("index_n_heads")
            small += query_rank * index_heads * width + hidden * (width + index_heads) + 2 * width
            index_bytes = width + 4.0  # fp8 keys and one fp32 scale (DeepSeek-V3.2 report)
    return AttentionBlock(
        LlmAttentionRow(
            kind="mla",
            layers=1,
            heads=heads,
            kv_heads=1,
            head_dim=nope + rope,
            v_head_dim=value,
            q_lora_rank=query_rank,
            kv_lora_rank=rank,
            qk_nope_head_dim=nope,
            qk_rope_head_dim=rope,
            attended_tokens_limit=limit,
            index_bytes_per_token=index_bytes,
            weights=query + compressed + output + small,
        ),
        small,
    )


def compressed_block(text: Fields, ratio: int, hidden: int) -> AttentionBlock:
    """Shared key-value attention over compressed tokens plus a sliding window (DeepSeek-V4).

    One cached vector of ``head_dim`` serves as key and value; every ``ratio`` tokens are merged into one
    (0: only the window is kept). Ratio 4 also caches indexer keys.
    """
    heads, head_dim = text.integer("num_attention_heads", high=100_000), text.integer("head_dim", high=100_000)
    query_rank, output_rank = text.integer("q_lora_rank"), text.integer("o_lora_rank")
    groups, window = text.integer("o_groups"), text.integer("sliding_window")
    main = query_rank * (hidden + heads * head_dim) + hidden * head_dim
    main += heads * head_dim * output_rank + groups * output_rank * hidden
    small = float(hidden + query_rank + head_dim + heads)
    limit, index_bytes = 0, 0.0
    if ratio:
        overlap = 2 if ratio <= 4 else 1  # fine-grained compression overlaps neighbouring groups
        main += 2 * overlap * hidden * head_dim
        if ratio <= 4:
            width, index_heads = text.integer("index_head_dim"), text.integer("index_n_heads")
            small += query_rank * index_heads * width + hidden * index_heads + 2 * overlap * hidden * width
            limit, index_bytes = text.integer("index_topk"), (width + 4.0) / ratio
    return AttentionBlock(
        LlmAttentionRow(
            kind="full" if ratio else "sliding",
            layers=1,
            heads=heads,
            kv_heads=1,
            head_dim=head_dim,
            window_tokens=window,
            q_lora_rank=query_rank,
            kv_values_per_token=head_dim / ratio if ratio else float(head_dim),
            attended_tokens_limit=limit,
            index_bytes_per_token=index_bytes,
            weights=main + small,
        ),
        small,
    )


def linear_block(text: Fields, hidden: int) -> AttentionBlock:
    """Recurrent token mixers: Mamba 2, gated delta net, Kimi delta attention, lightning attention."""
    if text.has("mamba_num_heads"):
        return _mamba2(text, hidden)
    if text.has("linear_num_value_heads"):
        return _gated_delta_net(text, hidden)
    if (kda := text.part("linear_attn_config")) is not None:
        return _kimi_delta(kda, hidden)
    if text.has("attn_type_list"):
        return _lightning(text, hidden)
    raise ConfigError("linear_num_value_heads", "a linear-attention layer whose shape is not described")


_STATE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}


def _state_bytes(text: Fields, *names: str, default: str) -> float:
    dtype = text.text(*names, default=default)
    if dtype not in _STATE_BYTES:
        raise ConfigError(names[0], f"unknown dtype {dtype!r:.40}")
    return _STATE_BYTES[dtype]


def _linear(
    weights: float, small: float, heads: int, recurrent: float, conv: float, recurrent_bytes: float
) -> AttentionBlock:
    """A linear row; convolution state is kept in 16 bits, recurrent state as the config says."""
    values = recurrent + conv
    return AttentionBlock(
        LlmAttentionRow(
            kind="linear",
            layers=1,
            heads=heads,
            state_values=values,
            state_value_bytes=(recurrent * recurrent_bytes + conv * 2.0) / values,
            weights=weights + small,
        ),
        small,
    )


def _mamba2(text: Fields, hidden: int) -> AttentionBlock:
    """Mamba 2: one input projection to z, x, B, C and Δ; state heads · head_dim · state_size."""
    heads, head_dim = text.integer("mamba_num_heads"), text.integer("mamba_head_dim")
    groups, state = text.integer("n_groups", "mamba_n_groups"), text.integer("ssm_state_size", "mamba_d_state")
    kernel = text.integer("conv_kernel", "mamba_d_conv", default=4)
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    projections = hidden * (inner + channels + heads) + inner * hidden
    small = float(channels * (kernel + 1) + 3 * heads + inner + hidden)
    dtype = _state_bytes(text, "mamba_ssm_cache_dtype", "mamba_ssm_dtype", default="bfloat16")
    return _linear(projections, small, heads, inner * state, channels * (kernel - 1), dtype)


def _gated_delta_net(text: Fields, hidden: int) -> AttentionBlock:
    """Gated delta net (Qwen3-Next, Qwen3.5): state value_heads · d_k · d_v."""
    value_heads, key_heads = text.integer("linear_num_value_heads"), text.integer("linear_num_key_heads")
    key_dim, value_dim = text.integer("linear_key_head_dim"), text.integer("linear_value_head_dim")
    kernel = text.integer("linear_conv_kernel_dim", default=4)
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    projections = hidden * (channels + values) + values * hidden
    small = float(hidden * 2 * value_heads + channels * kernel + 2 * value_heads + value_dim + hidden)
    dtype = _state_bytes(text, "mamba_ssm_dtype", default="bfloat16")
    block = _linear(projections, small, value_heads, value_heads * key_dim * value_dim, channels * (kernel - 1), dtype)
    widths = {"key_heads": key_heads, "head_dim": key_dim, "v_head_dim": value_dim}
    return block._replace(row=block.row.model_copy(update=widths))


def _kimi_delta(kda: Fields, hidden: int) -> AttentionBlock:
    """Kimi delta attention: q, k, v and output, a low-rank decay gate, an output gate; state heads · d²."""
    heads, width = kda.integer("num_heads"), kda.integer("head_dim")
    kernel = kda.integer("short_conv_kernel_size", default=4)
    inner = heads * width
    low_rank = hidden * width + width * inner
    output_gate = hidden * inner if kda.flag("use_full_rank_gate") else low_rank
    projections = 4 * hidden * inner + low_rank + output_gate
    small = float(hidden * heads + 3 * inner * kernel + heads + inner + width + hidden)
    return _linear(projections, small, heads, heads * width * width, 3 * inner * (kernel - 1), 4.0)


def _lightning(text: Fields, hidden: int) -> AttentionBlock:
    """Lightning attention (MiniMax-Text-01): q, k, v, output gate and output; state heads · d² in fp32."""
    heads = text.integer("num_attention_heads")
    width = text.integer("head_dim", default=hidden // heads)
    inner = heads * width
    return AttentionBlock(
        LlmAttentionRow(
            kind="linear",
            layers=1,
            heads=heads,
            state_values=float(heads * width * width),
            state_value_bytes=4.0,
            weights=5.0 * hidden * inner + inner + hidden,
        ),
        float(inner + hidden),
    )
