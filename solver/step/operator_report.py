"""The operators of one step on the device's roofline: work, bytes and time of each (Williams, Waterman and Patterson, 2009).

Per device of the tensor-parallel group, over all layers. Element-wise passes and links have no matrix work and are left
out: ``solver.step.named_terms`` has their time.
"""

from dataclasses import dataclass

import numpy as np

from solver.llm_shape import LlmShape
from solver.step import blocks, terms
from solver.step.gemm import Quantity, soft_maximum_s
from solver.step.rates import Rates
from solver.workload import Traffic


@dataclass(frozen=True, slots=True)
class Operator:
    """name: dense_products, expert_products, output_head, decode_attention or prefill_attention."""

    name: str
    flops: float
    bytes: float
    seconds: float

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity: where the operator stands on the roofline's horizontal axis."""
        return self.flops / self.bytes

    @property
    def flop_per_s(self) -> float:
        return self.flops / self.seconds


def roof_flop_per_s(flop_per_byte: float, peak_flop_per_s: float, peak_bytes_per_s: float) -> float:
    """The most an operator of this intensity can do.

        min(peak, intensity · bandwidth)

    >>> roof_flop_per_s(2.0, 100.0, 10.0), roof_flop_per_s(50.0, 100.0, 10.0)
    (20.0, 100.0)
    """
    return min(peak_flop_per_s, flop_per_byte * peak_bytes_per_s)


def prefill_attention_bytes(shape: LlmShape, rates: Rates, tokens: float) -> float:
    """Bytes that attention over a prompt moves at least, in 16 bits: queries in, results out, keys and values once.

    2·(2·q + kv)·T per layer
    """
    total = 0.0
    for group in shape.attention:
        if group.kind not in ("none", "linear"):
            query, key_value = blocks.attention_width(group, rates.tensor_parallel)
            total += group.layers * 2.0 * (2.0 * _scalar(query) + _scalar(key_value)) * tokens
    return total


def decode_attention(shape: LlmShape, rates: Rates, sequences: float, context: float, queries: float = 1.0) -> Operator:
    """Attention of decoding sequences over their cache, each of ``context`` tokens."""
    flops = size = seconds = 0.0
    groups = [group for group in shape.attention if group.kind not in ("none", "linear")]
    for group, (limit, per_token_s, per_token) in zip(
        groups, terms.decode_context_s(shape, rates, queries), strict=True
    ):
        tokens = sequences * min(context, limit)
        flops += group.layers * queries * _scalar(blocks.decode_pair_flops(group, rates.tensor_parallel)) * tokens
        size += _scalar(per_token) * tokens
        seconds += _scalar(per_token_s) * tokens
    return Operator(
        "decode_attention", flops, size, seconds + sequences * _scalar(terms.decode_sequence_s(shape, rates))
    )


def prefill_attention(shape: LlmShape, rates: Rates, tokens: float) -> Operator:
    """Attention of a prompt's tokens over those before them.

    A step's time has its arithmetic alone, its memory traffic being among the element-wise passes; here both count, and
    combine at the ridge like those of a product: short prompts are bound by memory.
    """
    flops = seconds = 0.0
    for limit, per_pair_s, per_pair in terms.prefill_pair_s(shape, rates):
        pairs = _scalar(blocks.attention_pairs(tokens, 0.0, limit))
        flops += _scalar(per_pair) * pairs
        seconds += _scalar(per_pair_s) * pairs
    size = prefill_attention_bytes(shape, rates, tokens)
    both = soft_maximum_s(seconds, size / rates.kv_bytes_per_s)
    return Operator("prefill_attention", flops, size, _scalar(both))


def step_operators(
    shape: LlmShape,
    rates: Rates,
    sequences: float,
    traffic: Traffic,
    *,
    prefill_tokens: float = 0.0,
    queries: float = 1.0,
) -> tuple[Operator, ...]:
    """Operators of a step with ``sequences`` decoding at mean context and ``prefill_tokens`` of one prompt, longest first.

    Times are those of ``solver.step.named_terms.step_terms`` for the same step, but for ``prefill_attention``.
    """
    tokens = max(1.0, sequences * queries + prefill_tokens)
    token = terms.step_token_terms(shape, rates, tokens)
    head = terms.head_product(shape, rates, max(1.0, sequences * queries))
    found = [
        Operator(
            name, _scalar(token.products[kind].flops), _scalar(token.products[kind].bytes), _scalar(token.streams[kind])
        )
        for name, kind in (("dense_products", "gemm"), ("expert_products", "experts"))
    ]
    found.append(Operator("output_head", _scalar(head.flops), _scalar(head.bytes), _scalar(head.seconds)))
    context = traffic.prompt.mean + traffic.output.mean / 2.0
    found.append(decode_attention(shape, rates, sequences, context, queries))
    found.append(prefill_attention(shape, rates, prefill_tokens))
    return tuple(sorted((one for one in found if one.seconds > 0.0 and one.flops > 0.0), key=lambda one: -one.seconds))


def _scalar(value: Quantity) -> float:
    return float(np.asarray(value).reshape(-1)[0])
