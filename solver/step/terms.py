"""One engine step on one tensor-parallel rank: every term named, in seconds.

Laws and symbols: docs/mathematics.md, section "One engine step". All functions broadcast over numpy arrays.
A product is a pair (compute seconds, memory seconds) until it is combined by ``soft_maximum_s``: so that an
explanation can say which side of the ridge it was on.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solver.llm_shape import AttentionGroup, LlmShape
from solver.step import blocks
from solver.step.adapter_terms import adapter_terms
from solver.step.collectives import all_to_all_bytes, ring_all_reduce_bytes, transfer_s
from solver.step.gemm import Quantity, gemm_bytes, gemm_flops, partial_tile_factor, soft_maximum_s, tiled_rows
from solver.step.rates import Rates


class Product(NamedTuple):
    """Time of matrix products if only arithmetic, or only memory, took time; and the work itself."""

    compute_s: Quantity
    memory_s: Quantity
    flops: Quantity
    bytes: Quantity

    @property
    def seconds(self) -> Quantity:
        return soft_maximum_s(self.compute_s, self.memory_s)


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """The part of a step that depends on the number of tokens alone, summed over all layers of the model.

    products: seconds by term, each split at the ridge. streams: seconds by term. flops, bytes: per rank.
    body_s: all of it; eager_floor_s: what launching every layer from the host takes at least.
    """

    products: dict[str, Product]
    streams: dict[str, Quantity]
    body_s: Quantity
    eager_floor_s: Quantity
    flops: Quantity
    bytes: Quantity


def _product(
    rows: Quantity, columns: Quantity, inner: Quantity, *, weight_bytes: Quantity, activation_bytes: Quantity,
    flop_per_s: Quantity, bytes_per_s: Quantity, worked_rows: Quantity, factor: Quantity = 1.0,
) -> Product:  # fmt: skip
    size = gemm_bytes(rows, columns, inner, weight_bytes, activation_bytes)
    return Product(
        factor * gemm_flops(worked_rows, columns, inner) / flop_per_s,
        factor * size / bytes_per_s,
        gemm_flops(rows, columns, inner),
        size,
    )


def dense_product(rates: Rates, tokens: Quantity, tiled: Quantity, columns: Quantity, inner: Quantity) -> Product:
    """One product of ``tokens`` rows with a matrix in the deployment's weight format; in 8 bits, of ``tiled`` rows."""
    worked = np.where(np.asarray(rates.quantised_activations) > 0.0, tiled, tokens)
    return _product(
        tokens, columns, inner, weight_bytes=rates.weight_bytes, activation_bytes=rates.activation_bytes,
        flop_per_s=rates.gemm_flop_per_s, bytes_per_s=rates.weight_bytes_per_s, worked_rows=worked,
        factor=partial_tile_factor(tokens, worked, rates.partial_tile_slowdown, rates.partial_tile_read_slowdown),
    )  # fmt: skip


def wide_product(rates: Rates, tokens: Quantity, columns: Quantity, inner: Quantity) -> Product:
    """One product that stays in 16 bits whatever the weight format: router, output head."""
    return _product(
        tokens, columns, inner, weight_bytes=2.0, activation_bytes=2.0, flop_per_s=rates.wide_flop_per_s,
        bytes_per_s=rates.wide_bytes_per_s, worked_rows=tokens,
    )  # fmt: skip


def routed_experts_product(
    rates: Rates, tokens: Quantity, *, experts: int, top_k: int, width: float, intermediate: float, matrices: int
) -> Product:
    """All routed experts of one layer as one grouped product per rank.

        FLOPs       2·matrices·T·k·h·I′
        bytes       distinct experts · matrices · h·I′ · w                  (each touched expert is read once)
        efficiency  η_dense · I′/(I′ + I_½)                                  (narrow experts fill fewer tiles)

    Experts are cut by tensor parallelism (I′ = I/TP), or spread whole over ``expert_parallel`` ranks, whose most loaded
    one has ``expert_imbalance`` times the mean. More expert ranks than tensor ranks means attention runs data-parallel:
    the experts then see the tokens of all its copies. Routing that favours some experts touches fewer of them.
    """
    spread = np.maximum(rates.tensor_parallel, rates.expert_parallel)
    seen = tokens * (spread / rates.tensor_parallel)
    flops = 2.0 * matrices * seen * top_k * width * intermediate / spread
    touched = blocks.distinct_experts(experts, top_k, seen, rates.expert_evenness)
    size = touched * matrices * width * intermediate * rates.expert_weight_bytes / spread
    whole = np.asarray(rates.expert_parallel) > 1.0
    uneven = np.where(whole, rates.expert_imbalance, 1.0)
    columns = np.where(whole, intermediate, intermediate / rates.tensor_parallel)
    flop_per_s = rates.expert_flop_per_s * columns / (columns + rates.expert_half_width)
    return Product(flops * uneven / flop_per_s, size * uneven / rates.expert_bytes_per_s, flops, size)


def token_terms(shape: LlmShape, rates: Rates, tokens: Quantity, tiled: Quantity | None = None) -> TokenTerms:
    """Everything in a step that the number of tokens decides, over all layers, without head and without attention's
    context-dependent part.

    tokens: T ≥ 1, float or array. tiled: rows that 8-bit products work on, where it is not ``tiled_rows(tokens)``.
    """
    tp = rates.tensor_parallel
    tiled = tiled_rows(tokens) if tiled is None else tiled
    h = float(shape.hidden)
    dense_s: Quantity = 0.0
    expert_s: Quantity = 0.0
    sums: dict[str, list[Quantity]] = {"gemm": [0.0, 0.0, 0.0, 0.0], "experts": [0.0, 0.0, 0.0, 0.0]}

    def add(kind: str, product: Product, layers: int) -> Quantity:
        for i, part in enumerate(product):
            sums[kind][i] = sums[kind][i] + layers * part
        return layers * product.seconds

    stream_bytes: Quantity = 0.0
    quantise_bytes: Quantity = 0.0
    state_bytes: Quantity = 0.0
    quantised = rates.quantised_activations
    for group in shape.attention:
        for columns, inner in blocks.attention_matrices(group, shape.hidden, tp):
            dense_s = dense_s + add("gemm", dense_product(rates, tokens, tiled, columns, inner), group.layers)
        query, key_value = blocks.attention_width(group, tp)
        per_token = 8.0 * h + 4.0 * (query + key_value) + (4.0 * (query + key_value / 2.0) if shape.qk_norm else 0.0)
        stream_bytes = stream_bytes + group.layers * per_token * tokens
        quantise_bytes = quantise_bytes + group.layers * quantised * 3.0 * (h + query) * tokens
        if group.kind == "linear":
            state_bytes = (
                state_bytes + group.layers * recurrent_state_bytes(group, rates) * tokens / rates.recurrent_chunk_tokens
            )
    expert_layers = 0
    all_to_all = 0.0 * tokens
    for ffn in shape.feed_forward:
        width = blocks.dense_width(ffn) / tp
        stream_bytes = stream_bytes + ffn.layers * (8.0 * h + (2.0 * ffn.matrices) * width) * tokens
        quantise_bytes = quantise_bytes + ffn.layers * quantised * 3.0 * (h + width) * tokens
        if blocks.dense_width(ffn) > 0:
            up = (ffn.matrices - 1) * width
            dense_s = dense_s + add("gemm", dense_product(rates, tokens, tiled, up, h), ffn.layers)
            dense_s = dense_s + add("gemm", dense_product(rates, tokens, tiled, h, width), ffn.layers)
        if ffn.experts > 0:
            expert_layers += ffn.layers
            dense_s = dense_s + add("gemm", wide_product(rates, tokens, float(ffn.experts), h), ffn.layers)
            inner = blocks.expert_width(ffn, shape)
            routed = routed_experts_product(
                rates, tokens, experts=ffn.experts, top_k=ffn.top_k, width=inner,
                intermediate=float(ffn.expert_intermediate), matrices=ffn.matrices,
            )  # fmt: skip
            expert_s = expert_s + add("experts", routed, ffn.layers)
            spread = np.maximum(tp, rates.expert_parallel)
            stream_bytes = stream_bytes + ffn.layers * tokens * (
                ffn.top_k * (2.0 * ffn.matrices * ffn.expert_intermediate + 4.0 * inner) / spread + 2.0 * h
            )
            exchange = 2.0 * transfer_s(
                all_to_all_bytes(2.0 * tokens * ffn.top_k * inner / tp, rates.expert_parallel),
                rates.link_bytes_per_s,
                rates.all_reduce_latency_s,
            )
            all_to_all = all_to_all + ffn.layers * np.where(np.asarray(rates.expert_parallel) > 1.0, exchange, 0.0)
    blocks_with_reduce = sum(a.layers for a in shape.attention if a.kind != "none") + sum(
        f.layers for f in shape.feed_forward
    )
    reduce_s = np.where(
        np.asarray(tp) > 1.0,
        blocks_with_reduce
        * transfer_s(ring_all_reduce_bytes(2.0 * tokens * h, tp), rates.link_bytes_per_s, rates.all_reduce_latency_s),
        0.0,
    )
    linear_layers = shape.layers_of("linear")
    latent_layers = shape.layers_of("mla")
    overhead = (
        shape.layers * (rates.layer_overhead_s + (rates.qk_norm_layer_overhead_s if shape.qk_norm else 0.0))
        + expert_layers * rates.expert_layer_overhead_s
        + linear_layers * rates.linear_layer_overhead_s
        + latent_layers * rates.latent_layer_overhead_s
        + shape.indexed_layers * rates.index_layer_overhead_s
    )
    streams = {
        "element_wise": stream_bytes / rates.stream_bytes_per_s,
        "quantise": quantise_bytes / rates.stream_bytes_per_s,
        "recurrent_state": state_bytes / rates.state_bytes_per_s,
        "all_reduce": reduce_s,
        "all_to_all": all_to_all,
        "layer_overhead": overhead + 0.0 * tokens,
    }
    adapted = adapter_terms(shape, rates, tokens)
    if adapted is not None:
        streams |= {"adapters": adapted.products_s, "adapter_overhead": adapted.overhead_s + 0.0 * tokens}
    body: Quantity = dense_s + expert_s
    for seconds in streams.values():
        body = body + seconds
    return TokenTerms(
        products={kind: Product(*parts) for kind, parts in sums.items()} | {},
        streams=streams | {"gemm": dense_s, "experts": expert_s},
        body_s=body,
        eager_floor_s=shape.layers * rates.eager_layer_s
        + expert_layers * rates.eager_expert_layer_s
        + linear_layers * rates.eager_linear_layer_s
        + latent_layers * rates.eager_latent_layer_s
        + np.where(np.asarray(tp) > 1.0, blocks_with_reduce * rates.eager_collective_s, 0.0)
        + (0.0 if adapted is None else adapted.eager_s),
        flops=sums["gemm"][2] + sums["experts"][2] + (0.0 if adapted is None else adapted.flops),
        bytes=sums["gemm"][3]
        + sums["experts"][3]
        + stream_bytes
        + quantise_bytes
        + state_bytes
        + (0.0 if adapted is None else adapted.bytes),
    )


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
    total: Quantity = 0.0
    for group in shape.attention:
        if group.kind == "linear":
            total = total + group.layers * recurrent_state_bytes(group, rates)
    return total / rates.state_bytes_per_s


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
    total: Quantity = 0.0
    for _, seconds, _ in decode_context_s(shape, rates):
        total = total + seconds
    return total * rates.decode_sequence_tokens


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
