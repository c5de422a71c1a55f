"""From a Hugging Face ``config.json`` to a row of the catalog.

The file names every width of the network, in a dozen dialects. Layers are described one by one (their token mixer,
their feed-forward block), then identical ones are counted together. Parameters are computed from the widths;
audio towers and the extra layers for multi-token prediction are left out: they take no part in decoding one token
after another. A vision tower is a row of its own (``huggingface_vision``).
"""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterable

from catalog.huggingface_attention import (
    ENCODER_TYPES,
    ROTARY_ENCODER_TYPES,
    AttentionBlock,
    attention_block,
    attention_kinds,
    compressed_block,
    has_qk_norm,
    linear_block,
)
from catalog.huggingface_audio import audio_row
from catalog.huggingface_feed_forward import (
    FeedForwardBlock,
    dense_block,
    feed_forward_kinds,
    sparse_block,
)
from catalog.huggingface_fields import ConfigError, Fields
from catalog.huggingface_formats import native_formats
from catalog.huggingface_vision import vision_row
from catalog.rows import LlmAttentionRow, LlmFeedForwardRow, LlmRow, Provenance

__all__ = ["ConfigError", "llm_row_from_config"]

_TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model_config")
_TIED_BY_DEFAULT = ("gemma", "cohere", "falcon", "gpt2", "bloom", "opt", "mpt")
_MAX_LAYERS = 10_000
SCALED_POSITIONS = ("yarn", "linear", "dynamic")
"""Kinds of scaling whose factor times the original context is the context reached; that of others is in the context already."""


def _extended_context(text: Fields) -> int | None:
    """What the config's own scaling of positions reaches, where that is beyond its context.

    >>> scaled = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    >>> _extended_context(Fields({"max_position_embeddings": 40960, "rope_scaling": scaled}))
    131072
    >>> _extended_context(Fields({"max_position_embeddings": 131072, "rope_scaling": scaled}))
    """
    scaling = text.part("rope_scaling") or text.part("rope_parameters")
    if scaling is None or not text.has("max_position_embeddings") or not scaling.has("factor"):
        return None
    if scaling.text("rope_type", "type", default="default") not in SCALED_POSITIONS:
        return None
    own = text.integer("max_position_embeddings")
    reached = int(
        scaling.integer("original_max_position_embeddings", default=own) * scaling.number("factor", low=1.0, high=1e3)
    )
    return reached if reached > own else None


def llm_row_from_config(
    llm_id: str,
    config: object,
    *,
    name: str | None = None,
    hugging_face_id: str | None = None,
    family: str | None = None,
    published_total_weights: float | None = None,
    published_active_weights: float | None = None,
    provenance: Provenance | None = None,
    imported_on: dt.date | None = None,
    embeds: bool = False,
) -> LlmRow:
    """Read one ``config.json``.

    Raises ConfigError naming the field that is missing, of the wrong type, out of range or unknown.
    ``embeds``: a decoder without its head, which its config does not tell.
    ``provenance`` or ``imported_on`` must be given: the catalog accepts no figure without a date.

    >>> row = llm_row_from_config("tiny", {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    ...     "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
    ...     "max_position_embeddings": 2048}, imported_on=dt.date(2026, 11, 21))
    >>> row.attention[0].layers, row.attention[0].weights, row.feed_forward[0].weights
    (2, 12352.0, 24640.0)
    """
    top = Fields(config)
    text = next((part for key in _TEXT_PARTS if (part := top.part(key)) is not None), top)
    model_type = text.text("model_type", default=top.text("model_type", default="unknown"))
    if provenance is None:
        if imported_on is None:
            raise ValueError("give a provenance or the date of the import")
        source = f"config.json of {hugging_face_id}" if hugging_face_id else "config.json supplied by the user"
        provenance = Provenance(source=source, retrieved_on=imported_on, checked="derived")
    hidden = text.integer("hidden_size", "n_embd", "d_model", "dim", high=1_000_000)
    vocabulary = text.integer("vocab_size", "padded_vocab_size", high=100_000_000)
    mixers, blocks = _layers(text, model_type, hidden)
    attention, attention_small = _grouped_attention(mixers)
    feed_forward, feed_forward_small = _grouped_feed_forward(blocks)
    native, beside = native_formats(top, text, sparse=any(f.experts for f in feed_forward))
    default_tie = model_type.startswith(_TIED_BY_DEFAULT)
    learned = text.has("n_positions") and not text.has("rotary_dim")
    positions = hidden * text.integer("n_positions", default=0, low=0) if learned else 0
    encoder = model_type in ENCODER_TYPES
    both_ways = encoder or model_type in ROTARY_ENCODER_TYPES
    if encoder:
        # Positions and kinds of segments are learned; one norm with a bias over the embedding, and a dense layer over the first token.
        known = text.integer("max_position_embeddings") + text.integer("type_vocab_size", default=2, low=0)
        positions = hidden * known + hidden + hidden * hidden + hidden
    return LlmRow(
        id=llm_id,
        name=name or (hugging_face_id or llm_id).split("/")[-1],
        hugging_face_id=hugging_face_id,
        family=family or re.sub(r"[^a-z0-9.\-]+", "-", model_type.lower()).strip("-._") or "unknown",
        hidden=hidden,
        vocabulary=vocabulary,
        embeds=both_ways or embeds,
        bidirectional=both_ways,
        audio=audio_row(top, top.text("model_type", default="unknown"), hidden),
        vision=vision_row(top, top.text("model_type", default="unknown"), hidden),
        tied_embeddings=both_ways
        or embeds
        or text.flag("tie_word_embeddings", default=top.flag("tie_word_embeddings", default=default_tie)),
        max_context_tokens=text.integer(
            "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"
        )
        - (text.integer("pad_token_id", default=1, low=0) + 1 if encoder and model_type != "bert" else 0),
        extended_context_tokens=_extended_context(text),
        attention=attention,
        feed_forward=feed_forward,
        qk_norm=has_qk_norm(text, model_type),
        native_weights=native,
        native_beside_experts=beside,
        other_weights=float(hidden + positions),
        unquantised_weights=attention_small + feed_forward_small + hidden + positions,
        published_total_weights=published_total_weights,
        published_active_weights=published_active_weights,
        provenance=provenance,
    )


def _layers(text: Fields, model_type: str, hidden: int) -> tuple[list[AttentionBlock], list[FeedForwardBlock]]:
    """Every layer's two blocks. A layer that lacks one of them contributes nothing to that list."""
    if text.has("hybrid_override_pattern") or text.has("layers_block_type"):
        return _one_block_layers(text, model_type, hidden)
    layers = text.integer("num_hidden_layers", "n_layer", "num_layers", "n_layers", high=_MAX_LAYERS)
    if configs := text.items("block_configs", length=layers):
        return _searched_layers(text, [Fields(c, f"block_configs[{i}]") for i, c in enumerate(configs)], hidden)
    if text.has("compress_ratios"):
        ratios = text.items("compress_ratios", at_least=layers)[:layers]
        if any(isinstance(r, bool) or not isinstance(r, int) or r < 0 for r in ratios):
            raise ConfigError("compress_ratios", "expected whole numbers, 0 or more")
        by_ratio = {r: compressed_block(text, r, hidden) for r in set(ratios)}
        mixers = [by_ratio[r] for r in ratios]
    else:
        kinds = _with_index(text, attention_kinds(text, model_type, layers), layers)
        by_kind = {k: attention_block(text, k, model_type, hidden) for k in set(kinds)}
        mixers = [by_kind[k] for k in kinds]
    forward_kinds = feed_forward_kinds(text, model_type, layers)
    builders = {"dense": dense_block, "sparse": sparse_block}
    by_forward = {k: builders[k](text, model_type, hidden) for k in set(forward_kinds)}
    return mixers, [by_forward[k] for k in forward_kinds]


def _with_index(text: Fields, kinds: list[str], layers: int) -> list[str]:
    """Marks layers whose sparse attention has an indexer of its own, or shares one with another layer."""
    if types := text.items("indexer_types", length=layers):  # GLM-5.2: most layers reuse an earlier layer's choice
        return ["mla_shared_index" if t == "shared" else k for k, t in zip(kinds, types, strict=True)]
    sparse = text.part("sparse_attention_config")
    if sparse is not None and sparse.flag("use_sparse_attention", default=True):
        used = sparse.items("sparse_attention_freq", length=layers) or [1] * layers
        return ["full_indexed" if u and k == "full" else k for k, u in zip(kinds, used, strict=True)]
    return kinds


def _one_block_layers(
    text: Fields, model_type: str, hidden: int
) -> tuple[list[AttentionBlock], list[FeedForwardBlock]]:
    """Nemotron-H: every layer is one block, a mixer or a feed-forward; ``M*-E`` or spelled out."""
    names = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
    if text.has("layers_block_type"):
        kinds = text.items("layers_block_type")
    else:
        kinds = [names.get(c, c) for c in text.text("hybrid_override_pattern")]
    if unknown := set(map(str, kinds)) - set(names.values()):
        raise ConfigError("hybrid_override_pattern", f"unknown kind of layer {min(unknown)!r:.40}")
    if not 1 <= len(kinds) <= _MAX_LAYERS:
        raise ConfigError("hybrid_override_pattern", f"{len(kinds)} layers")
    by_mixer: dict[str, AttentionBlock] = {}
    by_block: dict[str, FeedForwardBlock] = {}
    if "mamba" in kinds:
        by_mixer["mamba"] = linear_block(text, hidden)
    if "attention" in kinds:
        by_mixer["attention"] = attention_block(text, "full", model_type, hidden)
    if "mlp" in kinds:
        by_block["mlp"] = dense_block(text, model_type, hidden)
    if "moe" in kinds:
        by_block["moe"] = sparse_block(text, model_type, hidden)
    return [by_mixer[k] for k in kinds if k in by_mixer], [by_block[k] for k in kinds if k in by_block]


def _searched_layers(
    text: Fields, configs: list[Fields], hidden: int
) -> tuple[list[AttentionBlock], list[FeedForwardBlock]]:
    """Layers chosen one by one by architecture search (Nemotron-NAS): attention or feed-forward may be left out."""
    heads = text.integer("num_attention_heads", high=100_000)
    mixers: list[AttentionBlock] = []
    blocks: list[FeedForwardBlock] = []
    for config in configs:
        attention, forward = config.part("attention"), config.part("ffn")
        if attention is None or forward is None:
            raise ConfigError(config.where, "needs both 'attention' and 'ffn'")
        if attention.flag("no_op") or attention.flag("replace_with_linear"):
            weights = hidden * hidden if attention.flag("replace_with_linear") else 0
            mixers.append(AttentionBlock(LlmAttentionRow(kind="none", layers=1, weights=weights), 0.0))
        else:
            group = attention.integer("n_heads_in_group")
            one = {"num_attention_heads": heads, "num_key_value_heads": max(1, heads // group)}
            mixers.append(attention_block(Fields(one), "full", "nemotron-nas", hidden))
        if not forward.flag("no_op"):
            exact = int(2 * forward.number("ffn_mult", high=1000.0) * hidden / 3)
            blocks.append(dense_block(text, "nemotron-nas", hidden, width=256 * math.ceil(exact / 256)))
    return mixers, blocks


def _grouped_attention(blocks: Iterable[AttentionBlock]) -> tuple[list[LlmAttentionRow], float]:
    """Identical layers counted together, in order of first appearance, and their unquantised parameters."""
    counted = Counter(blocks)
    rows = [b.row.model_copy(update={"layers": n}) for b, n in counted.items()]
    return rows, sum(b.unquantised * n for b, n in counted.items())


def _grouped_feed_forward(blocks: Iterable[FeedForwardBlock]) -> tuple[list[LlmFeedForwardRow], float]:
    counted = Counter(blocks)
    rows = [b.row.model_copy(update={"layers": n}) for b, n in counted.items()]
    return rows, sum(b.unquantised * n for b, n in counted.items())
