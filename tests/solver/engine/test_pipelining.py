"""On how many batches the stages of a pipeline work at once, and what follows."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import catalog
from solver.deployment.configuration import Configuration
from solver.engine.pipelining import WAITING_STAGES, batches_at_once
from solver.engine.releases import release
from solver.layout import Layout
from solver.lengths import uniform_lengths
from solver.precision import Precision
from solver.replay.one_stream import replay
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

TRAFFIC = Traffic(uniform_lengths(819, 1024), uniform_lengths(200, 256))


class TestBatches:
    @pytest.mark.parametrize(
        ("engine", "version", "llm", "expected"),
        [
            ("vllm", None, "qwen3-30b-a3b", 1),
            ("vllm", "0.24.0", "llama-4-scout", 1),
            ("vllm", "0.15.0", "deepseek-v3", 1),
            ("vllm", "0.14.1", "deepseek-v3", 4),
            ("vllm", "0.28.1", "deepseek-v3", 1),
            ("vllm", "0.29.0", "deepseek-v3", 4),
            ("vllm", "0.33.0", "gpt-oss-120b", 4),
            ("vllm", "0.19.0", "llama-3.1-70b", 1),
            ("vllm", "0.23.0", "llama-3.1-70b", 4),
            ("vllm", "nightly", "gemma-3-27b", 1),
            ("vllm", None, "qwen2.5-72b", 1),
            ("vllm", None, "llama-3.1-70b", 4),
            ("vllm", None, "qwen3-32b", 4),
            ("vllm", None, "deepseek-v2-lite", 4),
            ("sglang", None, "qwen3-30b-a3b", 4),
        ],
    )
    def test_by_engine_release_and_model(self, engine: str, version: str | None, llm: str, expected: int) -> None:
        assert batches_at_once(engine, version, shape(llm), 4) == expected

    def test_one_stage_is_one_batch(self) -> None:
        assert {batches_at_once("vllm", None, shape(llm), 1) for llm in ("qwen3-30b-a3b", "llama-3.1-8b")} == {1}


class TestWaitingStages:
    """Qwen3 30B-A3B over two stages, whose first waits for the last."""

    @staticmethod
    def of(layout: Layout, llm: str = "qwen3-30b-a3b") -> Configuration:
        return configuration(
            shape(llm),
            "h200-sxm",
            layout,
            Precision(weights="fp8"),
            engine=EngineSettings("vllm", "0.24.0", max_sequences=256),
        )

    def test_one_batch_has_all_seats_and_the_whole_cache(self) -> None:
        two = self.of(Layout(pipeline_parallel=2))
        assert (two.lanes, two.batches) == (1, 1)
        assert two.schedule().max_sequences == 256
        assert two.schedule().kv_cache_tokens == two.kv_cache_tokens
        dense = self.of(Layout(pipeline_parallel=2), "llama-3.1-8b")
        assert (dense.lanes, dense.schedule().max_sequences) == (2, 128)

    def test_a_step_is_one_devices_and_what_passes_it_on(self) -> None:
        one, two = self.of(Layout()), self.of(Layout(pipeline_parallel=2))
        added = two.tables().decode_s[1:] - one.tables().decode_s[1:]
        assert np.all(added > 0.0)
        assert np.all(added < 1e-3)

    def test_two_stages_complete_hardly_more_than_one_device(self) -> None:
        load = Load("closed", concurrency=64)
        one, two = (
            replay(found, found.tables(), TRAFFIC, load).output_tokens_per_s
            for found in (self.of(Layout()), self.of(Layout(pipeline_parallel=2)))
        )
        assert 0.8 * one < two < 1.05 * one

    def test_stages_that_work_at_once_complete_more(self) -> None:
        load = Load("closed", concurrency=128)
        one, two = (
            replay(found, found.tables(), TRAFFIC, load).output_tokens_per_s
            for found in (self.of(Layout(), "llama-3.1-8b"), self.of(Layout(pipeline_parallel=2), "llama-3.1-8b"))
        )
        assert two > 1.15 * one


class TestPiecesOfReplies:
    def test_chunked_attention_is_launched_layer_by_layer(self) -> None:
        settings = EngineSettings("vllm", "0.24.0")
        scout = configuration(shape("llama-4-scout"), "h200-sxm", Layout(8), Precision(weights="fp8"), engine=settings)
        least = 48 * scout.constants.si("piecewise_decode_layer_us")
        assert least > 0.0
        assert np.all(scout.tables().decode_s[1:] >= least)
        llama = configuration(shape("llama-3.1-8b"), "h200-sxm", Layout(8), Precision(weights="fp8"), engine=settings)
        assert llama.tables().decode_s[1] < 32 * scout.constants.si("piecewise_decode_layer_us")


def test_an_unstated_release_is_the_one_that_deployment_files_start() -> None:
    rows = tomllib.loads((Path(catalog.__file__).parent / "engines" / "releases.toml").read_text(encoding="utf-8"))[
        "release"
    ]
    started = {row["engine"]: release(row["default"]) for row in rows}
    for engine, known in WAITING_STAGES.items():
        assert started[engine][: len(known.unstated)] == known.unstated
