"""What one step is made of: every term named, largest first."""

from dataclasses import dataclass

import numpy as np

from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.step import terms
from solver.step.adapter_terms import adapter_reads_s, prompt_requests
from solver.step.blocks import attention_pairs
from solver.step.gemm import Quantity
from solver.step.prompt_terms import prompt_token_s
from solver.step.rates import Rates
from solver.step.recurrent_terms import scan_s
from solver.step.terms import Product, Products
from solver.step.vision_terms import image_launch_beyond_s
from solver.workload import Traffic

RESOURCE = {
    "weights_read": "memory_bandwidth",
    "expert_weights_read": "memory_bandwidth",
    "attention_kv_read": "memory_bandwidth",
    "element_wise": "memory_bandwidth",
    "quantise": "memory_bandwidth",
    "recurrent_state": "memory_bandwidth",
    "recurrent_scan": "compute",
    "gemm_compute": "compute",
    "expert_gemm_compute": "compute",
    "attention_prefill": "compute",
    "all_reduce": "interconnect",
    "all_to_all": "interconnect",
    "pipeline_hand_over": "interconnect",
    "layer_overhead": "overhead",
    "step_overhead": "overhead",
    "sequence_overhead": "overhead",
    "drafting": "drafting",
    "grammar_masks": "overhead",
    "adapters": "memory_bandwidth",
    "adapter_overhead": "overhead",
    "adapter_loading": "interconnect",
    "image_encoding": "compute",
    "image_launch": "overhead",
}
"""Which resource each term is bound by; drafting is one of its own: its cost may be stated, not derived."""


@dataclass(frozen=True, slots=True)
class Term:
    """One named part of a step, in seconds."""

    name: str
    seconds: float


def _scalar(value: Quantity) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def split_at_ridge(product: Product | Products, seconds: float) -> tuple[float, float]:
    """(compute, memory) shares of a product's time: in proportion to the fourth powers the soft maximum adds."""
    compute, memory = _scalar(product.compute_s) ** 4, _scalar(product.memory_s) ** 4
    total = compute + memory
    if total <= 0.0:
        return 0.0, 0.0
    return seconds * compute / total, seconds * memory / total


def step_terms(
    shape: LlmShape,
    rates: Rates,
    layout: Layout,
    sequences: float,
    traffic: Traffic,
    *,
    prefill_tokens: float = 0.0,
    queries: float = 1.0,
    drafting_s: float = 0.0,
) -> tuple[Term, ...]:
    """Terms of a step with ``sequences`` decoding at mean context and ``prefill_tokens`` of one prompt, largest first.

    queries: tokens of each decoding sequence in the step (above 1 where drafts are verified). drafting_s: of the drafts.
    """
    tokens = max(1.0, sequences * queries + prefill_tokens)
    token = terms.step_token_terms(shape, rates, tokens)
    rows = max(1.0, sequences * queries)
    head = terms.head_product(shape, rates, rows)
    head_s = _scalar(head.seconds)
    named: dict[str, float] = {name: _scalar(value) for name, value in token.streams.items()}
    dense_compute, dense_read = split_at_ridge(token.products["gemm"], named.pop("gemm"))
    expert_compute, expert_read = split_at_ridge(token.products["experts"], named.pop("experts"))
    head_compute, head_read = split_at_ridge(head, head_s)
    named["gemm_compute"] = dense_compute + head_compute
    named["weights_read"] = dense_read + head_read
    named["expert_gemm_compute"], named["expert_weights_read"] = expert_compute, expert_read
    named["element_wise"] += _scalar(terms.sampling_s(shape, rates, rows))
    context = traffic.prompt.mean + traffic.output.mean / 2.0
    named["attention_kv_read"] = sum(
        _scalar(seconds) * sequences * min(context, limit)
        for limit, seconds, _ in terms.decode_context_s(shape, rates, queries)
    ) + sequences * _scalar(terms.decode_sequence_s(shape, rates))
    named["recurrent_state"] += sequences * _scalar(terms.recurrent_state_s(shape, rates))
    named["recurrent_scan"] = _scalar(scan_s(shape, rates, prefill_tokens))
    named["attention_prefill"] = sum(
        _scalar(seconds) * _scalar(attention_pairs(prefill_tokens, 0.0, limit))
        for limit, seconds, _ in terms.prefill_pair_s(shape, rates)
    )
    if "adapters" in named:
        requests = sequences if sequences else prompt_requests(shape, tokens)
        named["adapters"] += _scalar(adapter_reads_s(shape, rates, requests))
    for name, seconds, _ in prompt_token_s(shape, rates):
        named[name] = _scalar(seconds) * prefill_tokens
    if prefill_tokens and shape.images is not None:
        named["image_launch"] = _scalar(image_launch_beyond_s(shape, rates, tokens))
    named["pipeline_hand_over"] = (layout.pipeline_parallel - 1) * _scalar(terms.hand_over_s(shape, rates, tokens))
    named["step_overhead"] = _scalar(rates.step_overhead_s) * layout.pipeline_parallel
    named["sequence_overhead"] = _scalar(rates.sequence_overhead_s) * sequences
    named["grammar_masks"] = _scalar(terms.grammar_s(shape, rates)) * sequences
    named["drafting"] = drafting_s
    found = [Term(name, seconds) for name, seconds in named.items() if seconds > 0.0]
    return tuple(sorted(found, key=lambda term: -term.seconds))


def dominant(step: tuple[Term, ...]) -> str:
    """The resource most of a step's time is bound by: memory_bandwidth, compute, interconnect or overhead."""
    totals: dict[str, float] = {}
    for term in step:
        resource = RESOURCE[term.name]
        totals[resource] = totals.get(resource, 0.0) + term.seconds
    return max(totals, key=lambda name: totals[name]) if totals else "overhead"
