"""Tiles that rows of one expert fill, and what quantising them takes: the law, and kernels that were measured by themselves."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.layout import Layout
from solver.precision import Precision
from solver.step import blocks
from solver.step.terms import Product, layer_overhead_s, routed_products
from tests.llm_shapes import shape
from tests.solver.samples import configuration

KERNELS = json.loads((DEFAULT_ROOT / "devices" / "h200-sxm_vllm-0.24.0_routed-experts-8bit.json").read_text())["cases"]
GROUPS = (("glm-4.5-air", 2), ("glm-4.5-air", 1), ("qwen3-30b-a3b", 1), ("qwen3-30b-a3b", 2), ("qwen3-235b-a22b", 2))
TOLD = {
    "expert_read_efficiency": 0.863, "expert_tile_rows": 122.35, "expert_half_width_8bit": 222.6, "expert_widest_share_8bit": 0.74,
}  # fmt: skip
TILES, NONE = {"expert_tile_rows": 138.0}, {"expert_tile_rows": 0.0}
AROUND_S = (16.847 + 19.04) * 1e-6
"""Of a layer, besides reading, products and passes: what the same kernels take, of which 17 quantise."""


def product(
    llm: str, tokens: Any, told: dict[str, float], *, layout: Layout | None = None, weights: str = "fp8"
) -> Product:
    found = configuration(shape(llm), "h200-sxm", precision=Precision(weights, "bf16"), layout=layout or Layout())
    changed = replace(found, constants=found.constants.replaced(told, "measured"))
    ((_, routed),) = routed_products(changed.shape, changed.rates(), tokens)
    return routed


class TestTiles:
    @pytest.mark.parametrize("tokens", [1.0, 32.0, 920.0, 8192.0])
    @pytest.mark.parametrize(
        "layout", [Layout(), Layout(tensor_parallel=4), Layout(tensor_parallel=4, expert_parallel=4)]
    )
    def test_half_a_tile_of_each_picked_expert_is_empty(self, tokens: float, layout: Layout) -> None:
        with_tiles = product("qwen3-30b-a3b", tokens, TILES, layout=layout)
        without = product("qwen3-30b-a3b", tokens, NONE, layout=layout)
        picked = float(blocks.distinct_experts(128, 8, tokens, 20.0))
        rows = tokens * 8
        assert float(with_tiles.compute_s / without.compute_s) == pytest.approx((rows + 69.0 * picked) / rows)
        assert float(with_tiles.memory_s) == float(without.memory_s)
        assert with_tiles.flops == without.flops, "what is wasted is no arithmetic of the model"

    def test_the_worked_example_of_the_documents(self) -> None:
        ratio = product("qwen3-30b-a3b", 920.0, TILES).compute_s / product("qwen3-30b-a3b", 920.0, NONE).compute_s
        assert float(ratio) == pytest.approx(16_192 / 7_360, rel=1e-3)

    def test_more_tokens_never_take_less(self) -> None:
        tokens = np.arange(1.0, 3000.0)
        found = product("qwen3-30b-a3b", tokens, TOLD)
        assert np.all(np.diff(np.asarray(found.compute_s)) > 0.0)

    def test_widened_experts_have_kernels_of_their_own(self) -> None:
        with_tiles = product("qwen3-30b-a3b", 64.0, TILES, weights="int4")
        assert with_tiles == product("qwen3-30b-a3b", 64.0, NONE, weights="int4")


class TestQuantisedExperts:
    @pytest.mark.parametrize(("weights", "times"), [("fp8", 1.0), ("bf16", 0.0), ("int4", 0.0)])
    def test_only_experts_in_8_bits_quantise_their_rows(self, weights: str, times: float) -> None:
        found = configuration(shape("qwen3-30b-a3b"), "h200-sxm", precision=Precision(weights, "bf16"))
        at = [
            float(layer_overhead_s(changed.shape, changed.rates()))
            for us in (0.0, 17.0)
            for changed in [
                replace(found, constants=found.constants.replaced({"quantised_expert_layer_us": us}, "measured"))
            ]
        ]
        assert at[1] - at[0] == pytest.approx(times * 48 * 17e-6)


class TestKernelsAlone:
    @pytest.mark.parametrize(("llm", "devices"), GROUPS)
    def test_they_take_what_is_said_of_them(self, llm: str, devices: int) -> None:
        layout, misses = Layout(tensor_parallel=devices), []
        found = configuration(shape(llm), "h200-sxm", precision=Precision("fp8", "bf16"), layout=layout)
        name = llm if devices == 1 else f"{llm} TP{devices}"
        (group,) = (ffn for ffn in found.shape.feed_forward if ffn.experts)
        for case in KERNELS:
            if (case["llm"], case["format"]) != (name, "fp8") or case["rows"] < 8:
                continue
            rows = float(case["rows"])
            one = product(llm, rows, TOLD | {"gemm_efficiency_fp8": 0.750767}, layout=layout)
            passes = rows * 8 * (6.0 * group.expert_intermediate / devices + 4.0 * found.shape.hidden)
            streamed = passes / (found.device.memory_bytes_per_s * 0.440529)
            misses.append((float(one.seconds) + streamed + AROUND_S) / (case["in_graph_us"] * 1e-6) - 1.0)
        assert len(misses) == 11
        assert np.mean(np.abs(misses)) < 0.06
        assert np.max(np.abs(misses)) < 0.16
