"""Memory of one device: by hand, and laws that hold for every model and layout."""

import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from solver.deployment.layout_rules import layout_problem
from solver.errors import DoesNotFitError, InvalidInputError, UnsupportedError
from solver.layout import Layout
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.memory.fits import (
    EngineMemory,
    MemoryPlan,
    activation_bytes,
    max_concurrent_requests,
    memory_plan,
    reserve_bytes,
    stages,
)
from solver.memory.kv_cache import kv_cache_bytes_per_token, request_cache
from solver.memory.weights import layer_weights, routed_weights, stage_weight_bytes, weight_bytes
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS, Precision
from solver.workload import EngineSettings
from tests.llm_shapes import llm_rows, shape

BARE = EngineMemory(
    driver_reserve_bytes=0.0,
    runtime_bytes=0.0,
    collective_bytes=0.0,
    graph_bytes_per_layer=0.0,
    graph_bytes_per_expert_layer=0.0,
    graph_bytes_per_recurrent_layer=0.0,
    joined_graph_bytes_per_expert_layer=0.0,
    hidden_copies=0.0,
    logits_copies=0.0,
    block_tokens=16,
    pooled_cache=True,
)
TINY = LlmShape(
    id="tiny",
    family="test",
    hidden=64,
    vocabulary=1000,
    tied_embeddings=False,
    max_context_tokens=4096,
    attention=(
        AttentionGroup("full", layers=4, heads=8, kv_heads=2, head_dim=8, weights=64 * 8 * 8 * 2 + 2 * 64 * 16),
    ),
    feed_forward=(FeedForwardGroup(layers=4, intermediate=128, weights=3 * 64 * 128, active_weights=3 * 64 * 128),),
)
ids = st.sampled_from(sorted(llm_rows()))
formats = st.sampled_from(sorted(WEIGHT_FORMATS))
kv_formats = st.sampled_from(sorted(KV_CACHE_BYTES))
powers = st.sampled_from([1, 2, 4, 8, 16])


class TestByHand:
    def test_weights_of_one_device_of_two(self) -> None:
        # queries and output 64·64·2/2 = 4,096; keys and values 2·64·16/2 = 1,024; feed-forward 3·64·128/2 = 12,288
        # 4 layers · 17,408 = 69,632; tables 2 · 1,024 rows · 64 / 2 = 65,536; all · 2 bytes; rotary 4,096 · 8 · 2
        found = stage_weight_bytes(TINY, "bf16", Layout(2), layers_fraction=1.0, embedding=True, head=True)
        assert found == 2 * (69_632 + 65_536) + 65_536

    def test_key_value_projections_are_copied_beyond_the_heads(self) -> None:
        # at 8 devices and 2 heads each device holds a whole head: 64 · 16 = 1,024 of 2,048 instead of 256
        cut = layer_weights(TINY, 8, 1).matrices
        assert cut == 4 * (8_192 / 8 + 1_024 + 24_576 / 8)

    def test_cache_per_token(self) -> None:
        assert kv_cache_bytes_per_token(TINY) == 4 * 2 * 2 * 8 * 2
        assert kv_cache_bytes_per_token(TINY, "fp8", tensor_parallel=8) == 4 * 2 * 1 * 8  # one head, one byte

    def test_what_remains_is_cache(self) -> None:
        settings = EngineSettings(max_batched_tokens=256, max_sequences=8, memory_fraction=0.5, max_context_tokens=1024)
        plan = memory_plan(TINY, 4e6, Precision(), Layout(), settings, BARE)
        weights = 2 * (4 * (8_192 + 2_048 + 24_576) + 2 * 1_024 * 64) + 65_536
        block = 256 * 128 * 3 * 2  # 256 tokens, gate, up and product, 2 bytes
        assert plan.weights_bytes == weights
        assert plan.activations_bytes == block
        assert plan.kv_cache_bytes == 2e6 - weights - block
        assert plan.kv_cache_tokens == int(plan.kv_cache_bytes / (1024 * 256) * 1024)

    def test_eight_bit_steps_hold_a_second_copy_of_the_activation(self) -> None:
        settings = EngineSettings(max_batched_tokens=256, max_sequences=1)
        plain, quantised = (
            activation_bytes(TINY, Precision(w), Layout(), settings, BARE, head=False) for w in ("bf16", "fp8")
        )
        assert quantised - plain == 256 * 128

    def test_sampling_can_be_the_largest_moment(self) -> None:
        engine = dataclasses.replace(BARE, logits_copies=3.0)
        settings = EngineSettings(max_batched_tokens=512, max_sequences=512)
        large = dataclasses.replace(TINY, vocabulary=128_256)
        assert activation_bytes(large, Precision(), Layout(), settings, engine, head=True) == 512 * 128_256 * 14
        assert activation_bytes(large, Precision(), Layout(), settings, engine, head=False) < 512 * 128_256

    def test_reserve_counts_graphs_by_kind_of_layer(self) -> None:
        engine = dataclasses.replace(
            BARE,
            runtime_bytes=1.0,
            collective_bytes=10.0,
            graph_bytes_per_layer=100.0,
            graph_bytes_per_expert_layer=1e4,
            graph_bytes_per_recurrent_layer=1e6,
        )
        deepseek = shape("deepseek-v3")  # 3 dense and 58 sparse layers
        assert reserve_bytes(deepseek, Layout(8), engine) == 1 + 10 + 3 * 100 + 58 * 1e4
        assert reserve_bytes(TINY, Layout(), engine) == 1 + 4 * 100
        hybrid = shape("qwen3.5-27b")  # 64 layers, of which 48 carry a state
        assert reserve_bytes(hybrid, Layout(), engine) == 1 + 64 * 100 + 48 * 1e6

    def test_the_fullest_device_decides_for_experts(self) -> None:
        mixtral = shape("mixtral-8x7b")
        routed = 32 * routed_weights(mixtral.feed_forward[0])
        assert routed == 32 * 8 * 3 * 4096 * 14336
        assert layer_weights(mixtral, 8, 8).experts == routed / 8
        assert layer_weights(mixtral, 1, 3).experts == routed * 3 / 8

    def test_the_stage_with_head_and_logits_decides(self) -> None:
        settings = EngineSettings(max_context_tokens=8192)
        engine = dataclasses.replace(BARE, logits_copies=3.0, hidden_copies=3.0)
        llama = shape("llama-3.1-70b")
        two = memory_plan(llama, 100e9, Precision(), Layout(pipeline_parallel=2), settings, engine)
        table = 128_256 * 8192 * 2
        assert two.weights_bytes == pytest.approx((weight_bytes(llama, "bf16") - 2 * table) / 2 + table, rel=1e-3)

    def test_sliding_layers_count_as_the_engine_admits_them(self) -> None:
        # window 128 and 8,192 tokens in flight: capped at the 8,192-token context, and one block for misalignment
        cache = request_cache(shape("gpt-oss-20b"), block_tokens=16, pooled=True)
        per_layer = 2 * 8 * 64 * 2
        assert cache.admission_bytes(8192, 8192) == 12 * per_layer * (8192 + 8192 + 16)
        assert cache.bytes_at(8192) == 12 * per_layer * (8192 + 128)

    def test_recurrent_state_does_not_grow(self) -> None:
        cache = request_cache(shape("qwen3.5-35b-a3b"))
        grown = cache.bytes_at(2000) - cache.bytes_at(1000)
        assert grown == 1000 * kv_cache_bytes_per_token(shape("qwen3.5-35b-a3b"))
        # 30 layers · (32 heads · 128 · 128 values in fp32 + 3 · (2·16·128 + 32·128) convolution inputs in 16 bits)
        assert cache.state_bytes == pytest.approx(30 * (32 * 128 * 128 * 4 + 3 * 8192 * 2))

    def test_one_pool_pads_kinds_of_layer_and_recurrent_state(self) -> None:
        # 30 recurrent and 10 full layers: groups of 10 need no padding; a page of 1,056 tokens · 2,048 bytes a layer
        pooled = request_cache(shape("qwen3.5-35b-a3b"), block_tokens=16, pooled=True)
        assert pooled.block_tokens == 1056
        assert pooled.state_bytes == 30 * 1056 * 2048
        assert pooled.bytes_at(8192) == 30 * 1056 * 2048 + 10 * 2048 * 8 * 1056
        # Gemma 3 27B: 10 full and 52 sliding layers make groups of 10, so 60 sliding ones are kept
        gemma = request_cache(shape("gemma-3-27b"), block_tokens=16, pooled=True)
        assert gemma.bytes_at(1024) == 70 * 2 * 16 * 128 * 2 * 1024
        # layers of one kind are one kind, however they were listed: GLM-5.2 has 21 with an indexer and 57 without
        glm = request_cache(shape("glm-5.2"), block_tokens=16, pooled=True)
        assert glm.bytes_at(16) == 16 * (78 * 576 * 2 + 21 * 132)

    @pytest.mark.parametrize(
        ("llm", "kv_cache_gib", "seats"), [("qwen3.5-35b-a3b", 8, 397), ("qwen3-next-80b-a3b", 8, 640)]
    )
    def test_a_pool_has_states_of_so_many_requests(self, llm: str, kv_cache_gib: int, seats: int) -> None:
        """vLLM 0.24.0 given 8 GiB refused 512 seats of the first, naming 397, and started with as many of the second."""
        cache = request_cache(shape(llm), block_tokens=16, pooled=True)
        plan = MemoryPlan(0.0, 0.0, 0.0, kv_cache_gib * 2.0**30, 1, cache)
        assert plan.most_states == pytest.approx(seats, abs=5)

    @pytest.mark.parametrize(
        ("llm", "gib", "tokens"),
        [
            ("gemma-3-27b", 21.0, 62_829), ("qwen3-next-80b-a3b", 8.0, 309_368),
            ("llama-4-scout", 16.5, 90_112), ("gpt-oss-20b", 12.0, 347_489),
        ],
    )  # fmt: skip
    def test_a_cache_of_so_many_bytes_holds_as_many_tokens_as_the_engine_said(
        self, llm: str, gib: float, tokens: int
    ) -> None:
        """vLLM 0.24.0 given bytes, contexts of 16,384 tokens and steps of 8,192 (twenty-second campaign)."""
        one_request = request_cache(shape(llm), block_tokens=16, pooled=True).admission_bytes(16_384, 8_192)
        assert gib * 2.0**30 / one_request * 16_384 == pytest.approx(tokens, rel=1e-3)

    def test_without_recurrent_layers_any_number_of_requests_has_none(self) -> None:
        plan = memory_plan(
            shape("llama-3.1-8b"), 80e9, Precision(), Layout(), EngineSettings(max_context_tokens=8192), BARE
        )
        assert plan.most_states > 10**9

    def test_concurrency(self) -> None:
        settings = EngineSettings(max_context_tokens=8192)
        plan = memory_plan(shape("llama-3.1-8b"), 80e9, Precision(), Layout(), settings, BARE)
        assert max_concurrent_requests(plan, 1000) == plan.kv_cache_bytes // (1008 * 131_072)
        with pytest.raises(InvalidInputError):
            max_concurrent_requests(plan, 0)


class TestRefused:
    def test_too_small_names_both_figures(self) -> None:
        with pytest.raises(DoesNotFitError) as refused:
            memory_plan(shape("llama-3.1-70b"), 80e9, Precision(), Layout(), EngineSettings(), BARE)
        assert refused.value.available_bytes == pytest.approx(0.92 * 80e9)
        assert refused.value.needed_bytes > 141e9
        assert refused.value.needed_bytes > refused.value.available_bytes

    def test_a_context_that_never_fits_is_refused(self) -> None:
        llama = shape("llama-3.1-8b")
        fits = EngineSettings(max_context_tokens=8192)
        assert memory_plan(llama, 24e9, Precision(), Layout(), fits, BARE).kv_cache_tokens > 8192
        with pytest.raises(DoesNotFitError):
            memory_plan(llama, 24e9, Precision(), Layout(), EngineSettings(max_context_tokens=131_072), BARE)

    @pytest.mark.parametrize("precision", [Precision(weights="fp7"), Precision(kv_cache="fp7")])
    def test_unknown_formats(self, precision: Precision) -> None:
        with pytest.raises(UnsupportedError, match="fp7"):
            memory_plan(TINY, 80e9, precision, Layout(), EngineSettings(), BARE)

    @pytest.mark.parametrize("memory", [0.0, -1.0, math.nan, math.inf])
    def test_device_memory_outside_its_domain(self, memory: float) -> None:
        with pytest.raises(InvalidInputError):
            memory_plan(TINY, memory, Precision(), Layout(), EngineSettings(), BARE)

    @pytest.mark.parametrize("fraction", [0.0, 1.5, math.nan])
    def test_memory_fraction_outside_its_domain(self, fraction: float) -> None:
        with pytest.raises(InvalidInputError):
            memory_plan(TINY, 80e9, Precision(), Layout(), EngineSettings(memory_fraction=fraction), BARE)

    def test_more_stages_than_layers(self) -> None:
        with pytest.raises(InvalidInputError):
            stages(4, 5)


class TestLaws:
    @given(ids, formats, powers)
    def test_shards_sum_to_at_least_the_whole(self, llm: str, weights: str, parallel: int) -> None:
        llm_shape = shape(llm)
        assume(layout_problem(llm_shape, Layout(parallel)) is None)
        shard = stage_weight_bytes(llm_shape, weights, Layout(parallel), layers_fraction=1.0, embedding=True, head=True)
        assert shard * parallel >= weight_bytes(llm_shape, weights) * (1 - 1e-9)

    @given(ids, formats, kv_formats, powers)
    def test_more_tensor_parallelism_never_costs_a_device_more(
        self, llm: str, weights: str, kv_cache: str, parallel: int
    ) -> None:
        llm_shape = shape(llm)
        fewer, more = (
            stage_weight_bytes(llm_shape, weights, Layout(n), layers_fraction=1.0, embedding=True, head=True)
            for n in (parallel, 2 * parallel)
        )
        assert more <= fewer * (1 + 1e-12)
        assert kv_cache_bytes_per_token(llm_shape, kv_cache, 2 * parallel) <= kv_cache_bytes_per_token(
            llm_shape, kv_cache, parallel
        )

    @given(ids, kv_formats, powers, st.integers(1, 2_000_000), st.integers(0, 500_000))
    def test_cache_grows_with_context(self, llm: str, kv_cache: str, parallel: int, context: int, more: int) -> None:
        cache = request_cache(shape(llm), kv_cache, parallel, block_tokens=16, pooled=True)
        assert 0 <= cache.bytes_at(context) <= cache.bytes_at(context + more)
        assert (cache.bytes_at(context) == 0) is (not cache.terms and not cache.state_bytes), "encoders alone hold none"
        assert cache.bytes_at(context) <= cache.admission_bytes(context, 8192)

    @given(st.integers(1, 200), st.integers(1, 64))
    def test_stages_hold_every_layer_once(self, layers: int, depth: int) -> None:
        assume(depth <= layers)
        found = stages(layers, depth)
        assert len(found) == depth
        assert sum(s.layers for s in found) == layers
        assert max(s.layers for s in found) - min(s.layers for s in found) <= 1
        assert [s.embedding for s in found].index(True) == 0
        assert [s.head for s in found].index(True) == depth - 1

    @given(ids, formats, kv_formats, powers, st.sampled_from([1, 2, 4]), st.floats(20e9, 400e9))
    def test_parts_sum_to_what_the_engine_may_take(
        self, llm: str, weights: str, kv_cache: str, parallel: int, depth: int, memory: float
    ) -> None:
        settings = EngineSettings(max_context_tokens=4096)
        engine = dataclasses.replace(BARE, driver_reserve_bytes=5e8, runtime_bytes=3e8, hidden_copies=3.0)
        layout = Layout(parallel, depth)
        try:
            plan = memory_plan(shape(llm), memory, Precision(weights, kv_cache), layout, settings, engine)
        except DoesNotFitError:
            return
        parts = plan.weights_bytes + plan.activations_bytes + plan.reserved_bytes + plan.kv_cache_bytes
        budget = (memory - 5e8) * 0.92
        if plan.cache.is_none:  # of encoders: nothing is kept of a text, and what is left stays free
            assert plan.kv_cache_bytes == 0.0
            assert parts <= budget
        else:
            assert parts == pytest.approx(budget)
        assert plan.kv_cache_tokens >= 4096
        larger = memory_plan(shape(llm), memory * 1.1, Precision(weights, kv_cache), layout, settings, engine)
        assert larger.kv_cache_tokens >= plan.kv_cache_tokens

    @given(ids)
    def test_smaller_formats_are_smaller(self, llm: str) -> None:
        by_bits = sorted(WEIGHT_FORMATS.values(), key=lambda f: f.bits_per_weight)
        plain = [f for f in by_bits if not f.quantised]
        sizes = [weight_bytes(shape(llm), f.name) for f in plain]
        assert sizes == sorted(sizes)
        for f in by_bits:
            if f.quantised:
                assert weight_bytes(shape(llm), f.name) <= weight_bytes(shape(llm), "bf16")
