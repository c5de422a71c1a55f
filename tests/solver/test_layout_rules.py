"""Every rule that forbids a layout, and what remains."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.deployment.layout_rules import layout_problem, legal_tensor_parallels
from solver.layout import Layout
from tests.llm_shapes import llm_rows, shape


@pytest.mark.parametrize(
    ("llm", "layout", "weights", "reason"),
    [
        ("llama-3.1-70b", Layout(0), "bf16", "degree_below_one"),
        ("llama-3.1-70b", Layout(16), "bf16", "tensor_parallel_exceeds_domain"),
        ("llama-3.1-70b", Layout(3), "bf16", "heads_not_divisible"),
        ("qwen2.5-0.5b", Layout(8), "bf16", "heads_not_divisible"),  # 14 heads
        ("phi-4-14b", Layout(4), "bf16", "kv_heads_not_divisible"),  # 40 heads, 10 key-value heads
        ("kimi-k3", Layout(3), "bf16", "vocabulary_not_divisible"),  # 96 heads, but 163,840 rows
        ("mixtral-8x7b", Layout(4, 33), "bf16", "pipeline_too_deep"),
        ("llama-3.1-8b", Layout(2, expert_parallel=2), "bf16", "no_experts"),
        ("mixtral-8x7b", Layout(2, expert_parallel=8), "bf16", "expert_parallel_not_devices"),
        ("phi-3.5-moe", Layout(8, data_parallel=4, expert_parallel=32), "bf16", "experts_not_divisible"),
        ("glm-4.5-air", Layout(4), "int4", "group_not_divisible"),  # 10,944 / 4 = 2,736 = 21.4 · 128
    ],
)
def test_each_refusal_names_its_reason(llm: str, layout: Layout, weights: str, reason: str) -> None:
    problem = layout_problem(shape(llm), layout, weights=weights, domain_devices=8)
    assert problem is not None
    assert problem.reason == reason
    assert len(problem.message) > 20


def test_checkpoints_padded_for_their_groups_are_cut_as_published() -> None:
    """Qwen2.5-72B is published in groups of 128 at a width of 29,696 = 8 · 29 · 128; 29,568 / 2 holds no whole groups."""
    assert layout_problem(shape("qwen2.5-72b"), Layout(8), weights="int4") is None
    (feed_forward,) = shape("qwen2.5-72b").feed_forward
    own = dataclasses.replace(feed_forward, grouped_intermediate=0)
    problem = layout_problem(dataclasses.replace(shape("qwen2.5-72b"), feed_forward=(own,)), Layout(2), weights="int4")
    assert problem is not None
    assert problem.reason == "group_not_divisible"


def test_widths_are_cut_evenly() -> None:
    odd = dataclasses.replace(shape("llama-3.1-8b").feed_forward[0], intermediate=14_338)
    problem = layout_problem(dataclasses.replace(shape("llama-3.1-8b"), feed_forward=(odd,)), Layout(4))
    assert problem is not None
    assert problem.reason == "width_not_divisible"


@pytest.mark.parametrize(
    ("llm", "degrees"),
    [
        ("llama-3.1-70b", (1, 2, 4, 8)),
        ("qwen2.5-0.5b", (1, 2)),  # 14 heads
        ("llama-4-scout", (1, 2, 4, 8)),  # 40 heads but 8 key-value heads: 5 and 10 neither cut nor copy
        ("deepseek-v3", (1, 2, 4, 8, 16)),
    ],
)
def test_tensor_parallel_degrees(llm: str, degrees: tuple[int, ...]) -> None:
    assert legal_tensor_parallels(shape(llm), 16 if llm == "deepseek-v3" else 8) == degrees


def test_key_value_heads_may_be_copied() -> None:
    assert layout_problem(shape("qwen3-30b-a3b"), Layout(8)) is None  # 4 key-value heads on 8 devices


def test_every_stage_holds_a_layer() -> None:
    assert layout_problem(shape("gemma-3-1b"), Layout(1, 26)) is None
    assert layout_problem(shape("gemma-3-1b"), Layout(1, 27)) is not None


@pytest.mark.parametrize(
    ("llm", "experts"), [("deepseek-v3", {1, 8, 32}), ("mixtral-8x7b", {1, 8}), ("llama-3.1-8b", {1})]
)
def test_experts_are_cut_or_spread_over_a_stage(llm: str, experts: set[int]) -> None:
    """Over 8 devices, or over the 32 of four data-parallel copies."""
    layouts = [Layout(8), Layout(8, 1, 1, 8), Layout(8, 1, 4, 32)]
    assert {one.expert_parallel for one in layouts if layout_problem(shape(llm), one) is None} == experts


@given(st.sampled_from(sorted(llm_rows())), st.sampled_from(["bf16", "fp8", "int4"]))
def test_one_device_is_always_legal(llm: str, weights: str) -> None:
    assert layout_problem(shape(llm), Layout(), weights=weights, domain_devices=1) is None
