"""What training needs to know of a language model: sums over its layers, in which memory and time are linear."""

from dataclasses import dataclass
from functools import lru_cache

from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape

VALUE_BYTES = 2.0
"""Of activations and gathered weights: bf16 or fp16."""


@dataclass(frozen=True, slots=True)
class TrainingShape:
    """Sums over all layers of one model at one sequence length.

    linear_weights: of matrices that every token passes, embedding and head left out.
    expert_weights: of all routed experts; active_expert_weights: of those that one token uses.
    attention_flop_per_token: of the two products of queries with keys and of scores with values, forward, causal.
    full_attention_flop_per_token: the same when nothing is masked, as older conventions count it.
    saved_values_per_token: what the backward pass reads again of one token, in values; product_inputs_per_token: those of them
    that are a product's input and nothing else's; saved_inputs_per_token: of layers' inputs alone.
    recurrent_values_per_token: width of the projections of state-space and linear-attention layers.
    widest: the widest feed-forward block that is not an expert.
    """

    layers: int
    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    widest: int
    linear_weights: float
    expert_weights: float
    active_expert_weights: float
    expert_layers: int
    experts: int
    top_k: int
    expert_intermediate: int
    expert_hidden: int
    recurrent_values_per_token: float
    head_weights: float
    embedding_weights: float
    other_weights: float
    attention_flop_per_token: float
    full_attention_flop_per_token: float
    kv_values_per_token: float
    saved_values_per_token: float
    product_inputs_per_token: float
    saved_inputs_per_token: float
    max_context_tokens: int
    learned_positions: bool

    @property
    def total_weights(self) -> float:
        return self.linear_weights + self.expert_weights + self.embedding_weights + self.other_weights

    @property
    def active_weights(self) -> float:
        """Parameters one token is multiplied with, the output head among them."""
        return self.linear_weights + self.active_expert_weights + self.head_weights


def mean_span_tokens(group: AttentionGroup, sequence_tokens: int) -> float:
    """Earlier tokens that a token of a sequence attends to on average: half of the sequence, or less within a window.

    Of a window w over s tokens: the first w see half of it, the others all: w − w²/(2 s).

    >>> mean_span_tokens(AttentionGroup("full", 1, 8, 8, 128), 4096)
    2048.0
    >>> mean_span_tokens(AttentionGroup("sliding", 1, 8, 8, 128, window_tokens=1024), 4096)
    896.0
    """
    s = float(sequence_tokens)
    if group.kind == "chunked" and 0 < group.window_tokens < s:
        return group.window_tokens / 2.0
    limit = float(group.window_tokens if group.kind == "sliding" else 0) or float(group.attended_tokens_limit) or s
    w = min(s, limit)
    return w - w * w / (2.0 * s)


def attention_flop(group: AttentionGroup, span_tokens: float) -> float:
    """Floating-point operations of one layer's two attention products for one token: 2·span·heads·(d_qk + d_v).

    >>> attention_flop(AttentionGroup("full", 1, heads=8, kv_heads=8, head_dim=128), 100.0)
    409600.0
    """
    if group.kind in ("linear", "none"):
        return 0.0
    keys, values = _head_widths(group)
    return 2.0 * span_tokens * group.heads * (keys + values)


def saved_values(group: AttentionGroup, hidden: int) -> float:
    """Values of one token that the backward pass of one token-mixing layer reads again, with a fused attention kernel:
    the input and its norm, queries, keys, values, and the attention's output.
    """
    keys, values = _head_widths(group)
    if group.kind in ("linear", "none"):
        return 2.0 * hidden + (4.0 * hidden if group.kind == "linear" else 0.0)
    return 2.0 * hidden + group.heads * (keys + values) + max(group.kv_heads, 1) * (keys + values)


def saved_feed_forward_values(group: FeedForwardGroup, hidden: int) -> float:
    """The same of one feed-forward layer: the input and its norm, and of each used block the products and what they become."""
    width = group.intermediate + group.shared_intermediate + group.top_k * group.expert_intermediate
    routed = group.top_k * (group.expert_hidden or hidden)
    return 2.0 * hidden + group.matrices * width + routed


def product_inputs(group: FeedForwardGroup, hidden: int) -> float:
    """Of those, what products alone read again, which software that computes in 8 or 4 bits keeps in them: the normed input,
    what goes into the last matrix of each block, and the tokens that experts were sent.
    """
    width = group.intermediate + group.shared_intermediate + group.top_k * group.expert_intermediate
    return hidden + width + group.top_k * (group.expert_hidden or hidden)


@lru_cache(maxsize=512)
def training_shape(shape: LlmShape, sequence_tokens: int) -> TrainingShape:
    """Sum a model up. The head is a product of its own, tied to the embedding or not."""
    hidden = shape.hidden
    mixing = [a for a in shape.attention if a.kind not in ("linear", "none")]
    routed = [f for f in shape.feed_forward if f.experts > 0]
    expert = {f: f.matrices * float(f.expert_intermediate) * (f.expert_hidden or hidden) for f in routed}
    expert_weights = sum(f.layers * f.experts * expert[f] for f in routed)
    main = max(routed, key=lambda f: f.layers, default=FeedForwardGroup(0))
    first = max(mixing, key=lambda a: a.heads, default=AttentionGroup("none", 0, 1, 1, hidden))
    block_weights = sum(a.layers * a.weights for a in shape.attention) + sum(
        f.layers * f.weights for f in shape.feed_forward
    )
    return TrainingShape(
        layers=shape.layers,
        hidden=hidden,
        vocabulary=shape.vocabulary,
        heads=first.heads,
        kv_heads=max(first.kv_heads, 1),
        head_dim=sum(_head_widths(first)) // 2 if mixing else 128,
        widest=max((f.intermediate + f.shared_intermediate for f in shape.feed_forward), default=0),
        linear_weights=max(block_weights - expert_weights, 0.0),
        expert_weights=expert_weights,
        active_expert_weights=sum(f.layers * f.top_k * expert[f] for f in routed),
        expert_layers=sum(f.layers for f in routed),
        experts=main.experts,
        top_k=main.top_k,
        expert_intermediate=main.expert_intermediate,
        expert_hidden=main.expert_hidden or hidden,
        recurrent_values_per_token=sum(a.layers * a.weights / hidden for a in shape.attention if a.kind == "linear"),
        head_weights=float(shape.vocabulary) * hidden,
        embedding_weights=shape.embedding_weights,
        other_weights=shape.other_weights,
        attention_flop_per_token=sum(
            a.layers * attention_flop(a, mean_span_tokens(a, sequence_tokens)) for a in mixing
        ),
        full_attention_flop_per_token=sum(a.layers * attention_flop(a, float(sequence_tokens)) for a in mixing),
        kv_values_per_token=sum(a.layers * max(a.kv_heads, 1) * sum(_head_widths(a)) for a in mixing),
        saved_values_per_token=sum(a.layers * saved_values(a, hidden) for a in shape.attention)
        + sum(f.layers * saved_feed_forward_values(f, hidden) for f in shape.feed_forward),
        product_inputs_per_token=sum(a.layers * float(hidden) for a in shape.attention)
        + sum(f.layers * product_inputs(f, hidden) for f in shape.feed_forward),
        saved_inputs_per_token=float(shape.layers * hidden),
        max_context_tokens=shape.max_context_tokens,
        learned_positions=shape.other_weights >= float(shape.max_context_tokens) * hidden,
    )


def _head_widths(group: AttentionGroup) -> tuple[int, int]:
    """Of queries and keys, and of values."""
    if group.kind == "mla":
        return group.qk_nope_head_dim + group.qk_rope_head_dim, group.v_head_dim or group.qk_nope_head_dim
    return group.head_dim, group.v_head_dim or group.head_dim
