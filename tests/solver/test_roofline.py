"""Operators on the roofline: never above it, with the times and work that the step itself has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.precision import Precision
from solver.step.named_terms import step_terms
from solver.step.operator_report import prefill_attention, prefill_attention_bytes, roof_flop_per_s, step_operators
from solver.workload import Traffic
from tests.solver.samples import configuration, dense_shape
from tests.solver.test_step_properties import deployed, devices, laws, layouts, llms, precisions

TERMS = {
    "dense_products": {"gemm_compute", "weights_read"},
    "output_head": {"gemm_compute", "weights_read"},
    "expert_products": {"expert_gemm_compute", "expert_weights_read"},
    "decode_attention": {"attention_kv_read"},
}


@laws
@given(llms, devices, layouts, precisions, st.integers(0, 64), st.integers(1, 4_000), st.integers(0, 1_024))
def test_under_the_roof_and_as_long_as_the_step_says(
    llm: str, on: str, layout: Layout, precision: Precision, sequences: int, context: int, prompt: int
) -> None:
    found = deployed(llm, on, layout, precision)
    rates, traffic = found.rates(), Traffic(fixed_lengths(context), fixed_lengths(2))
    operators = step_operators(found.shape, rates, float(sequences), traffic, prefill_tokens=float(prompt))
    peak, memory = float(rates.peak_flop_per_s), float(rates.peak_bytes_per_s)
    for one in operators:
        assert one.flops > 0
        assert one.bytes > 0
        assert one.flop_per_s <= roof_flop_per_s(one.flop_per_byte, peak, memory) * (1 + 1e-9)
    named = {
        t.name: t.seconds
        for t in step_terms(found.shape, rates, layout, float(sequences), traffic, prefill_tokens=float(prompt))
    }
    seconds = {one.name: one.seconds for one in operators}
    arithmetic = named.get("attention_prefill", 0.0)
    attention = seconds.pop("prefill_attention", 0.0)
    assert arithmetic <= attention * (1 + 1e-9) or attention == arithmetic == 0.0
    shown = set().union(*(TERMS[name] for name in seconds))
    assert sum(seconds.values()) == pytest.approx(sum(s for name, s in named.items() if name in shown))
    assert not {"attention_kv_read", "expert_gemm_compute"} & (named.keys() - shown)


def test_a_long_prompts_attention_is_bound_by_arithmetic_and_a_short_ones_by_memory() -> None:
    found = configuration(dense_shape(), "h100-sxm", Layout(), Precision())
    rates = found.rates()
    for tokens, compute_bound in ((32.0, False), (65_536.0, True)):
        one = prefill_attention(found.shape, rates, tokens)
        ridge = float(rates.peak_flop_per_s) / float(rates.peak_bytes_per_s)
        assert (one.flop_per_byte > ridge) is compute_bound
        arithmetic = one.flops / float(rates.attention_flop_per_s)
        assert (one.seconds == pytest.approx(arithmetic, rel=0.02)) is compute_bound


def test_work_by_hand() -> None:
    """Four layers of width 512: 8 query and 2 key/value heads of 64, a gated block of 1,024; one token, then sixteen."""
    found = configuration(dense_shape(), "h100-sxm", Layout(), Precision())
    traffic = Traffic(fixed_lengths(100), fixed_lengths(2))
    by_name = {one.name: one for one in step_operators(found.shape, found.rates(), 1.0, traffic)}
    weights = 4 * (512 * (512 + 2 * 128) + 512 * 512 + 3 * 512 * 1024)
    assert by_name["dense_products"].flops == 2 * weights
    assert by_name["dense_products"].bytes == pytest.approx(2 * weights, rel=0.01)  # and the activations of one token
    assert by_name["dense_products"].flop_per_byte == pytest.approx(1.0, rel=0.01)
    assert by_name["output_head"].flops == 2 * 512 * 4096
    # Context 101: 2·8 heads·(64 + 64) FLOP and 2 bytes of 2·64 keys and values in each of 2 heads, by token and layer.
    assert by_name["decode_attention"].flops == 4 * 101 * 2 * 8 * 128
    assert by_name["decode_attention"].bytes == 4 * 101 * 2 * 2 * 128
    many = {one.name: one for one in step_operators(found.shape, found.rates(), 16.0, traffic)}
    assert many["dense_products"].flop_per_byte > 10 * by_name["dense_products"].flop_per_byte
    assert many["decode_attention"].flop_per_byte == by_name["decode_attention"].flop_per_byte
    # A prompt of ten: queries and results of 512, keys and values of 256, two bytes each, in four layers.
    assert prefill_attention_bytes(found.shape, found.rates(), 10.0) == 4 * 10 * 2 * (2 * 512 + 256)
