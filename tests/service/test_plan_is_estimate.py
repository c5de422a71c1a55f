"""A line of a plan and an estimate of the same deployment, rate and settings are one prediction."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

DENSE, MIXTURES = ("llama-3.1-8b", "qwen3-14b", "llama-3.1-70b"), ("qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b")
PROMPT = {"distribution": "lognormal", "mean": 900, "p95": 2700}
OUTPUT = {"distribution": "lognormal", "mean": 200, "p95": 600}
PERCENTILES = ("mean", "p50", "p90", "p95", "p99")


def asked(llm: str) -> dict[str, Any]:
    weights = ["mxfp4"] if "gpt-oss" in llm else ["fp8"]
    return {
        "workloads": [
            {
                "name": "chat", "llm": llm, "precision": {"weights": weights, "kv_cache": ["bf16"]},
                "traffic": {"requests_per_s": 12.0, "prompt_tokens": PROMPT, "output_tokens": OUTPUT},
                "targets": {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}},
            }
        ],
        "limits": {"devices": ["h100-sxm", "l40s"], "commitments": ["on_demand"]},
        "alternatives": 0,
    }  # fmt: skip


@pytest.mark.parametrize("llm", DENSE + MIXTURES)
def test_a_plan_line_is_what_an_estimate_says(client: TestClient, llm: str) -> None:
    response = client.post("/v1/recommendations", json=asked(llm))
    assert response.status_code == 201, response.text
    lines = response.json()["plan"]
    assert lines
    for line in lines:
        replicas = line["replicas"]
        one = {
            "llm": llm,
            "device": line["device"],
            "partition": line["partition"] and line["partition"]["profile"],
            "layout": line["layout"],
            "precision": line["precision"],
            "engine": line["engine_settings"],
            "traffic": {"prompt_tokens": PROMPT, "output_tokens": OUTPUT},
            "load": {"kind": "open", "requests_per_s": line["serves_requests_per_s"] / replicas},
        }
        estimates = client.post("/v1/estimates", json={"estimates": [one]})
        assert estimates.status_code == 200, estimates.text
        (found,) = estimates.json()["estimates"]
        assert found["outcome"] == "estimated", found
        assert found["basis"] == line["basis"]
        predicted = line["predicted"]
        for metric in ("ttft_ms", "tpot_ms", "e2e_ms"):
            for percentile in PERCENTILES:
                for end in ("expected", "low", "high"):
                    assert predicted[metric][percentile][end] == pytest.approx(
                        found[metric][percentile][end], rel=0.01
                    ), (metric, percentile, end)
        for metric in ("output_tokens_per_s", "power_w"):
            for end in ("expected", "low", "high"):
                assert predicted[metric][end] == pytest.approx(replicas * found[metric][end], rel=0.01), (metric, end)
