"""Models that make a vector of a text: parameters as published, attention both ways, no head, no chunks."""

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catalog.huggingface import ConfigError, llm_row_from_config
from service.recommendations.from_rows import llm_from_row
from solver.engine.profiles import VLLM_GRAPHS
from solver.errors import DoesNotFitError
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.llm_shape import LlmShape
from solver.memory.fits import engine_memory, max_concurrent_requests, memory_plan
from solver.precision import Precision
from solver.replay.one_stream import replay
from solver.step import terms
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration, constants

ENCODER: dict[str, Any] = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
    "num_hidden_layers": 12, "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24}
MULTILINGUAL = {"model_type": "xlm-roberta", "type_vocab_size": 1, "vocab_size": 250002, "pad_token_id": 1}


def encoder(**changes: Any) -> LlmShape:
    row = llm_row_from_config("encoder", ENCODER | changes, imported_on=dt.date(2026, 11, 24))
    return llm_from_row(row.model_dump())


class TestImport:
    @pytest.mark.parametrize(
        ("changes", "published", "context"),
        [
            ({}, 109_482_240, 512),
            (LARGE, 335_141_888, 512),
            (LARGE | MULTILINGUAL | {"max_position_embeddings": 514}, 559_890_432, 512),
            (LARGE | MULTILINGUAL | {"max_position_embeddings": 8194}, 567_754_752, 8192),
        ],
        ids=["bert-base", "bert-large", "xlm-roberta-large", "bge-m3"],
    )
    def test_encoders_have_as_many_parameters_as_counted_in_their_checkpoints(
        self, changes: dict[str, Any], published: int, context: int
    ) -> None:
        found = encoder(**changes)
        assert (found.total_weights, found.max_context_tokens) == (published, context)
        assert found.embeds
        assert found.bidirectional

    def test_a_decoder_embeds_only_where_that_is_said(self) -> None:
        config = {
            "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "head_dim": 128,
            "num_hidden_layers": 28, "num_key_value_heads": 8, "vocab_size": 151669, "max_position_embeddings": 32768,
            "tie_word_embeddings": True,
        }  # fmt: skip
        plain = llm_row_from_config("q", config, imported_on=dt.date(2026, 11, 24))
        asked = llm_row_from_config("q", config, imported_on=dt.date(2026, 11, 24), embeds=True)
        assert (plain.embeds, asked.embeds, asked.bidirectional) == (False, True, False)
        assert llm_from_row(asked.model_dump()).total_weights == 595_776_512


MODERN: dict[str, Any] = {
    "model_type": "modernbert", "hidden_activation": "gelu", "hidden_size": 768, "intermediate_size": 1152, "num_attention_heads": 12,
    "num_hidden_layers": 22, "global_attn_every_n_layers": 3, "local_attention": 128, "max_position_embeddings": 8192,
    "vocab_size": 50368, "attention_bias": False, "mlp_bias": False,
}  # fmt: skip


class TestModernBert:
    def test_one_layer_in_three_looks_at_all_of_a_text(self) -> None:
        """149 million parameters, as published; layers 0, 3, … 21 are global."""
        row = llm_row_from_config("modern", MODERN, imported_on=dt.date(2026, 11, 24))
        found = llm_from_row(row.model_dump())
        assert {(g.kind, g.layers, g.window_tokens) for g in found.attention} == {("full", 8, 0), ("sliding", 14, 128)}
        assert found.total_weights / 1e6 == pytest.approx(149.0, abs=0.5)
        assert (found.embeds, found.bidirectional, found.max_context_tokens) == (True, True, 8192)
        assert all(block.gated for block in found.feed_forward)

    def test_windows_make_long_texts_cheaper(self) -> None:
        found = llm_from_row(llm_row_from_config("m", MODERN, imported_on=dt.date(2026, 11, 24)).model_dump())
        laws = {
            limit: flops for limit, _, flops in terms.prefill_pair_s(found, configuration(found, "h100-sxm").rates())
        }
        # 8 layers over T² pairs, 14 over 128·T, 4·h FLOPs each.
        assert laws[float("inf")] * 8192 * 8192 / 2 == pytest.approx(8 * 4 * 768 * 8192 * 8192)
        assert laws[128.0] * 128 * 8192 == pytest.approx(14 * 4 * 768 * 128 * 8192)

    @pytest.mark.parametrize("missing", ["global_attn_every_n_layers", "local_attention"])
    def test_without_its_windows_it_is_refused(self, missing: str) -> None:
        config = {name: value for name, value in MODERN.items() if name != missing}
        with pytest.raises(ConfigError, match=r"global_attn_every_n_layers|sliding_window"):
            llm_row_from_config("m", config, imported_on=dt.date(2026, 11, 24))


class TestMemory:
    def test_an_encoder_holds_no_cache_and_seats_as_many_as_the_engine_takes(self) -> None:
        for found, none in ((encoder(**LARGE), True), (shape("qwen3-embedding-0.6b"), False)):
            memory = engine_memory("h100", constants("h100-sxm").values_si(), VLLM_GRAPHS.sizes)
            plan = memory_plan(found, 80e9, Precision(), Layout(), EngineSettings(max_context_tokens=512), memory)
            assert plan.cache.is_none == none
            assert (plan.kv_cache_bytes == 0.0) == none
            assert max_concurrent_requests(plan, 400) > 512

    def test_one_that_does_not_fit_is_refused_all_the_same(self) -> None:
        memory = engine_memory("h100", constants("h100-sxm").values_si(), VLLM_GRAPHS.sizes)
        with pytest.raises(DoesNotFitError):
            memory_plan(encoder(**LARGE), 1e9, Precision(), Layout(), EngineSettings(max_context_tokens=512), memory)


class TestTime:
    def test_looking_both_ways_makes_twice_the_pairs(self) -> None:
        both = encoder(**LARGE)
        one_way = replace(both, bidirectional=False)
        deployed = configuration(both, "h100-sxm")
        pairs, half = (terms.prefill_pair_s(one, deployed.rates())[0] for one in (both, one_way))
        assert pairs[2] == 2 * half[2]
        # BERT-large over a text of 512 tokens: 4·T²·h FLOPs of attention a layer, over all heads.
        assert pairs[2] * 512 * 512 / 2 == pytest.approx(4 * 512 * 512 * 1024 * 24)

    def test_nothing_is_sampled(self) -> None:
        found, decoder = shape("qwen3-8b"), shape("qwen3-8b")
        deployed = configuration(replace(found, embeds=True), "h100-sxm")
        plain = configuration(decoder, "h100-sxm")
        assert deployed.tables().head_flops == 0.0
        assert float(np.max(deployed.tables().head_s)) < 0.05 * float(np.max(plain.tables().head_s))
        assert replace(found, embeds=True).active_weights < found.active_weights

    def test_a_text_is_never_cut(self) -> None:
        assert not configuration(encoder(), "h100-sxm").schedule().chunked_prefill
        assert configuration(shape("qwen3-8b"), "h100-sxm").schedule().chunked_prefill

    def test_throughput_is_below_what_arithmetic_allows(self) -> None:
        """BERT-large, 512 tokens an item: 2·303e6·512 FLOPs of products and 4·T²·h·L of attention."""
        deployed = configuration(encoder(**LARGE), "h100-sxm")
        priors = dict(deployed.constants.priors)
        for name in ("item_ingest_us", "item_token_us"):  # a front end that is never waited for
            priors[name] = replace(priors[name], value=0.0)
        deployed = replace(deployed, constants=replace(deployed.constants, priors=priors))
        traffic = Traffic(fixed_lengths(511), fixed_lengths(1))
        found = replay(deployed, deployed.tables(), traffic, Load("closed", concurrency=256))
        flops = 2 * 303e6 * 511 + 4 * 511 * 511 * 1024 * 24
        most = deployed.device.flop_per_s["bf16"] / flops
        assert 0.2 * most < found.requests_per_s < most
        assert found.time_to_first_token_s["mean"] == pytest.approx(found.end_to_end_s["mean"])
