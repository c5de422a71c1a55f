"""Figures that others published, each with its source, against the memory formulas."""

import pytest

from solver.layout import Layout
from solver.memory.fits import kv_cache_bytes_per_token, weight_bytes
from solver.memory.kv_cache import request_cache
from tests.llm_shapes import shape


class TestWeights:
    @pytest.mark.parametrize(
        ("weights", "gigabytes"),
        [
            ("fp32", 280.0),  # 70e9 · 4; the seed documents say 140
            ("bf16", 140.0),  # 70e9 · 2; the seed documents say 70
        ],
    )
    def test_a_70b_model_weighs_its_parameters_times_bytes(self, weights: str, gigabytes: float) -> None:
        assert weight_bytes(shape("llama-3-70b"), weights) / 1e9 == pytest.approx(gigabytes, rel=0.01)

    def test_llama_3_70b_awq_checkpoint(self) -> None:
        # hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4: 39.8 GB of safetensors
        assert weight_bytes(shape("llama-3.1-70b"), "int4") / 1e9 == pytest.approx(39.8, rel=0.01)

    def test_llama_3_8b_gguf_files(self) -> None:
        # llama.cpp quantize README, Llama 3.1 8B: Q8_0 7.95 GiB, Q4_K_M 4.58 GiB
        assert weight_bytes(shape("llama-3.1-8b"), "q8_0") / 2**30 == pytest.approx(7.95, rel=0.01)
        assert weight_bytes(shape("llama-3.1-8b"), "q4_k_m") / 2**30 == pytest.approx(4.58, rel=0.02)

    def test_gpt_oss_checkpoints_keep_attention_in_16_bits(self) -> None:
        # gpt-oss model card (arXiv:2508.10925), table 1: checkpoints of 60.8 GiB and 12.8 GiB
        assert weight_bytes(shape("gpt-oss-120b"), "mxfp4") / 2**30 == pytest.approx(60.8, rel=0.01)
        assert weight_bytes(shape("gpt-oss-20b"), "mxfp4") / 2**30 == pytest.approx(12.8, rel=0.01)


class TestKeyValueCache:
    @pytest.mark.parametrize(
        ("llm", "bytes_per_token"),
        [
            ("llama-3-70b", 327_680),  # 2 · 80 layers · 8 heads · 128 · 2 bytes
            ("llama-3.1-405b", 516_096),  # 2 · 126 · 8 · 128 · 2
            ("deepseek-v3", 70_272),  # (512 + 64) · 61 · 2; DeepSeek-V3 report (arXiv:2412.19437), table on KV cache
            ("deepseek-v2-lite", 31_104),  # (512 + 64) · 27 · 2
            ("qwen3-30b-a3b", 98_304),  # 2 · 48 · 4 · 128 · 2
            ("falcon-7b", 8_192),  # multi-query: 2 · 32 · 1 · 64 · 2
            ("gpt-3-175b", 4_718_592),  # multi-head: 2 · 96 · 96 · 128 · 2
            ("gpt-oss-120b", 36_864),  # only the 18 full layers grow: 2 · 18 · 8 · 64 · 2
            ("gemma-3-27b", 81_920),  # 10 of 62 layers: 2 · 10 · 16 · 128 · 2
            ("kimi-k3", 27_648),  # 24 latent layers: 24 · 576 · 2
            ("nemotron-3-nano-30b-a3b", 6_144),  # 6 attention layers: 2 · 6 · 2 · 128 · 2
            ("minimax-text-01", 40_960),  # 10 softmax layers: 2 · 10 · 8 · 128 · 2
        ],
    )
    def test_bytes_per_token(self, llm: str, bytes_per_token: int) -> None:
        assert kv_cache_bytes_per_token(shape(llm)) == bytes_per_token

    def test_a_70b_model_at_131072_tokens_takes_42_9_gb(self) -> None:
        # 327,680 · 131,072 = 42.95e9; one of the seed documents says 80 GB
        cache = request_cache(shape("llama-3.1-70b"))
        assert cache.bytes_at(131_072) == 327_680 * 131_072
        assert cache.bytes_at(131_072) / 1e9 == pytest.approx(42.9, rel=0.002)

    def test_sparse_indexer_keys_add_132_bytes_a_token_and_layer(self) -> None:
        # DeepSeek-V3.2 report: 128 fp8 values and a 4-byte scale for each of 61 layers
        extra = kv_cache_bytes_per_token(shape("deepseek-v3.2")) - kv_cache_bytes_per_token(shape("deepseek-v3"))
        assert extra == 61 * 132

    def test_gemma_3_windows_stop_growing(self) -> None:
        # Gemma 3 report (arXiv:2503.19786): 5 of 6 layers keep 1,024 tokens, so long contexts cost a sixth
        cache = request_cache(shape("gemma-3-27b"))
        grown = cache.bytes_at(131_072) - cache.bytes_at(65_536)
        assert grown == 65_536 * kv_cache_bytes_per_token(shape("gemma-3-27b"))
        assert cache.bytes_at(1_024) == 1_024 * 2 * 62 * 16 * 128 * 2


class TestLayouts:
    def test_512_devices_are_counted_right(self) -> None:
        layout = Layout(tensor_parallel=8, pipeline_parallel=8, data_parallel=8)
        assert (layout.devices_per_replica, layout.devices) == (64, 512)
