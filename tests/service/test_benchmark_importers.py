"""Every importer against one invented run told by many tools, and against files the tools themselves wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from service.benchmarks.document import Document, ReadingError
from service.benchmarks.importers import importers, read_payload
from service.benchmarks.plausibility import mean_tokens
from service.benchmarks.reading import Reading
from service.sandboxed_reading import ReadingApart
from service.wire.benchmarks import MeasuredClosedLoad, MeasuredOpenLoad

FIXTURES = Path(__file__).parents[1] / "fixtures" / "benchmarks"
TRUTH: dict[str, Any] = json.loads((FIXTURES / "truth.json").read_text())
TOOL_OF_FILE = {
    "aiperf.csv": "aiperf", "aiperf.json": "aiperf", "aiperf_request_rate.json": "aiperf",
    "genai_perf.csv": "genai-perf", "genai_perf.json": "genai-perf",
    "guidellm_v1.json": "guidellm", "guidellm_v2.json": "guidellm",
    "inference_perf.json": "inference-perf", "inference_perf.yaml": "inference-perf",
    "inferencex_agg_bmk.json": "inferencex",
    "llama_bench.csv": "llama-bench", "llama_bench.json": "llama-bench", "llama_bench.md": "llama-bench",
    "llmd_report_v0_1.json": "llm-d-benchmark-report", "llmd_report_v0_2.json": "llm-d-benchmark-report",
    "llmperf_summary.json": "llmperf",
    "mlperf_offline.txt": "mlperf", "mlperf_offline_invalid.txt": "mlperf", "mlperf_server.txt": "mlperf",
    "mlperf_with_system.json": "mlperf",
    "sglang_bench_serving.jsonl": "sglang-bench-serving",
    "vllm_bench_serve.json": "vllm-bench-serve", "vllm_bench_serve.jsonl": "vllm-bench-serve",
    "vllm_bench_serve_detailed.json": "vllm-bench-serve",
    "vllm_bench_serve_h200_closed.json": "vllm-bench-serve", "vllm_bench_serve_h200_rate.json": "vllm-bench-serve",
}  # fmt: skip
ALL_STATISTICS = ("mean", "p50", "p90", "p95", "p99")


def read(name: str) -> list[Reading]:
    return read_payload((FIXTURES / name).read_text())


def closed_load(reading: Reading) -> MeasuredClosedLoad:
    assert isinstance(reading.load, MeasuredClosedLoad)
    return reading.load


def open_load(reading: Reading) -> MeasuredOpenLoad:
    assert isinstance(reading.load, MeasuredOpenLoad)
    return reading.load


def agrees(reading: Reading, latencies: dict[str, tuple[str, ...]], relative: float = 1e-6) -> None:
    """The named statistics equal the truth's, and no others are stated."""
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        spread = getattr(reading.results, name)
        stated = {p for p in ALL_STATISTICS if getattr(spread, p) is not None}
        assert stated == set(latencies.get(name, ())), name
        for statistic in stated:
            assert getattr(spread, statistic) == pytest.approx(TRUTH[name][statistic], rel=relative), (name, statistic)


class TestDetection:
    @pytest.mark.parametrize("name", sorted(TOOL_OF_FILE))
    def test_exactly_one_importer_recognises_each_file(self, name: str) -> None:
        document = Document((FIXTURES / name).read_text())
        assert [tool for tool, importer in importers().items() if importer.recognises(document)] == [TOOL_OF_FILE[name]]

    def test_every_importer_has_a_file(self) -> None:
        assert set(TOOL_OF_FILE.values()) == set(importers())

    @pytest.mark.parametrize("name", [n for n in sorted(TOOL_OF_FILE) if n.endswith((".json", ".jsonl"))])
    def test_json_files_may_come_as_json_instead_of_text(self, name: str) -> None:
        text = (FIXTURES / name).read_text()
        value = [json.loads(line) for line in text.splitlines()] if name.endswith("jsonl") else json.loads(text)
        assert [r.results for r in read_payload(value)] == [r.results for r in read_payload(text)]

    def test_a_named_tool_must_match_the_content(self) -> None:
        with pytest.raises(ReadingError, match="does not look like the output of guidellm"):
            read_payload((FIXTURES / "aiperf.json").read_text(), "guidellm")

    def test_an_unknown_tool_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ReadingError, match="known are auto, aiperf"):
            read_payload({}, "wrk")


class TestOneRunToldByManyTools:
    """The synthetic files: after import they say the same."""

    ALL = dict.fromkeys(("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"), ALL_STATISTICS)
    NO_ITL = dict.fromkeys(("ttft_ms", "tpot_ms", "e2e_ms"), ALL_STATISTICS)
    FEW = dict.fromkeys(("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"), ("mean", "p50", "p99"))

    def test_vllm(self) -> None:
        (run,) = read("vllm_bench_serve.json")
        agrees(run, self.ALL)
        assert (closed_load(run).concurrency, closed_load(run).requests) == (4, 60)
        assert run.results.requests_per_s == pytest.approx(TRUTH["requests_per_s"])
        assert run.results.output_tokens_per_s == pytest.approx(TRUTH["output_tokens_per_s"])
        assert mean_tokens(run.traffic.prompt_tokens) == pytest.approx(TRUTH["prompt_tokens_mean"])
        assert mean_tokens(run.traffic.output_tokens) == pytest.approx(TRUTH["output_tokens_mean"])
        assert run.facts.measured_at is not None
        assert run.facts.measured_at.isoformat() == "2026-11-21T12:00:00+00:00"

    def test_vllm_json_lines_hold_one_run_a_line(self) -> None:
        first, second = read("vllm_bench_serve.jsonl")
        assert closed_load(first).concurrency == 4
        assert open_load(second).requests_per_s == 2.0

    def test_vllm_detailed_lists_every_length(self) -> None:
        (run,) = read("vllm_bench_serve_detailed.json")
        assert run.traffic.output_tokens is not None
        assert run.traffic.output_tokens.distribution == "histogram"
        assert mean_tokens(run.traffic.output_tokens) == pytest.approx(TRUTH["output_tokens_mean"])

    def test_sglang(self) -> None:
        (run,) = read("sglang_bench_serving.jsonl")
        agrees(run, self.FEW)
        assert run.results.input_tokens_per_s == pytest.approx(TRUTH["input_tokens_per_s"])
        assert closed_load(run).concurrency == 4
        assert run.results.failed is None

    def test_genai_perf_json(self) -> None:
        (run,) = read("genai_perf.json")
        agrees(run, self.NO_ITL)
        assert run.facts.engine_name == "vllm"

    def test_genai_perf_csv_is_rounded_to_hundredths(self) -> None:
        (run,) = read("genai_perf.csv")
        agrees(run, self.NO_ITL, relative=1e-3)
        assert run.results.completed == 60
        assert run.load is None

    @pytest.mark.parametrize("version", ["1", "2"])
    def test_llm_d_report(self, version: str) -> None:
        (run,) = read(f"llmd_report_v0_{version}.json")
        agrees(run, self.ALL)
        assert run.results.duration_s == pytest.approx(TRUTH["duration_s"])
        assert (run.facts.devices, run.facts.tensor_parallel, run.facts.engine_name) == (1, 1, "vllm")

    def test_llm_d_report_as_yaml(self) -> None:
        (run,) = read_payload(yaml.safe_dump(json.loads((FIXTURES / "llmd_report_v0_2.json").read_text())))
        agrees(run, self.ALL)
        assert closed_load(run).concurrency == 4

    def test_inferencex_scales_from_one_gpu_to_all(self) -> None:
        (run,) = read("inferencex_agg_bmk.json")
        agrees(run, self.FEW)
        assert run.results.output_tokens_per_s == pytest.approx(TRUTH["output_tokens_per_s"])
        assert (run.facts.devices, run.facts.tensor_parallel, run.facts.weights) == (2, 2, "bf16")

    def test_llmperf_states_no_tpot_so_it_is_derived(self) -> None:
        (run,) = read("llmperf_summary.json")
        stated = {"ttft_ms": ALL_STATISTICS, "e2e_ms": ALL_STATISTICS, "tpot_ms": ("mean",)}
        agrees(run, stated, relative=2e-3)
        assert run.results.requests_per_s == pytest.approx(TRUTH["requests_per_s"])

    def test_mlperf_server(self) -> None:
        (run,) = read("mlperf_server.txt")
        agrees(run, self.NO_ITL, relative=1e-5)
        assert open_load(run).requests_per_s == pytest.approx(TRUTH["requests_per_s"], rel=1e-4)
        assert mean_tokens(run.traffic.output_tokens) == pytest.approx(TRUTH["output_tokens_mean"], rel=1e-4)

    def test_mlperf_offline_is_a_burst(self) -> None:
        (run,) = read("mlperf_offline.txt")
        assert (run.results.completed, closed_load(run).concurrency) == (60, 60)
        assert run.results.duration_s == pytest.approx(TRUTH["duration_s"], rel=1e-6)
        assert run.results.ttft_ms.empty
        assert not run.objections

    def test_mlperf_invalid_is_objected_to(self) -> None:
        (run,) = read("mlperf_offline_invalid.txt")
        assert run.objections == ("MLPerf calls the result INVALID",)

    def test_mlperf_system_description_names_the_machine(self) -> None:
        (run,) = read("mlperf_with_system.json")
        assert (run.facts.device_name, run.facts.devices) == ("NVIDIA H200-SXM-141GB", 1)
        assert (run.facts.engine_name, run.facts.engine_version) == ("vllm", "0.10.0")


class TestFilesTheToolsWrote:
    """The local engine: TTFT 20 ms and the client's own, TPOT 10 ms, so E2E is 330 ms and a little."""

    @pytest.mark.parametrize(
        "name", ["aiperf.json", "aiperf.csv", "guidellm_v1.json", "guidellm_v2.json", "inference_perf.json"]
    )
    def test_the_engines_pace_is_found(self, name: str) -> None:
        (run,) = read(name)
        assert run.results.tpot_ms.mean == pytest.approx(10.0, rel=0.01)
        assert run.results.ttft_ms.p50 == pytest.approx(23.5, abs=3.5)
        assert run.results.e2e_ms.p50 == pytest.approx(334.0, abs=5.0)
        assert mean_tokens(run.traffic.output_tokens) == 32.0

    def test_vllm_against_llama_8b_on_an_h200(self) -> None:
        """Beside this project's own load generator on the same server: 10.5 requests/s gave 7.34 ms, 32 clients 8.22."""
        (poisson,), (closed,) = read("vllm_bench_serve_h200_rate.json"), read("vllm_bench_serve_h200_closed.json")
        assert open_load(poisson).requests_per_s == 8.0
        assert closed_load(closed).concurrency == 32
        for run, tpot_ms, ttft_p99_ms, tokens_per_s in (
            (poisson, 6.0495, 88.688, 975.12), (closed, 10.0152, 783.37, 2624.18),
        ):  # fmt: skip
            assert run.results.completed == 96
            assert run.results.tpot_ms.mean == pytest.approx(tpot_ms, abs=1e-4)
            assert run.results.ttft_ms.p99 == pytest.approx(ttft_p99_ms, abs=1e-3)
            assert run.results.output_tokens_per_s == pytest.approx(tokens_per_s, abs=1e-2)

    def test_aiperf_figures(self) -> None:
        (run,) = read("aiperf.json")
        assert run.results.requests_per_s == 11.801005072838455
        assert run.results.ttft_ms.p99 == 32.17358581999999
        assert run.results.itl_ms.p99 == 11.568631509999992
        assert run.results.duration_s == pytest.approx(3.3804352)
        assert (closed_load(run).concurrency, closed_load(run).requests) == (4, 40)
        assert run.facts.llm_name == "local-model"

    def test_aiperf_request_rate_is_an_open_load(self) -> None:
        (run,) = read("aiperf_request_rate.json")
        assert (open_load(run).requests_per_s, open_load(run).arrivals) == (20.0, "poisson")

    def test_aiperf_csv_and_json_agree(self) -> None:
        (by_json,), (by_csv,) = read("aiperf.json"), read("aiperf.csv")
        assert by_csv.results.completed == by_json.results.completed == 40
        assert by_csv.results.failed == 0
        assert by_csv.results.e2e_ms.p95 == pytest.approx(by_json.results.e2e_ms.p95, abs=0.005)

    @pytest.mark.parametrize("version", ["1", "2"])
    def test_guidellm_load(self, version: str) -> None:
        (run,) = read(f"guidellm_v{version}.json")
        assert closed_load(run).concurrency == 4
        assert (run.results.completed, run.results.failed) == (40, 0)

    @pytest.mark.parametrize("name", sorted(TOOL_OF_FILE))
    def test_a_file_read_apart_is_the_same(self, name: str) -> None:
        """In a process of its own, and back as JSON."""
        payload = (FIXTURES / name).read_text()
        apart = ReadingApart(time_limit_s=30.0, memory_limit_bytes=100_000_000)
        answered = apart.read("service.benchmarks.sandboxed:read", {"tool": "auto"}, payload)
        assert TypeAdapter(list[Reading]).validate_python(answered) == read_payload(payload)

    def test_inference_perf_yaml_equals_json(self) -> None:
        assert read("inference_perf.yaml") == read("inference_perf.json")


class TestLlamaBench:
    @pytest.mark.parametrize("name", ["llama_bench.json", "llama_bench.csv", "llama_bench.md"])
    def test_prompt_generation_and_both(self, name: str) -> None:
        prompt, generation, both = read(name)
        assert prompt.results.ttft_ms.mean == pytest.approx(64.0)  # 512 tokens at 8,000/s
        assert prompt.results.input_tokens_per_s == 8000.0
        assert generation.results.tpot_ms.mean == pytest.approx(10.0)  # 100 tokens/s
        assert generation.results.output_tokens_per_s == 100.0
        assert both.results.e2e_ms.mean == pytest.approx(1344.0, rel=1e-5)
        assert both.results.output_tokens_per_s == pytest.approx(128 / 1.344, rel=1e-5)
        assert prompt.facts.device_name == "NVIDIA GeForce RTX 4090"
        assert prompt.facts.weights == "q8_0"
        assert prompt.facts.engine_version == "b6000 (abcdef01)"


class TestBadFiles:
    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            ("", "is empty"),
            (None, "is empty"),
            ("\x00\x01\x02\xff binary", "not the output of any known tool"),
            ('{"date": "20261121", "backend": "vllm", "num_pro', "may be truncated"),
            ("[" * 100_000, "may be truncated"),
            ([], "not the output of any known tool"),
            (42, "not the output of any known tool"),
            ("a: &x [1]\nb: *x\n", "aliases are not accepted"),
        ],
    )
    def test_refused_with_the_reason(self, payload: object, message: str) -> None:
        with pytest.raises(ReadingError, match=message):
            read_payload(payload)

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("mean_ttft_ms", "54.5", "not a number"),
            ("mean_ttft_ms", float("nan"), "not a finite number"),
            ("output_throughput", float("inf"), "not a finite number"),
            ("mean_tpot_ms", -1.0, "cannot be negative"),
            ("completed", 1.5, "not a whole number"),
            ("duration", True, "not a number"),
            ("mean_ttft_ms", {"value": 3}, "not a number"),
        ],
    )
    def test_wrong_values_name_their_key(self, key: str, value: object, message: str) -> None:
        row = json.loads((FIXTURES / "vllm_bench_serve.json").read_text()) | {key: value}
        with pytest.raises(ReadingError, match=message) as caught:
            read_payload(row)
        assert caught.value.pointer == f"/payload/{key}"

    def test_every_number_as_a_string(self) -> None:
        row = {
            key: str(value) if isinstance(value, (int, float)) else value
            for key, value in json.loads((FIXTURES / "vllm_bench_serve.json").read_text()).items()
        }
        with pytest.raises(ReadingError, match="not a number"):
            read_payload(row)

    def test_deep_nesting_is_refused_without_recursion(self) -> None:
        nested: Any = {}
        for _ in range(200):
            nested = {"a": nested}
        with pytest.raises(ReadingError, match="nested deeper"):
            read_payload(nested)

    def test_an_unknown_unit_is_refused(self) -> None:
        report = json.loads((FIXTURES / "genai_perf.json").read_text())
        report["time_to_first_token"]["unit"] = "fortnights"
        with pytest.raises(ReadingError, match="not a known unit of time"):
            read_payload(report)

    @pytest.mark.parametrize("name", sorted(TOOL_OF_FILE))
    def test_truncation_anywhere_is_an_answer(self, name: str) -> None:
        """A cut file is refused with a reason or, where a text format allows it, read up to the cut."""
        text = (FIXTURES / name).read_text()
        for cut in range(0, len(text), max(1, len(text) // 25)):
            try:
                readings = read_payload(text[:cut])
            except (ReadingError, ValueError):
                continue
            assert readings
