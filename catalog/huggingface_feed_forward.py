"""Feed-forward blocks of a Hugging Face config: which layers are dense or sparse, their shape and parameters."""

from typing import NamedTuple

from catalog.huggingface_attention import ENCODER_TYPES, norms_per_block
from catalog.huggingface_fields import ConfigError, Fields
from catalog.rows import LlmFeedForwardRow

_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk")
_EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "ffn_hidden_size")
_DENSE_WIDTH = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
_SHARED_WIDTH = (
    "moe_shared_expert_intermediate_size",
    "shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)
_GATED_ACTIVATIONS = ("silu", "swish", "swiglu", "swigluoai", "situ", "swiglu_oai")
_PLAIN_TYPES = frozenset(
    {"falcon", "gpt2", "gpt_neox", "gptj", "opt", "bloom", "starcoder2", "mpt", "phi", "nemotron", *ENCODER_TYPES}
)
"""Architectures with two matrices whatever their activation is called."""


class FeedForwardBlock(NamedTuple):
    """One layer's block and how many of its parameters quantised checkpoints keep at 16 bits."""

    row: LlmFeedForwardRow
    unquantised: float


def expert_count(text: Fields) -> int:
    return text.integer(*_EXPERTS, default=0, low=0, high=1_000_000)


def feed_forward_kinds(text: Fields, model_type: str, layers: int) -> list[str]:
    """``dense`` or ``sparse`` for every layer."""
    if expert_count(text) <= 1 or (text.has("enable_moe_block") and not text.flag("enable_moe_block")):
        return ["dense"] * layers
    if types := text.items("mlp_layer_types", length=layers):
        return ["sparse" if t == "sparse" else "dense" for t in types]
    if frequencies := text.items("moe_layer_freq", length=layers) if _is_list(text, "moe_layer_freq") else []:
        return ["sparse" if f else "dense" for f in frequencies]
    if model_type.startswith("llama4"):
        step = text.integer("interleave_moe_layer_step", default=1)
        return ["sparse" if (i + 1) % step == 0 else "dense" for i in range(layers)]
    dense_first = text.integer("first_k_dense_replace", default=0, low=0)
    step = text.integer("moe_layer_freq", "decoder_sparse_step", default=1)
    dense_only = set(text.integers("mlp_only_layers"))
    offset = 1 if text.has("decoder_sparse_step") else 0  # Qwen counts layers from 1, DeepSeek from 0
    return [
        "sparse" if i >= dense_first and i not in dense_only and (i + offset) % step == 0 else "dense"
        for i in range(layers)
    ]


def _is_list(text: Fields, name: str) -> bool:
    try:
        return bool(text.items(name))
    except ConfigError:
        return False


def is_gated(text: Fields, model_type: str) -> bool:
    """SwiGLU-like blocks have a gate matrix; relu² and classic GELU blocks do not."""
    if model_type in _PLAIN_TYPES:
        return False
    activation = text.text("mlp_hidden_act", "hidden_act", "hidden_activation", default="silu")
    return activation in _GATED_ACTIVATIONS or (activation.startswith("gelu") and not text.has("n_embd"))


def dense_block(text: Fields, model_type: str, hidden: int, width: int | None = None) -> FeedForwardBlock:
    """One dense block of 2 or 3 matrices hidden · width."""
    if width is None:
        names = ("intermediate_size_mlp", "dense_intermediate_size", *_DENSE_WIDTH)
        default = 4 * hidden if model_type in _PLAIN_TYPES else None
        width = text.integer(*names, default=default, called="intermediate_size")
    gated = is_gated(text, model_type)
    small = float(hidden * norms_per_block(model_type))
    if text.flag("mlp_bias", "bias", default=model_type in ENCODER_TYPES):
        if model_type in ENCODER_TYPES:
            small += hidden  # a norm has a bias too
        small += width * (2 if gated else 1) + hidden
    weights = (3 if gated else 2) * hidden * width + small
    return FeedForwardBlock(
        LlmFeedForwardRow(layers=1, intermediate=width, gated=gated, weights=weights, active_weights=weights), small
    )


def sparse_block(text: Fields, model_type: str, hidden: int) -> FeedForwardBlock:
    """A mixture of experts: router, routed experts (maybe in a latent space), shared experts, maybe a dense block.

    routed = experts · matrices · inner · width, where inner is the hidden or the latent width
    """
    experts = expert_count(text)
    top_k = text.integer(*_TOP_K, high=1_000_000)
    if top_k > experts:
        raise ConfigError(_TOP_K[0], f"{top_k} experts a token out of {experts}")
    width = text.integer(*_EXPERT_WIDTH, *_DENSE_WIDTH)
    latent = text.integer("moe_latent_size", "routed_expert_hidden_size", default=0, low=0)
    gated = is_gated(text, model_type)
    matrices = 3 if gated else 2
    shared = _shared_width(text, model_type, width)
    per_expert = float(matrices * (latent or hidden) * width)
    if model_type.startswith("gpt_oss"):
        per_expert += 2 * width + hidden  # every expert has biases
    router = float(hidden * experts)
    if text.text("topk_method", default="") == "noaux_tc" or text.flag("use_routing_bias", "use_moe_router_bias"):
        router += experts
    if model_type.startswith("gpt_oss"):
        router += experts
    small = router + hidden * norms_per_block(model_type)
    if text.has("shared_expert_intermediate_size") and shared:
        small += hidden  # scalar gate on the shared expert
    always = matrices * hidden * shared + 2.0 * latent * hidden + small
    return FeedForwardBlock(
        LlmFeedForwardRow(
            layers=1,
            gated=gated,
            experts=experts,
            top_k=top_k,
            expert_intermediate=width,
            expert_hidden=latent,
            shared_intermediate=shared,
            weights=always + experts * per_expert,
            active_weights=always + top_k * per_expert,
        ),
        small,
    )


def _shared_width(text: Fields, model_type: str, expert_width: int) -> int:
    if model_type.startswith("llama4"):
        return expert_width
    if text.flag("enable_moe_block"):  # Gemma 4: a dense block runs beside the experts
        return text.integer("intermediate_size")
    if text.has(*_SHARED_WIDTH):
        return text.integer(*_SHARED_WIDTH, low=0)
    return text.integer("n_shared_experts", "num_shared_experts", default=0, low=0, high=10_000) * expert_width
