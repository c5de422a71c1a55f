"""Importing configs: every dialect, number formats, and files that are not configs."""

import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.huggingface import ConfigError, llm_row_from_config
from catalog.rows import LlmRow
from tests.llm_shapes import shape_of

CONFIGS = sorted((Path(__file__).parent.parent / "fixtures" / "llm-configs").glob("*.json"))
TODAY = dt.date(2026, 11, 21)
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def read(config: object) -> LlmRow:
    return llm_row_from_config("x", config, imported_on=TODAY)


def kinds(config: object) -> list[tuple[str, int]]:
    return [(a.kind, a.layers) for a in read(config).attention]


def stored(name: str) -> Any:
    return json.loads(next(p for p in CONFIGS if p.stem == name).read_text())


class TestDialects:
    @pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
    def test_every_config_is_read(self, path: Path) -> None:
        row = read(json.loads(path.read_text()))
        assert shape_of(row).total_weights > 3e8
        assert row.max_context_tokens >= (512 if row.embeds else 2048)

    def test_llama_by_hand(self) -> None:
        row = read(LLAMA)
        # q and o 2·4096², k and v 2·4096·1024, norm 4096; three matrices 4096·14336 and a norm
        assert row.attention[0].weights == 2 * 4096**2 + 2 * 4096 * 1024 + 4096
        assert row.feed_forward[0].weights == 3 * 4096 * 14336 + 4096
        assert shape_of(row).total_weights == 8_030_261_248

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", [("linear", 23), ("full", 6)]),  # M, * and E spelled short
            ("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", [("linear", 48), ("full", 12)]),  # spelled out
            ("nvidia--Llama-3_3-Nemotron-Super-49B-v1", [("full", 49), ("none", 31)]),
            ("Qwen--Qwen3.5-27B", [("linear", 48), ("full", 16)]),
            ("moonshotai--Kimi-K3", [("linear", 69), ("mla", 24)]),
            ("MiniMaxAI--MiniMax-Text-01", [("linear", 70), ("full", 10)]),
            ("XiaomiMiMo--MiMo-V2-Flash", [("full", 9), ("sliding", 39)]),
            ("openai--gpt-oss-120b", [("sliding", 18), ("full", 18)]),
            ("google--gemma-3-27b-it", [("sliding", 52), ("full", 10)]),
            ("google--gemma-2-9b", [("sliding", 21), ("full", 21)]),
            ("meta-llama--Llama-4-Scout-17B-16E-Instruct", [("chunked", 36), ("full", 12)]),
            ("zai-org--GLM-5.2", [("mla", 21), ("mla", 57)]),  # 57 layers reuse an earlier layer's indexer
            ("deepseek-ai--DeepSeek-V4-Flash", [("sliding", 2), ("full", 21), ("full", 20)]),
        ],
    )
    def test_layers_by_kind(self, name: str, expected: list[tuple[str, int]]) -> None:
        assert kinds(stored(name)) == expected

    @pytest.mark.parametrize(
        ("name", "experts", "top_k", "width", "sparse_layers"),
        [
            ("mistralai--Mixtral-8x7B-v0.1", 8, 2, 14336, 32),  # num_local_experts, intermediate_size
            ("Qwen--Qwen3-30B-A3B", 128, 8, 768, 48),  # num_experts, moe_intermediate_size
            ("deepseek-ai--DeepSeek-V3", 256, 8, 2048, 58),  # n_routed_experts, three dense layers first
            ("meta-llama--Llama-4-Maverick-17B-128E-Instruct", 128, 1, 8192, 24),  # every other layer
            ("openai--gpt-oss-20b", 32, 4, 2880, 24),
            ("moonshotai--Kimi-K3", 896, 16, 3072, 92),  # num_experts_per_token
            ("google--gemma-4-26B-A4B", 128, 8, 704, 30),  # top_k_experts
            ("MiniMaxAI--MiniMax-M3", 128, 4, 3072, 57),  # moe_layer_freq is a list
            ("zai-org--GLM-5.2", 256, 8, 2048, 75),  # mlp_layer_types
        ],
    )
    def test_mixtures_of_experts(self, name: str, experts: int, top_k: int, width: int, sparse_layers: int) -> None:
        sparse = next(f for f in read(stored(name)).feed_forward if f.experts)
        assert (sparse.experts, sparse.top_k, sparse.expert_intermediate, sparse.layers) == (
            experts,
            top_k,
            width,
            sparse_layers,
        )

    def test_gemma_4_without_experts_is_dense(self) -> None:
        assert [f.experts for f in read(stored("nvidia--Gemma-4-31B-IT-NVFP4")).feed_forward] == [0]

    def test_a_window_that_is_switched_off_is_ignored(self) -> None:
        config = LLAMA | {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
        assert kinds(config) == [("full", 32)]
        assert kinds(config | {"use_sliding_window": True, "max_window_layers": 28}) == [("full", 28), ("sliding", 4)]
        assert kinds(LLAMA | {"model_type": "mistral", "sliding_window": 4096}) == [("sliding", 32)]

    def test_text_part_of_a_vision_model(self) -> None:
        row = read({"model_type": "some_vl", "text_config": LLAMA | {"model_type": "llama"}, "vision_config": {}})
        assert shape_of(row).total_weights == 8_030_261_248

    def test_attention_of_qwen3_next_gates_its_output(self) -> None:
        """Its config does not say so, as those of Qwen3.5 do: queries and gates are one product."""
        config = stored("Qwen--Qwen3-Next-80B-A3B-Instruct")
        full = next(group for group in read(config).attention if group.kind == "full")
        assert full.weights == 2048 * (2 * 16 + 2 * 2) * 256 + 16 * 256 * 2048 + 2 * 256 + 2048
        assert shape_of(read(config)).total_weights == pytest.approx(80e9, rel=5e-3)

    def test_absent_head_dim_and_heads_follow_from_the_rest(self) -> None:
        config = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
        assert (read(config).attention[0].kv_heads, read(config).attention[0].head_dim) == (32, 128)


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "native", "beside"),
        [
            ("Qwen--Qwen3-32B", "bf16", None),
            ("deepseek-ai--DeepSeek-V3", "fp8", None),
            ("Qwen--Qwen3-32B-FP8-Static-PerTensor", "fp8", None),
            ("openai--gpt-oss-120b", "mxfp4", "bf16"),
            ("moonshotai--Kimi-K2.5", "int4_g32", "bf16"),
            ("moonshotai--Kimi-K3", "mxfp4", "bf16"),
            ("deepseek-ai--DeepSeek-V4-Pro", "mxfp4", "fp8"),
            ("nvidia--DeepSeek-V4-Pro-NVFP4", "nvfp4", "fp8"),
            ("nvidia--Qwen3.5-397B-A17B-NVFP4", "nvfp4", "bf16"),
            ("zai-org--GLM-5-FP8", "fp8", None),  # only norms and indexer parts of attention are left out
        ],
    )
    def test_published_checkpoints(self, name: str, native: str, beside: str | None) -> None:
        row = read(stored(name))
        assert (row.native_weights, row.native_beside_experts) == (native, beside)

    @pytest.mark.parametrize(
        ("quantization", "native"),
        [
            ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4"),
            ({"quant_method": "awq", "bits": 4}, "int4"),
            ({"quant_method": "gptq", "bits": 8}, "int8"),
            ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
            ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
            ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
            (
                {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
                },
                "fp8",
            ),
        ],
    )
    def test_quantisation_methods(self, quantization: dict[str, Any], native: str) -> None:
        assert read(LLAMA | {"quantization_config": quantization}).native_weights == native


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"hidden_size": None}, "hidden_size"),
            ({"hidden_size": -4096}, "hidden_size"),
            ({"hidden_size": "4096"}, "hidden_size"),
            ({"hidden_size": True}, "hidden_size"),
            ({"hidden_size": 1e308}, "hidden_size"),
            ({"hidden_size": math.nan}, "hidden_size"),
            ({"hidden_size": math.inf}, "hidden_size"),
            ({"vocab_size": 0}, "vocab_size"),
            ({"vocab_size": None}, "vocab_size"),
            ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
            ({"num_hidden_layers": None}, "num_hidden_layers"),
            ({"num_attention_heads": None}, "num_attention_heads"),
            ({"num_attention_heads": 8192}, "num_attention_heads"),
            ({"num_key_value_heads": 7}, "num_key_value_heads"),
            ({"intermediate_size": None}, "intermediate_size"),
            ({"max_position_embeddings": None}, "max_position_embeddings"),
            ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
            ({"torch_dtype": "float13"}, "torch_dtype"),
            ({"torch_dtype": 16}, "torch_dtype"),
            ({"model_type": 7}, "model_type"),
            ({"layer_types": ["full_attention"] * 3}, "layer_types"),
            ({"layer_types": ["telepathy"] * 32}, "layer_types"),
            ({"layer_types": "full"}, "layer_types"),
            ({"layer_types": [{}] * 32}, "layer_types"),
            ({"layer_types": ["linear_attention"] * 32}, "linear_num_value_heads"),
            ({"layer_types": ["sliding_attention"] * 32}, "sliding_window"),
            ({"num_local_experts": 8}, "num_experts_per_tok"),
            ({"num_local_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok"),
            ({"num_local_experts": -8}, "num_local_experts"),
            ({"hybrid_override_pattern": "M*X"}, "hybrid_override_pattern"),
            ({"hybrid_override_pattern": ""}, "hybrid_override_pattern"),
            ({"compress_ratios": ["a"] * 32}, "compress_ratios"),
            ({"block_configs": [1] * 32}, "block_configs[0]"),
            ({"kv_lora_rank": 512}, "qk_nope_head_dim"),
            ({"quantization_config": "fp8"}, "quantization_config"),
            ({"quantization_config": {"quant_method": "magic"}}, "quantization_config.quant_method"),
            ({"quantization_config": {}}, "quant_method"),
            ({"quantization_config": {"quant_method": "gptq", "bits": 5}}, "quantization_config.bits"),
            ({"text_config": []}, "text_config"),
        ],
    )
    def test_the_bad_field_is_named(self, change: dict[str, Any], field: str) -> None:
        with pytest.raises(ConfigError) as refused:
            read(LLAMA | change)
        assert refused.value.field == field

    @pytest.mark.parametrize("config", [None, [], "llama", 7, {}, {"a": 1}, {"architectures": ["LlamaForCausalLM"]}])
    def test_what_is_no_config(self, config: object) -> None:
        with pytest.raises(ConfigError):
            read(config)

    def test_a_diffusion_config_is_refused(self) -> None:
        with pytest.raises(ConfigError) as refused:
            read({"_class_name": "UNet2DConditionModel", "block_out_channels": [320, 640], "sample_size": 64})
        assert refused.value.field == "hidden_size"

    def test_an_import_needs_a_date_or_a_source(self) -> None:
        with pytest.raises(ValueError, match="date"):
            llm_row_from_config("x", LLAMA)

    @given(
        st.dictionaries(
            st.sampled_from([*LLAMA, "layer_types", "num_experts", "num_experts_per_tok", "text_config", "kv_lora_rank",
                             "moe_layer_freq", "hybrid_override_pattern", "quantization_config", "sliding_window",
                             "attention_bias", "block_configs", "sparse_attention_config", "linear_attn_config"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text("a.-_1", max_size=4),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a_1", max_size=4), inner),
                max_leaves=6,
            ),
            max_size=3,
        )
    )  # fmt: skip
    def test_any_damage_is_read_or_refused_by_name(self, damage: dict[str, Any]) -> None:
        try:
            row = read(LLAMA | damage)
        except ConfigError:
            return
        assert math.isfinite(shape_of(row).total_weights)
