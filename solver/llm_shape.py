"""The architecture of one language model, as far as memory and time depend on it.

Layers are grouped: a model is a few groups of identical attention blocks and a few groups of identical
feed-forward blocks. Hybrids (sliding + full, Mamba + attention) are simply models with several groups.
"""

from dataclasses import dataclass
from typing import Literal

from solver.adapters import Adapters
from solver.audio import AudioEncoder
from solver.vision import Images, VisionEncoder

AttentionKind = Literal["full", "sliding", "chunked", "mla", "linear", "none"]


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """``layers`` identical token-mixing blocks.

    full      multi-head, multi-query or grouped-query attention over the whole context
    sliding   the same over the last ``window_tokens``
    chunked   the same within aligned chunks of ``window_tokens`` (Llama 4)
    mla       multi-head latent attention: one latent of ``kv_lora_rank + qk_rope_head_dim`` values a token and layer
    linear    recurrent state of fixed size (Mamba, gated delta net, lightning attention): ``state_values`` per sequence;
              gated delta rules say their heads of keys too, and ``head_dim`` and ``v_head_dim``
    """

    kind: AttentionKind
    layers: int
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    """Head width of values; equals ``head_dim`` unless the architecture says otherwise (0 means the same)."""
    window_tokens: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    kv_values_per_token: float = 0.0
    """Cached values per token and layer where no formula above gives it (compressed attention); 0 means: by formula."""
    attended_tokens_limit: int = 0
    """Sparse attention reads at most so many tokens of the context (0: all)."""
    index_bytes_per_token: float = 0.0
    """Bytes cached per token and layer beside keys and values, whatever their dtype (keys of a sparse indexer)."""
    state_values: float = 0.0
    """Values of recurrent state per sequence and layer (linear groups)."""
    state_value_bytes: float = 2.0
    key_heads: int = 0
    """Heads of queries and keys of a gated delta rule, whose values have ``heads``; 0: of another recurrence, or of none."""
    weights: float = 0.0
    """Parameters of one layer's token-mixing block (projections, norms inside it)."""


@dataclass(frozen=True, slots=True)
class FeedForwardGroup:
    """``layers`` identical feed-forward blocks: dense (``experts == 0``) or mixture of experts."""

    layers: int
    intermediate: int = 0
    """Width of a dense block, or 0."""
    grouped_intermediate: int = 0
    """That width in published checkpoints quantised in groups, padded so that shards hold whole groups; 0: as it is."""
    gated: bool = True
    """Gated blocks (SwiGLU) have three matrices, others two."""
    experts: int = 0
    top_k: int = 0
    expert_intermediate: int = 0
    expert_hidden: int = 0
    """Input width of routed experts when they work in a latent space (0: the model's hidden width)."""
    shared_intermediate: int = 0
    """Summed width of always-active shared experts."""
    weights: float = 0.0
    """Parameters of one layer's block, all experts and the router included."""
    active_weights: float = 0.0
    """Parameters of one layer's block that one token uses."""

    @property
    def matrices(self) -> int:
        return 3 if self.gated else 2


def makes_no_tokens(llm: str) -> str:
    """What is wrong with asking a model that embeds for replies."""
    return f"{llm} makes a vector or a score of each text and no tokens: state output_tokens 1, which stands for it"


def token_ids_not_items(llm: str) -> str:
    """What is wrong with stating how the prompts of a model that replies are sent."""
    return f"{llm} makes replies: token_ids_fraction is of models that embed; what prompts sent as token ids cost others was not measured"


@dataclass(frozen=True, slots=True)
class LlmShape:
    """One language model."""

    id: str
    family: str
    hidden: int
    vocabulary: int
    tied_embeddings: bool
    max_context_tokens: int
    attention: tuple[AttentionGroup, ...]
    feed_forward: tuple[FeedForwardGroup, ...]
    qk_norm: bool = False
    native_weights: str = "bf16"
    """Format in which the publisher ships the weights."""
    native_beside_experts: str | None = None
    """Format of everything but the routed experts in that checkpoint, where it differs (gpt-oss: bf16)."""
    other_weights: float = 0.0
    """Parameters outside layers, embedding and head (final norm, learned positions, …)."""
    unquantised_weights: float = 0.0
    """Parameters that quantised checkpoints keep at 16 bits, beyond embedding and head (router, norms, …)."""
    embeds: bool = False
    """Makes a vector or a score of a text, and no tokens: there is no output head, and no request goes beyond its prompt."""
    bidirectional: bool = False
    """Every token attends to all of its text, those after it too: a prompt is never cut into chunks."""
    extended_context_tokens: int | None = None
    """Longest context that a source states the model is served with, positions scaled; None where none does."""
    adapters: Adapters | None = None
    """Served over it by one workload; None for the model as published."""
    vision: VisionEncoder | None = None
    """What it looks at images with; None where it takes none, or where its figures are not known."""
    audio: AudioEncoder | None = None
    """What it listens with; None likewise."""
    images: Images | None = None
    """What the requests of one workload carry, videos and recordings too; None: text alone."""
    guided_fraction: float = 0.0
    """Share of the requests of one workload whose replies are held to a grammar: structured output, calls of tools."""
    token_ids_fraction: float = 0.0
    """Share of the items of one workload that are sent as token ids instead of text."""

    @property
    def encoder(self) -> VisionEncoder | AudioEncoder | None:
        """Of what requests carry; None for text alone."""
        if self.images is None:
            return None
        return self.audio if self.images.heard else self.vision

    @property
    def longest_context_tokens(self) -> int:
        """The longest context that its publisher or another source vouches for."""
        return max(self.max_context_tokens, self.extended_context_tokens or 0)

    @property
    def layers(self) -> int:
        """Depth: the larger of the two sums (a layer may have only one of the two blocks)."""
        return max(sum(a.layers for a in self.attention), sum(f.layers for f in self.feed_forward))

    @property
    def embedding_weights(self) -> float:
        """Input embedding plus output head when it is not tied."""
        return float(self.vocabulary) * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def logits(self) -> int:
        """Columns of the output head: one a token of the vocabulary, none where nothing is sampled."""
        return 0 if self.embeds else self.vocabulary

    @property
    def total_weights(self) -> float:
        """All parameters of the text model."""
        return (
            self.embedding_weights
            + self.other_weights
            + sum(a.layers * a.weights for a in self.attention)
            + sum(f.layers * f.weights for f in self.feed_forward)
        )

    @property
    def active_weights(self) -> float:
        """Parameters one token is multiplied with: routed experts counted top_k times, the input embedding left out."""
        return (
            float(self.logits) * self.hidden
            + self.other_weights
            + sum(a.layers * a.weights for a in self.attention)
            + sum(f.layers * f.active_weights for f in self.feed_forward)
        )

    def layers_of(self, kind: AttentionKind) -> int:
        """Layers whose tokens mix in one way."""
        return sum(a.layers for a in self.attention if a.kind == kind)

    @property
    def indexed_layers(self) -> int:
        """Layers that keep an index of the context, to pick the tokens they attend to."""
        return sum(a.layers for a in self.attention if a.index_bytes_per_token > 0)

    @property
    def model_class(self) -> str:
        """What models err alike in predictions with it."""
        return "adapters" if self.adapters is not None and self.images is None else self.told_by

    @property
    def told_by(self) -> str:
        """The class whose runs say how far predictions with it are off. Of adapters it is that of the model bare: loads that were measured
        with them are off by hardly more. Of images it is their own, since an encoder's work between steps is another matter. Recurrent and
        latent layers were measured in mixtures only, so those say it of dense models of such layers too
        (docs/decisions/0093-told-by-what-was-measured.md)."""
        if self.images is not None:
            return "vision"
        told_by_mixtures = self.is_moe or self.layers_of("linear") or self.layers_of("mla")
        return "embedding" if self.embeds else "moe" if told_by_mixtures else "dense"

    @property
    def is_moe(self) -> bool:
        return any(f.experts > 0 for f in self.feed_forward)
