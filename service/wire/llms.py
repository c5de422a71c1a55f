"""GET and POST /v1/llms."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from service.wire.quantities import Answer, ProvenanceOut, Request, Slug

DEEPEST_CONFIG = 32


def _not_too_deep(config: dict[str, Any]) -> dict[str, Any]:
    """Walks with a list instead of recursion: the point is to survive what would exhaust the stack."""
    level: list[Any] = [config]
    for _ in range(DEEPEST_CONFIG):
        level = [child for value in level for child in _children(value)]
        if not level:
            return config
    raise ValueError(f"nested deeper than {DEEPEST_CONFIG} levels")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


class LlmIn(Request):
    """A model to add: an id of your choice and its Hugging Face ``config.json``."""

    id: Slug
    config: Annotated[dict[str, Any], AfterValidator(_not_too_deep)]
    hugging_face_id: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*$", max_length=200)] | None
    ) = None
    """The repository that holds its weights, such as ``meta-llama/Llama-3.1-8B``; null: files that start servers of it cannot be
    written."""
    embeds: bool = False
    """Of a decoder, whose config does not tell. Encoders (BERT, RoBERTa, XLM-RoBERTa) always do."""


class AttentionOut(Answer):
    """A group of identical token-mixing layers; widths that the kind does not have are 0."""

    kind: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window_tokens: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    kv_values_per_token: float
    attended_tokens_limit: int
    index_bytes_per_token: float
    state_values: float
    state_value_bytes: float
    key_heads: int = Field(default_factory=int)
    """Of a gated delta rule, whose values have ``heads``; 0 of any other layer."""
    weights: float


class FeedForwardOut(Answer):
    """A group of identical feed-forward layers, dense or mixture of experts."""

    layers: int
    intermediate: int
    grouped_intermediate: int = Field(default_factory=int)
    """Of published checkpoints whose weights are quantised in groups; 0 where it is the same."""
    gated: bool
    experts: int
    top_k: int
    expert_intermediate: int
    expert_hidden: int
    shared_intermediate: int
    weights: float
    active_weights: float


class VisionOut(Answer):
    """A vision encoder: patches of ``patch_px`` pixels a side, ``merge``² of which become a token of the model. Figures that it does
    not have are 0. ``most_tiles``: of ``image_px`` a side, into which an image is cut; ``projector``: width of its projectors, where
    that is not the patches'."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    gated: bool
    patch_px: int
    merge: int
    image_px: int
    least_px: int
    most_px: int
    tokens: int
    """Of every image, where their number is fixed."""
    extra_projectors: int
    window_patches: int
    full_layers: int
    weights: float
    most_tiles: int = Field(default_factory=int)
    projector: int = Field(default_factory=int)
    clip_frames: int = Field(default_factory=int)
    least_clip_px: int = Field(default_factory=int)
    most_clip_px: int = Field(default_factory=int)
    least_frames: int = Field(default_factory=int)
    most_frames: int = Field(default_factory=int)


class AudioOut(Answer):
    """An audio encoder: chunks of ``chunk_s`` are heard each by itself, and ``pooled`` positions, of a fiftieth of a second each, become a
    token."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    pooled: int
    chunk_s: float
    most_s: float
    """Longest recording; 0: any."""
    padded_tokens: bool
    """The tokens of whole chunks count, padding and all."""
    joined: bool
    """Positions that become a token are joined side by side; else averaged."""
    weights: float


class LlmOut(Answer):
    """One model. ``total_weights`` and ``active_weights`` are counts of parameters, computed from the widths."""

    id: str
    name: str
    hugging_face_id: str | None
    family: str
    origin: str
    """``catalog``: from the catalog files; ``user``: added over the API."""
    hidden: int
    vocabulary: int
    tied_embeddings: bool
    max_context_tokens: int
    extended_context_tokens: int | None = None
    layers: int
    attention: list[AttentionOut]
    feed_forward: list[FeedForwardOut]
    qk_norm: bool
    embeds: bool
    bidirectional: bool
    audio: AudioOut | None = None
    """Null where it takes no recordings, or its encoder's figures are not known."""
    vision: VisionOut | None = None
    """Null where it takes no images, or its encoder's figures are not known."""
    native_weights: str
    native_beside_experts: str | None
    other_weights: float
    """Outside layers, embedding and head."""
    unquantised_weights: float
    """Kept in 16 bits by quantised checkpoints, beyond embedding and head."""
    total_weights: float
    active_weights: float
    published_total_weights: float | None
    published_active_weights: float | None
    weight_bytes: dict[str, int]
    """Of the whole model, by weight format."""
    kv_cache_bytes_per_token: dict[str, float]
    """Of one more token of context while no window is full, by cache format."""
    state_bytes_per_sequence: float
    """Of recurrent layers, whatever the context."""
    provenance: ProvenanceOut
