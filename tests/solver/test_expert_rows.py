"""What routed experts' rows move and multiply, by how the experts are cut."""

from dataclasses import replace

import pytest

from solver.layout import Layout
from solver.precision import Precision
from solver.step.terms import element_wise_bytes
from tests.llm_shapes import shape
from tests.solver.samples import configuration, constants

TOKENS = 1000.0


def moved_bytes(layout: Layout) -> float:
    found = configuration(shape("qwen3-30b-a3b"), "h200-sxm", layout=layout)
    return float(element_wise_bytes(found.shape, found.rates(), TOKENS))


class TestRowsOfCutExperts:
    def test_inputs_and_outputs_of_rows_stay_whole_under_tensor_parallelism(self) -> None:
        model = shape("qwen3-30b-a3b")
        (experts,) = (ffn for ffn in model.feed_forward if ffn.experts > 0)
        rows = TOKENS * experts.top_k * experts.layers
        # Eight ranks: seven eighths of what lies inside an expert are gone, nothing of 4 bytes a value of each row's input and output.
        least = 4.0 * model.hidden * rows
        assert moved_bytes(Layout(tensor_parallel=8)) > least
        assert moved_bytes(Layout(tensor_parallel=8)) > 0.3 * moved_bytes(Layout())

    def test_a_rank_with_whole_experts_sees_its_own_rows_alone(self) -> None:
        whole = moved_bytes(Layout(tensor_parallel=8, expert_parallel=8))
        assert whole < 0.6 * moved_bytes(Layout(tensor_parallel=8))


class TestWidenedExperts:
    """4-bit experts on a device without a 4-bit unit: multiplied in 16 bits, at a share of that rate."""

    @pytest.mark.parametrize(
        ("weights", "on", "slower"),
        [("mxfp4", "h100-sxm", True), ("bf16", "h100-sxm", False), ("mxfp4", "b200-sxm", False)],
    )
    def test_only_those_take_the_share(self, weights: str, on: str, slower: bool) -> None:
        found = configuration(shape("gpt-oss-20b"), on, precision=Precision(weights, "bf16"))
        narrow = replace(found, constants=found.constants.replaced({"widened_expert_share": 0.25}, "analytical"))
        ratio = narrow.rates().expert_flop_per_s / found.rates().expert_flop_per_s
        assert ratio == pytest.approx(0.25 if slower else 1.0)
        assert narrow.rates().gemm_flop_per_s == found.rates().gemm_flop_per_s

    @pytest.mark.parametrize(
        ("weights", "on", "slower"),
        [("mxfp4", "h100-sxm", True), ("bf16", "h100-sxm", False), ("mxfp4", "b200-sxm", False)],
    )
    def test_only_those_are_read_at_a_share(self, weights: str, on: str, slower: bool) -> None:
        found = configuration(shape("gpt-oss-20b"), on, precision=Precision(weights, "bf16"))
        narrow = replace(found, constants=found.constants.replaced({"widened_expert_read_share": 0.5}, "analytical"))
        ratio = narrow.rates().expert_bytes_per_s / found.rates().expert_bytes_per_s
        assert ratio == pytest.approx(0.5 if slower else 1.0)
        assert narrow.rates().weight_bytes_per_s == found.rates().weight_bytes_per_s

    def test_a_row_of_one_model_is_of_that_model_alone(self) -> None:
        assert constants("h100-sxm").si("widened_expert_share") == 1.0
