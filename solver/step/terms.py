"""One engine step on one tensor-parallel rank: every term named, in seconds.

Laws and symbols: docs/mathematics.md, section "One engine step". All functions broadcast over numpy arrays.
A product is a pair (compute seconds, memory seconds) until it is combined by ``soft_maximum_s``: so that an
explanation can say which side of the ridge it was on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solver.llm_shape import AttentionGroup, LlmShape
from solver.step import blocks, shared_experts
from solver.step.adapter_terms import adapter_terms
from solver.step.collectives import ring_all_reduce_bytes, transfer_s
from solver.step.gemm import Quantity, gemm_bytes, gemm_flops, partial_tile_factor, soft_maximum_s, tiled_rows
from solver.step.rates import Rates
from solver.step.recurrent_terms import (
    captured_recurrent_replies_s,
    captured_recurrent_s,
    eager_recurrent_s,
    gated_output_bytes,
    is_delta_rule,
)


class Product(NamedTuple):
    """Time of matrix products if only arithmetic, or only memory, took time; and the work itself."""

    compute_s: Quantity
    memory_s: Quantity
    flops: Quantity
    bytes: Quantity

    @property
    def seconds(self) -> Quantity:
        return soft_maximum_s(self.compute_s, self.memory_s)


Layered = tuple[int, Product]
"""A product of one layer, and of how many layers it is."""


@dataclass(frozen=True, slots=True)
class Products:
    """The products of one kind in a step. Sums over all layers are made as they are asked for: tables need few of them.

    seconds: each product is combined at the ridge on its own.
    """

    of_layers: tuple[Layered, ...]

    @property
    def compute_s(self) -> Quantity:
        return total(layers * product.compute_s for layers, product in self.of_layers)

    @property
    def memory_s(self) -> Quantity:
        return total(layers * product.memory_s for layers, product in self.of_layers)

    @property
    def flops(self) -> Quantity:
        return total(layers * product.flops for layers, product in self.of_layers)

    @property
    def bytes(self) -> Quantity:
        return total(layers * product.bytes for layers, product in self.of_layers)

    @property
    def seconds(self) -> Quantity:
        return total(layers * product.seconds for layers, product in self.of_layers)


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """The part of a step that depends on the number of tokens alone, summed over all layers of the model.

    products: by kind, each split at the ridge. streams: seconds by term. bytes: per rank.
    body_s: all of it; eager_floor_s: what launching every layer from the host takes at least.
    """

    products: dict[str, Products]
    streams: dict[str, Quantity]
    body_s: Quantity
    eager_floor_s: Quantity
    bytes: Quantity
    adapter_flops: Quantity

    @property
    def flops(self) -> Quantity:
        """Per rank."""
        return self.products["gemm"].flops + self.products["experts"].flops + self.adapter_flops


def _product(
    rows: Quantity, columns: Quantity, inner: Quantity, *, weight_bytes: Quantity, activation_bytes: Quantity,
    flop_per_s: Quantity, bytes_per_s: Quantity,
) -> Product:  # fmt: skip
    flops = gemm_flops(rows, columns, inner)
    size = gemm_bytes(rows, columns, inner, weight_bytes, activation_bytes)
    return Product(flops / flop_per_s, size / bytes_per_s, flops, size)


def dense_product(rates: Rates, tokens: Quantity, tiled: Quantity, columns: Quantity, inner: Quantity) -> Product:
    """One product of ``tokens`` rows with a matrix in the deployment's weight format; in 8 bits, of ``tiled`` rows."""
    return _dense_product(rates, tokens, _row_tiles(rates, tokens, tiled), columns, inner)


RowTiles = tuple[Quantity, Quantity]
"""Rows that a product works on, and how much longer it takes because the last tile is partly empty."""


def _row_tiles(rates: Rates, tokens: Quantity, tiled: Quantity) -> RowTiles | None:
    """The same for all dense products of a step; None where none of them is in 8 bits, and rows are the tokens."""
    quantised = np.asarray(rates.quantised_activations) > 0.0
    if not quantised.any():
        return None
    worked = np.where(quantised, tiled, tokens)
    return worked, partial_tile_factor(tokens, worked, rates.partial_tile_slowdown, rates.partial_tile_read_slowdown)


def _dense_product(
    rates: Rates, tokens: Quantity, tiles: RowTiles | None, columns: Quantity, inner: Quantity
) -> Product:
    plain = _product(
        tokens, columns, inner, weight_bytes=rates.weight_bytes, activation_bytes=rates.activation_bytes,
        flop_per_s=rates.gemm_flop_per_s, bytes_per_s=rates.weight_bytes_per_s,
    )  # fmt: skip
    if tiles is None:
        return plain
    worked, factor = tiles
    return plain._replace(
        compute_s=factor * gemm_flops(worked, columns, inner) / rates.gemm_flop_per_s,
        memory_s=factor * plain.bytes / rates.weight_bytes_per_s,
    )


def wide_product(rates: Rates, tokens: Quantity, columns: Quantity, inner: Quantity) -> Product:
    """One product that stays in 16 bits whatever the weight format: router, output head."""
    return _product(
        tokens, columns, inner, weight_bytes=2.0, activation_bytes=2.0, flop_per_s=rates.wide_flop_per_s,
        bytes_per_s=rates.wide_bytes_per_s,
    )  # fmt: skip


def routed_experts_product(
    rates: Rates, tokens: Quantity, *, experts: int, top_k: int, width: float, intermediate: float, matrices: int
) -> Product:  # fmt: skip
    """All routed experts of one layer as one grouped product per rank.

        FLOPs       2·matrices·T·k·h·I′
        bytes       D · matrices · h·I′ · w                                  (each of D distinct experts is read once)
        rows        T·k + D·t/2                                              (of each expert's tiles of t rows the last is half empty)
        efficiency  η_dense / (1/s + I_½/I′)                                 (narrow experts fill fewer tiles)

    Experts are cut by tensor parallelism (I′ = I/TP), or spread whole over ``expert_parallel`` ranks, whose most loaded
    one has ``expert_imbalance`` times the mean. More expert ranks than tensor ranks means attention runs data-parallel:
    the experts then work on the tokens of all its copies, T·EP/TP, and the fullest device is told by
    ``shared_experts``. Routing that favours some experts touches fewer of them.
    """
    spread = np.maximum(rates.tensor_parallel, rates.expert_parallel)
    gathered = shared_experts.gathered_rows(rates, tokens)
    flops = 2.0 * matrices * gathered * top_k * width * intermediate / spread
    touched = blocks.distinct_experts(experts, top_k, gathered, rates.expert_evenness)
    size = touched * matrices * width * intermediate * rates.expert_weight_bytes / spread
    whole = np.asarray(rates.expert_parallel) > 1.0
    uneven = np.where(whole, rates.expert_imbalance, 1.0)
    columns = np.where(whole, intermediate, intermediate / rates.tensor_parallel)
    flop_per_s = rates.expert_flop_per_s / (1.0 / rates.expert_widest_share + rates.expert_half_width / columns)
    worked = 1.0 + touched * rates.expert_tile_rows / (2.0 * gathered * top_k)
    compute_s, memory_s = flops * worked * uneven / flop_per_s, size * uneven / rates.expert_bytes_per_s
    if np.any(shared_experts.are_shared(rates)):
        rows, read = shared_experts.fullest_device(rates, experts, top_k, gathered)
        return Product(compute_s * rows, memory_s * read, flops, size)
    return Product(compute_s, memory_s, flops, size)


def dense_products(shape: LlmShape, rates: Rates, tokens: Quantity, tiled: Quantity) -> list[Layered]:
    """Every product with a matrix outside the routed experts: attention's, dense and shared feed-forward's, routers."""
    found: list[Layered] = []
    tiles = _row_tiles(rates, tokens, tiled)
    for group in shape.attention:
        for columns, inner in blocks.attention_matrices(group, shape.hidden, rates.tensor_parallel):
            found.append((group.layers, _dense_product(rates, tokens, tiles, columns, inner)))
    h = float(shape.hidden)
    for ffn in shape.feed_forward:
        if blocks.dense_width(ffn) > 0:
            width = blocks.dense_width(ffn) / rates.tensor_parallel
            found.append((ffn.layers, _dense_product(rates, tokens, tiles, (ffn.matrices - 1) * width, h)))
            found.append((ffn.layers, _dense_product(rates, tokens, tiles, h, width)))
        if ffn.experts > 0:
            found.append((ffn.layers, wide_product(rates, tokens, float(ffn.experts), h)))
    return found


def routed_products(shape: LlmShape, rates: Rates, tokens: Quantity) -> list[Layered]:
    """The grouped products of routed experts."""
    return [
        (
            ffn.layers,
            routed_experts_product(
                rates, tokens, experts=ffn.experts, top_k=ffn.top_k, width=blocks.expert_width(ffn, shape),
                intermediate=float(ffn.expert_intermediate), matrices=ffn.matrices,
            ),
        )
        for ffn in shape.feed_forward
        if ffn.experts > 0
    ]  # fmt: skip


def total(parts: Iterable[Quantity], start: Quantity = 0.0) -> Quantity:
    """Plain sum from the left, as wide as its widest part."""
    for part in parts:
        start = start + part
    return start


def element_wise_bytes(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """What norms, residuals, positions, activations and the routing of experts read and write: 16-bit values."""
    tp, h = rates.tensor_parallel, float(shape.hidden)
    parts: list[Quantity] = []
    for group in shape.attention:
        query, key_value = blocks.attention_width(group, tp)
        per_token = 8.0 * h + 4.0 * (query + key_value) + (4.0 * (query + key_value / 2.0) if shape.qk_norm else 0.0)
        per_token = per_token + (gated_output_bytes(group, tp) if is_delta_rule(group) else 0.0)
        parts.append(group.layers * per_token * tokens)
    spread = np.maximum(tp, rates.expert_parallel)
    shared, passed = shared_experts.are_shared(rates), shared_experts.sharing_copies(rates)
    for ffn in shape.feed_forward:
        parts.append(ffn.layers * (8.0 * h + (2.0 * ffn.matrices) * (blocks.dense_width(ffn) / tp)) * tokens)
        if ffn.experts > 0:
            inner = blocks.expert_width(ffn, shape)
            # A cut of every expert still reads its rows' whole inputs and writes whole outputs; whole experts of one copy see their
            # own rows, those that copies share pass over every gathered row, and write zeros for experts of other devices.
            within = 2.0 * ffn.matrices * ffn.expert_intermediate / np.where(shared, 1.0, spread)
            around = 4.0 * inner / np.where(shared, 1.0, rates.expert_parallel)
            parts.append(ffn.layers * tokens * (ffn.top_k * (within + around) * passed + 2.0 * h))
    return total(parts)


def quantised_bytes(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Quantising activations in front of dense products: 16 bits read and 8 written of each value; 0 where none are."""
    tp, h, quantised = rates.tensor_parallel, float(shape.hidden), rates.quantised_activations
    widths = [(group.layers, blocks.attention_width(group, tp)[0]) for group in shape.attention]
    widths += [(ffn.layers, blocks.dense_width(ffn) / tp) for ffn in shape.feed_forward]
    return total(layers * quantised * 3.0 * (h + width) * tokens for layers, width in widths)


def passed_state_bytes(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Recurrent states that tokens pass through in chunks, one pass a chunk; gated delta rules scan by a law of their own."""
    return total(
        group.layers * recurrent_state_bytes(group, rates) * tokens / rates.recurrent_chunk_tokens
        for group in shape.attention
        if group.kind == "linear" and not is_delta_rule(group)
    )


def all_reduce_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Seconds in which tensor-parallel ranks add up the outputs of every block; 0 for one rank."""
    size = ring_all_reduce_bytes(2.0 * tokens * float(shape.hidden), rates.tensor_parallel)
    each = transfer_s(size, rates.link_bytes_per_s, rates.all_reduce_latency_s)
    return np.where(np.asarray(rates.tensor_parallel) > 1.0, blocks.reduced_blocks(shape) * each, 0.0)


def layer_overhead_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds between kernels that no roofline sees, over all layers, by what a layer contains."""
    return (
        blocks.quantised_blocks(shape) / 2.0 * rates.quantised_layer_overhead_s
        + shape.layers * (rates.layer_overhead_s + (rates.qk_norm_layer_overhead_s if shape.qk_norm else 0.0))
        + blocks.expert_layers(shape) * rates.expert_layer_overhead_s
        + shape.layers_of("linear") * rates.linear_layer_overhead_s
        + shape.layers_of("mla") * rates.latent_layer_overhead_s
        + shape.indexed_layers * rates.index_layer_overhead_s
    )


def eager_floor_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that launching every layer's kernels and collectives from the host takes, outside a captured graph."""
    collectives = np.where(
        np.asarray(rates.tensor_parallel) > 1.0, blocks.reduced_blocks(shape) * rates.eager_collective_s, 0.0
    )
    return (
        shape.layers * (rates.item_eager_layer_s if shape.embeds else rates.eager_layer_s)
        + blocks.expert_layers(shape) * rates.eager_expert_layer_s
        + eager_recurrent_s(shape, rates)
        + shape.layers_of("mla") * rates.eager_latent_layer_s
        + collectives
        + shared_experts.eager_exchange_s(rates, blocks.expert_layers(shape))
    )


def captured_floor_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that a captured step with prompts takes at least: attention over prompts is in no graph, and what it launches between the
    captured pieces is much where attention is latent (docs/decisions/0103-the-exchange-of-copies.md), and where layers are recurrent."""
    return shape.layers_of("mla") * rates.captured_latent_layer_s + captured_recurrent_s(shape, rates)


def captured_beside_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds by which that is more where others decode in the step: replies are launched by themselves, after prompts
    (docs/decisions/0104-launched-in-line.md)."""
    return shape.layers_of("mla") * rates.captured_latent_replies_s + captured_recurrent_replies_s(shape, rates)


def piecewise_decode_floor_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that a captured step of replies takes at least: of models with chunked attention no step is in one graph, and every layer
    is launched between captured pieces (docs/decisions/0111-stages-that-wait.md)."""
    return shape.layers * rates.piecewise_decode_layer_s if shape.layers_of("chunked") else 0.0


def token_terms(shape: LlmShape, rates: Rates, tokens: Quantity, tiled: Quantity | None = None) -> TokenTerms:
    """Everything in a step that the number of tokens decides, over all layers, without head and without attention's
    context-dependent part.

    tokens: T ≥ 1, float or array. tiled: rows that 8-bit products work on, where it is not ``tiled_rows(tokens)``.
    """
    dense = Products(tuple(dense_products(shape, rates, tokens, tiled_rows(tokens) if tiled is None else tiled)))
    routed = Products(tuple(routed_products(shape, rates, tokens)))
    dense_s, routed_s = dense.seconds, routed.seconds
    stream_bytes = element_wise_bytes(shape, rates, tokens)
    quantise_bytes = quantised_bytes(shape, rates, tokens)
    state_bytes = passed_state_bytes(shape, rates, tokens)
    streams = {
        "element_wise": stream_bytes / rates.stream_bytes_per_s,
        "quantise": quantise_bytes / rates.stream_bytes_per_s,
        "recurrent_state": state_bytes / rates.state_bytes_per_s,
        "all_reduce": all_reduce_s(shape, rates, tokens),
        "all_to_all": shared_experts.all_to_all_s(shape, rates, tokens),
        "layer_overhead": layer_overhead_s(shape, rates)
        + shared_experts.layers_overhead_s(shape, rates, tokens)
        + 0.0 * tokens,
    }
    adapted = adapter_terms(shape, rates, tokens)
    if adapted is not None:
        streams |= {"adapters": adapted.products_s, "adapter_overhead": adapted.overhead_s + 0.0 * tokens}
    moved_bytes = dense.bytes + routed.bytes + stream_bytes + quantise_bytes + state_bytes
    return TokenTerms(
        products={"gemm": dense, "experts": routed},
        streams=streams | {"gemm": dense_s, "experts": routed_s},
        body_s=total(streams.values(), dense_s + routed_s),
        eager_floor_s=eager_floor_s(shape, rates) + (0.0 if adapted is None else adapted.eager_s),
        bytes=moved_bytes + (0.0 if adapted is None else adapted.bytes),
        adapter_flops=0.0 if adapted is None else adapted.flops,
    )


@lru_cache(maxsize=16)
def step_token_terms(shape: LlmShape, rates: Rates, tokens: float) -> TokenTerms:
    """``token_terms`` of one step of one deployment. Kept: an estimate's terms and its operators are of the same two steps."""
    return token_terms(shape, rates, tokens)


def head_product(shape: LlmShape, rates: Rates, rows: Quantity) -> Product:
    """Output head for the rows that sample a token (vocabulary cut by tensor parallelism, always 16 bits)."""
    return wide_product(rates, rows, shape.logits / rates.tensor_parallel, float(shape.hidden))


def sampling_s(shape: LlmShape, rates: Rates, rows: Quantity) -> Quantity:
    """Passes over the logits of the sampled rows: about ten bytes a logit (16-bit write, 32-bit read and write)."""
    return 10.0 * rows * shape.logits / rates.tensor_parallel / rates.stream_bytes_per_s


def decode_context_s(shape: LlmShape, rates: Rates, queries: Quantity = 1.0) -> list[tuple[float, Quantity, Quantity]]:
    """Per attention group: (context limit, seconds, bytes) per context token of a decoding sequence, over its layers.

    Memory and arithmetic of decode attention combine like a product's; only latent attention comes near the ridge.
    queries: tokens of one sequence that look at its cache in the same step, which is read once for all of them.
    """
    result = []
    for group in shape.attention:
        values = blocks.kv_values_read_per_token(group, rates.tensor_parallel)
        size = values * rates.kv_bytes
        seconds = soft_maximum_s(
            queries * blocks.decode_pair_flops(group, rates.tensor_parallel) / rates.attention_flop_per_s,
            size / rates.kv_bytes_per_s,
        )
        if group.kind not in ("none", "linear"):
            result.append((blocks.context_limit(group), group.layers * seconds, group.layers * size))
    return result


def recurrent_state_bytes(group: AttentionGroup, rates: Rates) -> Quantity:
    """One pass over the recurrent state of one sequence in one layer, per rank: read and written, 2·S·b/TP."""
    return 2.0 * group.state_values * group.state_value_bytes / rates.tensor_parallel


def recurrent_state_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds to update the recurrent states of one decoding sequence, over all layers: once a step each.

    A prompt's tokens pass through in chunks instead, one pass a chunk: see ``token_terms``.
    """
    linear = (group for group in shape.attention if group.kind == "linear")
    return total(group.layers * recurrent_state_bytes(group, rates) for group in linear) / rates.state_bytes_per_s


def sequence_s(shape: LlmShape, rates: Rates) -> Quantity:
    """What every decoding sequence adds to a step whatever its context: attention's fixed cost, its recurrent state, the host."""
    fixed = decode_sequence_s(shape, rates) + recurrent_state_s(shape, rates) + rates.sequence_overhead_s
    return fixed + grammar_s(shape, rates)


def grammar_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Masks of admitted tokens, of the share of sequences that need one, filled one after another: an upper bound where an engine
    fills them beside the device's work."""
    return shape.guided_fraction * rates.grammar_mask_s if shape.guided_fraction else 0.0


def decode_sequence_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Fixed cost of one decoding sequence in attention, over all layers."""
    return total(seconds for _, seconds, _ in decode_context_s(shape, rates)) * rates.decode_sequence_tokens


def prefill_pair_s(shape: LlmShape, rates: Rates) -> list[tuple[float, Quantity, Quantity]]:
    """Per attention group: (context limit, seconds, FLOPs) per (query, key) pair of a prefill chunk, over its layers."""
    return [
        (
            blocks.context_limit(group),
            _directions(shape, group)
            * group.layers
            * blocks.pair_flops(group, rates.tensor_parallel)
            / rates.attention_flop_per_s,
            _directions(shape, group) * group.layers * blocks.pair_flops(group, rates.tensor_parallel),
        )
        for group in shape.attention
        if group.kind not in ("none", "linear")
    ]


def _directions(shape: LlmShape, group: AttentionGroup) -> float:
    """Pairs a whole text has over those that looking back alone has: twice as many, within a window as many."""
    return 2.0 if shape.bidirectional and group.kind == "full" else 1.0


def hand_over_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Activations of one step passing from one pipeline stage to the next."""
    return transfer_s(2.0 * tokens * shape.hidden, rates.hand_over_bytes_per_s, rates.hand_over_latency_s)
