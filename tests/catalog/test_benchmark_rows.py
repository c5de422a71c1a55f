"""The measured runs that ship: they read, and their figures hold together."""

import json
from pathlib import Path

import pytest

from catalog.benchmark_rows import (
    DEFAULT_ROOT,
    BenchmarkFile,
    BenchmarkFilesError,
    BenchmarkRow,
    read_benchmark_files,
    read_request_records,
)
from service.agent.percentiles import latency_statistics

FILES = read_benchmark_files()
RUNS = [run for file in FILES for run in file.runs]
BOARD_LIMIT_W = 700.0


@pytest.mark.parametrize("run", RUNS, ids=[run.id for run in RUNS])
class TestRuns:
    def test_percentiles_rise(self, run: BenchmarkRow) -> None:
        for latency in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
            statistics = run.benchmark["results"][latency] or {}
            known = [statistics[p] for p in ("p50", "p90", "p95", "p99") if statistics.get(p) is not None]
            assert known == sorted(known)

    def test_littles_law_bounds_the_requests_in_flight(self, run: BenchmarkRow) -> None:
        load, results = run.benchmark["load"], run.benchmark["results"]
        in_flight = results["requests_per_s"] * results["e2e_ms"]["mean"] / 1e3
        if load["kind"] == "closed":
            assert 0.5 * load["concurrency"] < in_flight < 1.005 * load["concurrency"]

    def test_latencies_add_up(self, run: BenchmarkRow) -> None:
        """E2E = TTFT + TPOT · (n − 1): exact for each request, near enough for means over lengths 0.8 … 1 of high."""
        results, output = run.benchmark["results"], run.benchmark["traffic"]["output_tokens"]
        decode_tokens = (output["low"] + output["high"]) / 2 - 1
        added = results["ttft_ms"]["mean"] + results["tpot_ms"]["mean"] * decode_tokens
        assert added == pytest.approx(results["e2e_ms"]["mean"], rel=0.10)

    def test_power_is_within_the_boards_limit(self, run: BenchmarkRow) -> None:
        assert 0 < run.benchmark["context"]["power_w_mean"] <= BOARD_LIMIT_W * run.benchmark["context"]["devices"]

    def test_nothing_failed_or_was_preempted(self, run: BenchmarkRow) -> None:
        assert not run.benchmark["results"]["failed"]
        assert not run.preemptions


WITH_RECORDS = [file for file in FILES if file.campaign == "2026-11-21-b"]


@pytest.mark.parametrize("file", WITH_RECORDS, ids=[file.id for file in WITH_RECORDS])
def test_results_follow_from_the_request_records(file: BenchmarkFile) -> None:
    records = read_request_records(DEFAULT_ROOT / "requests" / f"{file.id}_b.json.gz")
    assert set(records) == {run.id for run in file.runs}
    for run in file.runs:
        results, columns = run.benchmark["results"], records[run.id]
        assert len(columns["sent_s"]) == results["completed"] == run.benchmark["load"]["requests"]
        tokens = sum(columns["output_tokens"])
        assert tokens / results["duration_s"] == pytest.approx(results["output_tokens_per_s"], rel=1e-5)
        time_per_output_token_ms = [
            (e2e - ttft) / (n - 1)
            for e2e, ttft, n in zip(columns["e2e_ms"], columns["ttft_ms"], columns["output_tokens"], strict=True)
        ]
        for name, values in (
            ("ttft_ms", columns["ttft_ms"]),
            ("e2e_ms", columns["e2e_ms"]),
            ("tpot_ms", time_per_output_token_ms),
        ):
            statistics = latency_statistics(values)
            assert statistics is not None
            for percentile, value in statistics.as_json().items():
                assert value == pytest.approx(results[name][percentile], rel=1e-3, abs=0.006)
        output = run.benchmark["traffic"]["output_tokens"]
        assert all(output["low"] <= n <= output["high"] for n in columns["output_tokens"])


def test_every_fault_of_every_file_is_named(tmp_path: Path) -> None:
    good = json.loads(next(DEFAULT_ROOT.glob("*_b.json")).read_text())
    (tmp_path / "a.json").write_text(json.dumps(good))
    (tmp_path / "b.json").write_text(json.dumps(good))
    (tmp_path / "c.json").write_text(json.dumps(good | {"campaign": None, "surprise": 1}))
    with pytest.raises(BenchmarkFilesError) as caught:
        read_benchmark_files(tmp_path)
    told = "\n".join(caught.value.problems)
    assert good["runs"][0]["id"] in told
    assert "c.json: campaign" in told
    assert "c.json: surprise" in told
