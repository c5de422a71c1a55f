"""Models that make a vector of a text: parameters as published, attention both ways, no head, no chunks."""

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catalog.huggingface import llm_row_from_config
from service.recommendations.from_rows import llm_from_row
from solver.llm_shape import LlmShape
from solver.replay.one_stream import replay
from solver.step import terms
from solver.workload import Load, Traffic, fixed_lengths
from tests.llm_shapes import shape
from tests.solver.samples import configuration

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
        traffic = Traffic(fixed_lengths(511), fixed_lengths(1))
        found = replay(deployed, deployed.tables(), traffic, Load("closed", concurrency=256))
        flops = 2 * 303e6 * 511 + 4 * 511 * 511 * 1024 * 24
        most = deployed.device.flop_per_s["bf16"] / flops
        assert 0.2 * most < found.requests_per_s < most
        assert found.time_to_first_token_s["mean"] == pytest.approx(found.end_to_end_s["mean"])
