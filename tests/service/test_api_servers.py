"""Engines that pass tokens on from several processes, over HTTP."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.benchmark_rows import DEFAULT_ROOT
from tests.service.bodies import changed, estimated

FILE = DEFAULT_ROOT / "kept_back" / "h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_four-servers_t.json"
ASKED: dict[str, Any] = {
    "llm": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "layout": {"tensor_parallel": 1},
    "precision": {"weights": "fp8", "kv_cache": "fp16"},
    "engine": {
        "name": "vllm", "version": "0.24.0", "max_batched_tokens": 8192, "max_sequences": 512, "max_context_tokens": 16384,
        "api_servers": 4, "load_format": "dummy",
    },
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 30, "high": 70},
        "output_tokens": {"distribution": "uniform", "low": 200, "high": 400},
    },
    "load": {"kind": "closed", "concurrency": 256, "requests": 768},
}  # fmt: skip


@pytest.mark.parametrize(
    ("run", "load"),
    [
        ("q30x4-c256", {"kind": "closed", "concurrency": 256, "requests": 768}),
        ("q30x4-open48", {"kind": "open", "requests_per_s": 48, "requests": 1680}),
    ],
)
def test_loads_that_were_measured_behind_four_processes(client: TestClient, run: str, load: dict[str, Any]) -> None:
    """Runs in no fit; with one process the first is promised first tokens four times as late."""
    measured = json.loads(FILE.read_text())["runs"][run]["benchmark"]["results"]
    found = estimated(client, changed(ASKED, "load", load))
    assert found["engine"]["api_servers"] == 4
    for figure, within in (("ttft_ms", 0.35), ("tpot_ms", 0.1)):
        mean = found[figure]["mean"]
        assert mean["expected"] == pytest.approx(measured[figure]["mean"], rel=within)
        assert mean["low"] <= measured[figure]["mean"] <= mean["high"]
    assert found["output_tokens_per_s"]["expected"] == pytest.approx(measured["output_tokens_per_s"], rel=0.08)


def test_one_process_holds_such_a_load_back(client: TestClient) -> None:
    one, four = (estimated(client, changed(ASKED, "engine/api_servers", n)) for n in (1, 4))
    assert one["output_tokens_per_s"]["expected"] < 0.95 * four["output_tokens_per_s"]["expected"]
    assert one["ttft_ms"]["mean"]["expected"] > 2.0 * four["ttft_ms"]["mean"]["expected"]
    assert (one["basis"], four["basis"]) == ("corrected", "borrowed")  # no fit has a run behind several processes
    unstated = dict(ASKED["engine"])
    del unstated["api_servers"]
    assert estimated(client, changed(ASKED, "engine", unstated))["ttft_ms"] == one["ttft_ms"]


def test_engines_of_which_it_is_not_known_refuse_it_by_name(client: TestClient) -> None:
    body = changed(ASKED, "engine", {"name": "sglang", "api_servers": 2})
    (found,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
    assert (found["outcome"], found["reason"]) == ("unsupported", "option_not_in_engine")
    assert "api_servers" in found["detail"]


def test_no_process_is_refused(client: TestClient) -> None:
    refused = client.post("/v1/estimates", json={"estimates": [changed(ASKED, "engine/api_servers", 0)]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/estimates/0/engine/api_servers"
