"""Layers whose experts several copies of attention share: what is exchanged, which rows a device works on, how uneven devices are.

Every device gathers the tokens of all copies, works on those of its experts, and results are added up and scattered. Laws:
docs/mathematics.md, "Copies that share experts"; measured on two and four H200: docs/decisions/0103-the-exchange-of-copies.md.
"""

import numpy as np
from numpy.typing import NDArray

from solver.llm_shape import LlmShape
from solver.step import blocks
from solver.step.collectives import all_to_all_bytes, transfer_s
from solver.step.gemm import Quantity
from solver.step.rates import Rates

MAXIMA = (
    (1.0, 0.0),
    (2.0, 0.564),
    (4.0, 1.029),
    (8.0, 1.424),
    (16.0, 1.766),
    (32.0, 2.070),
    (64.0, 2.344),
    (128.0, 2.594),
)
"""Expected largest of n standard normal values (Tippett, 1925), by n."""
NCCL_CALLS = 4.0
"""Calls a device and layer where copies have different numbers of tokens: one for each of tokens, weights, experts, and results."""


def sharing_copies(rates: Rates) -> Quantity:
    """Copies of attention that share experts: 1 where each has its own."""
    return np.maximum(np.asarray(rates.expert_parallel) / rates.tensor_parallel, 1.0)


def are_shared(rates: Rates) -> NDArray[np.bool_]:
    """Whether copies of attention share experts, by deployment."""
    return np.asarray(rates.expert_parallel) > np.asarray(rates.tensor_parallel)


def gathered_rows(rates: Rates, tokens: Quantity) -> Quantity:
    """Rows that the devices of experts see in a step with T tokens of one copy: n·T, those of all copies.

    In a captured graph every copy works on as many tokens as the fullest. Beyond, each brings its own; a copy whose prompts fill so large
    a step has others beside it that wait for theirs as well.
    """
    gathered: Quantity = sharing_copies(rates) * np.asarray(tokens)
    return gathered


def largest_normal(count: Quantity) -> Quantity:
    """Expected largest of ``count`` standard normal values, between tabulated counts by the logarithm.

    >>> round(float(largest_normal(8.0)), 3)
    1.424
    """
    counts, values = zip(*MAXIMA, strict=True)
    found: Quantity = np.interp(np.log2(np.asarray(count)), np.log2(counts), values)
    return found


def fullest_by_touched(experts: int, touched: Quantity, devices: Quantity) -> Quantity:
    """Experts that the fullest device reads over the mean, where D of E are picked and each device has E/n, whichever they are:

        1 + c_n·√( n/D · (E − D)/(E − 1) )      at most n

    the deviation of D draws without replacement; c_n: ``largest_normal``. 1 where all are picked.

    >>> round(float(fullest_by_touched(64, 12.0, 2.0)), 2), float(fullest_by_touched(64, 64.0, 8.0))
    (1.21, 1.0)
    """
    left: Quantity = np.maximum(experts - np.asarray(touched), 0.0) / max(experts - 1.0, 1.0)
    spread = np.sqrt(np.asarray(devices) / np.maximum(touched, 1.0) * left)
    fullest: Quantity = np.minimum(1.0 + largest_normal(devices) * spread, devices)
    return fullest


def fullest_by_rows(experts: int, top_k: int, evenness: Quantity, devices: Quantity) -> Quantity:
    """Rows of the fullest device over the mean, of many tokens, by the popularity of its experts:

        1 + c_n·CV·√(n/E)      at most n

    CV: coefficient of variation of the probability that a token picks an expert, 1 − e^−m for a rate m of the gamma law that
    distinct experts are counted with (``blocks.distinct_experts``). 1 where all are alike.

    >>> round(float(fullest_by_rows(64, 6, 0.043, 2.0)), 2), round(float(fullest_by_rows(64, 6, 1e6, 2.0)), 2)
    (1.32, 1.0)
    """
    a = np.asarray(evenness)
    rate = -np.log1p(-min(top_k / experts, 1.0 - 1e-12)) / a
    once, twice = np.exp(-a * np.log1p(rate)), np.exp(-a * np.log1p(2.0 * rate))
    mean = 1.0 - once
    variance = np.maximum(twice - once * once, 0.0)
    varied = np.sqrt(variance) / np.maximum(mean, 1e-12)
    uneven: Quantity = 1.0 + largest_normal(devices) * varied * np.sqrt(np.asarray(devices) / experts)
    fullest: Quantity = np.minimum(uneven, devices)
    return fullest


def collective_s(rates: Rates, row_bytes: Quantity, tokens: Quantity, gathered: Quantity) -> Quantity:
    """Seconds of one gather of T own rows of b bytes among n devices, R rows in all, or of the reduction that scatters them again:

        a₀ + a₁·(n − 1) + min( V/(ρ·B), s + V/B ),      V = b·(received + o·T)

    received: R·(n − 1)/n where all have as many, R of a copy alone. NCCL has a protocol that starts at once and moves ρ of the link's
    rate, and one that takes s longer to start. A device's own rows are copied beside, at o of what a received one takes.
    """
    n = np.asarray(rates.expert_parallel, dtype=float)
    own = np.asarray(tokens) / rates.tensor_parallel
    received = np.where(np.asarray(gathered) > tokens, np.asarray(gathered) * (n - 1.0) / n, gathered)
    volume = row_bytes * (received + rates.exchange_own_share * own)
    quick = volume / (rates.exchange_quick_share * rates.link_bytes_per_s)
    full = rates.exchange_start_s + volume / rates.link_bytes_per_s
    return rates.exchange_latency_s + rates.exchange_hop_s * (n - 1.0) + np.minimum(quick, full)


def exchange_s(rates: Rates, width: float, tokens: Quantity) -> Quantity:
    """Seconds in which tokens of 16-bit values reach the devices of one layer's experts and results return."""
    return 2.0 * collective_s(rates, 2.0 * width, tokens, gathered_rows(rates, tokens))


def all_to_all_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Seconds in which tokens go to the devices of their experts and come back; 0 where every device has a cut of each expert.

    Devices of one copy have the same tokens and exchange none: what is counted for them, each token sent to each of its experts, stands
    for what else spreading experts takes, and was fitted with it.
    """
    shared, spread = are_shared(rates), np.asarray(rates.expert_parallel) > 1.0
    found: Quantity = 0.0 * tokens
    for ffn in shape.feed_forward:
        if ffn.experts > 0:
            width = blocks.expert_width(ffn, shape)
            sent = all_to_all_bytes(2.0 * tokens * ffn.top_k * width / rates.tensor_parallel, rates.expert_parallel)
            apart = 2.0 * transfer_s(sent, rates.link_bytes_per_s, rates.all_reduce_latency_s)
            each = np.where(shared, exchange_s(rates, width, tokens), apart) if np.any(shared) else apart
            found = found + ffn.layers * np.where(spread, each, 0.0)
    return found


def layers_overhead_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Seconds of kernels that only layers with shared experts start: finding which experts are the device's, and sorting pairs of tokens
    and experts where they are so few, 4·R·k ≤ E, that none are sorted where a device has all experts."""
    found: Quantity = 0.0
    for ffn in shape.feed_forward:
        if ffn.experts > 0:
            few = 4.0 * gathered_rows(rates, tokens) * ffn.top_k <= ffn.experts
            found = found + ffn.layers * (rates.spread_expert_layer_s + np.where(few, rates.expert_sort_s, 0.0))
    return np.where(are_shared(rates), found, 0.0)


def eager_exchange_s(rates: Rates, layers: int) -> Quantity:
    """Seconds that launching the exchanges of so many layers takes outside a captured graph, where each device calls once for every
    other; 0 where no copies share experts."""
    calls = NCCL_CALLS * np.asarray(rates.expert_parallel)
    each = 2.0 * np.asarray(rates.eager_collective_s) + calls * rates.eager_exchange_call_s
    return np.where(are_shared(rates), layers * each, 0.0)


def fullest_device(rates: Rates, experts: int, top_k: int, gathered: Quantity) -> tuple[Quantity, Quantity]:
    """(rows, experts read) of the fullest device over the mean, where experts are shared; 1 elsewhere."""
    shared, n = are_shared(rates), np.asarray(rates.expert_parallel, dtype=float)
    touched = blocks.distinct_experts(experts, top_k, gathered, rates.expert_evenness)
    rows = np.where(shared, fullest_by_rows(experts, top_k, rates.expert_evenness, n), 1.0)
    return rows, np.where(shared, fullest_by_touched(experts, touched, n), 1.0)
