"""Up to how many tokens of a step an engine captures, over HTTP: what it does unless told, what telling it is worth, and that plans do."""

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.benchmark_rows import DEFAULT_ROOT
from tests.service.bodies import changed, estimated

FILES = "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_{}_u.json"
ASKED: dict[str, Any] = {
    "llm": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "layout": {"tensor_parallel": 1},
    "precision": {"weights": "fp8", "kv_cache": "fp16"},
    "engine": {
        "name": "vllm", "version": "0.24.0", "max_sequences": 64, "max_context_tokens": 16384, "load_format": "dummy",
    },
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 100, "high": 300},
        "output_tokens": {"distribution": "uniform", "low": 200, "high": 400},
    },
    "load": {"kind": "closed", "concurrency": 64, "requests": 600},
}  # fmt: skip


def measured(file: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEFAULT_ROOT / FILES.format(file)).read_text())["runs"][run]["benchmark"]
    return found["results"]


@pytest.mark.parametrize(
    ("captured", "file", "run"), [(None, "64-seats", "q30-s64-c64"), (512, "64-seats-captured-512", "q30-s64-g512-c64")]
)
def test_as_measured_on_seats_of_which_twice_are_captured_and_when_told_more(
    client: TestClient, captured: int | None, file: str, run: str
) -> None:
    """Runs in no fit. On 64 seats vLLM captures up to 128 tokens unless told."""
    found, results = estimated(client, changed(ASKED, "engine/max_captured_tokens", captured)), measured(file, run)
    for figure, within in (("ttft_ms", 0.25), ("tpot_ms", 0.1)):
        mean = found[figure]["mean"]
        assert mean["expected"] == pytest.approx(results[figure]["mean"], rel=within)
        assert mean["low"] <= results[figure]["mean"] <= mean["high"]
    assert found["output_tokens_per_s"]["expected"] == pytest.approx(results["output_tokens_per_s"], rel=0.1)


def test_what_twice_the_seats_are_is_what_is_captured_unless_told(client: TestClient) -> None:
    unless_told, told = (estimated(client, changed(ASKED, "engine/max_captured_tokens", n)) for n in (None, 128))
    assert unless_told["tpot_ms"] == told["tpot_ms"]


def test_graphs_take_memory_of_the_cache(client: TestClient) -> None:
    few, many = (estimated(client, changed(ASKED, "engine/max_captured_tokens", n)) for n in (512, 4096))
    less = few["memory"]["kv_cache_gib"] - many["memory"]["kv_cache_gib"]
    assert less == pytest.approx(41.27 - 40.39, abs=0.1)


def test_engines_that_cannot_be_told_refuse_it_by_name(client: TestClient) -> None:
    body = changed(ASKED, "engine", {"name": "sglang", "max_captured_tokens": 2048})
    (found,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
    assert (found["outcome"], found["reason"]) == ("unsupported", "option_not_in_engine")
    assert "max_captured_tokens" in found["detail"]


@pytest.mark.parametrize("count", [0, -1, 1.5, "2048", True])
def test_what_is_no_count_is_refused(client: TestClient, count: object) -> None:
    body = changed(ASKED, "engine/max_captured_tokens", count)
    refused = client.post("/v1/estimates", json={"estimates": [body]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/estimates/0/engine/max_captured_tokens"


@pytest.mark.parametrize(("llm", "captured"), [("qwen3-30b-a3b", 4096), ("llama-3.1-8b", 512)])
def test_plans_tell_the_engine_and_so_do_their_files(client: TestClient, llm: str, captured: int) -> None:
    body = {
        "workloads": [
            {
                "name": "chat", "llm": llm, "targets": {"ttft_ms": {"p95": 2_000}},
                "traffic": {"requests_per_s": 4, "prompt_tokens": 700, "output_tokens": 150},
            }
        ],
        "limits": {"devices": ["h100-sxm"]},
    }  # fmt: skip
    answer = client.post("/v1/recommendations", json=body).json()
    assert [line["engine_settings"]["max_captured_tokens"] for line in answer["plan"]] == [captured] * len(
        answer["plan"]
    )
    for target in ("compose", "kubernetes"):
        response = client.get(f"/v1/recommendations/{answer['id']}/deployments", params={"target": target})
        assert response.status_code == 200, response.text
        files = " ".join(file["content"] for file in response.json()["files"])
        assert re.search(rf"--max-cudagraph-capture-size\W+{captured}\b", files), files
