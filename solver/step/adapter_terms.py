"""What adapters add to a step on one tensor-parallel rank: two thin products beside every one they adapt.

Laws and symbols: docs/mathematics.md, section "Adapters".
"""

from typing import NamedTuple

import numpy as np

from solver.adapted_products import adapted_products
from solver.llm_shape import LlmShape
from solver.step.gemm import Quantity, soft_maximum_s
from solver.step.rates import Rates

ADAPTER_BYTES = 2.0
"""Adapters are kept in 16 bits whatever the base is stored in."""
PARTIAL_BYTES = 4.0
"""What the first product hands to the second is kept in 32 bits."""


class AdapterTerms(NamedTuple):
    """Of one step, over all layers: seconds of the products over their tokens, seconds of starting them, what launching them one by one
    from the host takes at least, FLOPs and bytes."""

    products_s: Quantity
    overhead_s: Quantity
    eager_s: Quantity
    flops: Quantity
    bytes: Quantity


def adapter_terms(shape: LlmShape, rates: Rates, tokens: Quantity) -> AdapterTerms | None:
    """x·A (shrink) and (x·A)·B added to the output (expand), for every adapted product; None without adapters.

        FLOPs    2·T·r·(s·k + n)
        bytes    T·(2·s·k + 8·s·r + 4·n)                              s slices, k inner, n columns, r the rank multiplied in
        seconds  overhead + (bytes/B·η_a ⊕ FLOPs/16-bit)

    Every slice reads x anew; the partial result is written and read in 32 bits; the output is read and written again. Reading the
    adapters themselves comes on top (``adapter_reads_s``). Source: the kernels of Punica (Chen et al., MLSys 2024) as vLLM runs them
    (its lora/ops/triton_ops, one shrink and one expand for each fused product).
    """
    adapters = shape.adapters
    if adapters is None:
        return None
    rank = adapters.multiplied_rank
    flops: Quantity = 0.0
    size: Quantity = 0.0
    seconds: Quantity = 0.0
    products = 0
    for product in adapted_products(shape):
        inner, columns = product.per_rank(rates.tensor_parallel)
        each = 2.0 * tokens * product.values(rank, rates.tensor_parallel)
        moved = tokens * (2.0 * product.slices * inner + 2.0 * PARTIAL_BYTES * product.slices * rank + 4.0 * columns)
        flops, size = flops + product.layers * each, size + product.layers * moved
        seconds = seconds + product.layers * soft_maximum_s(
            each / rates.wide_flop_per_s, moved / rates.adapter_stream_bytes_per_s
        )
        products += product.layers
    return AdapterTerms(
        seconds, products * rates.adapter_product_overhead_s, products * rates.adapter_eager_product_s, flops, size
    )


def bytes_of_a_rank(shape: LlmShape, rates: Rates) -> Quantity:
    """Bytes of one rank of an adapter on one tensor-parallel rank: 2·Σ(s·k + n) over the products it adapts."""
    return sum(p.layers * ADAPTER_BYTES * p.values(1.0, rates.tensor_parallel) for p in adapted_products(shape))


def adapter_reads_s(shape: LlmShape, rates: Rates, requests: Quantity) -> Quantity:
    """Seconds of reading every different adapter that so many requests name, once a step: their bytes over B·η_r.

    0 without adapters.
    """
    adapters = shape.adapters
    if adapters is None:
        return 0.0
    return adapters.read_ranks(requests) * bytes_of_a_rank(shape, rates) / rates.adapter_read_bytes_per_s


def prompt_requests(shape: LlmShape, tokens: Quantity) -> Quantity:
    """How many requests a step of so many tokens is taken to serve where prompts are in it: as many mean prompts, one at least."""
    return np.maximum(tokens / (1.0 if shape.adapters is None else shape.adapters.prompt_tokens), 1.0)


def adapter_load_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that loading adapters from the host adds to a prompt token: the step in which a request begins waits for its own.

    bytes, in its own rank, of a request's adapter where it is not there / host link, over the tokens of a mean prompt
    """
    adapters = shape.adapters
    if adapters is None or adapters.resident_fraction >= 1.0:
        return 0.0
    return adapters.missing_rank * bytes_of_a_rank(shape, rates) / rates.host_bytes_per_s / adapters.prompt_tokens
