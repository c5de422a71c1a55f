"""A line of a plan and an estimate of the same deployment, rate and settings are one prediction."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

DENSE, MIXTURES = ("llama-3.1-8b", "qwen3-14b", "llama-3.1-70b"), ("qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b")
PROMPT = {"distribution": "lognormal", "mean": 900, "p95": 2700}
OUTPUT = {"distribution": "lognormal", "mean": 200, "p95": 600}
DRAFTING = {
    "method": "ngram", "draft_tokens": 4, "acceptance_fraction": 0.7, "draft_step_fraction": 0.0,
    "draft_cost_source": "look-up costs no time of the device",
}  # fmt: skip
PERCENTILES = ("mean", "p50", "p90", "p95", "p99")


def asked(llm: str, devices: list[str], rate: float = 12.0) -> dict[str, Any]:
    weights = ["mxfp4"] if "gpt-oss" in llm else ["fp8"] if "sxm" in devices[0] else ["bf16"]
    return {
        "workloads": [
            {
                "name": "chat", "llm": llm, "precision": {"weights": weights, "kv_cache": ["bf16"]},
                "traffic": {"requests_per_s": rate, "prompt_tokens": PROMPT, "output_tokens": OUTPUT},
                "targets": {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}},
            }
        ],
        "limits": {"devices": devices, "commitments": ["on_demand"], "sourcing": "any"},
        "alternatives": 0,
    }  # fmt: skip


@pytest.mark.parametrize("llm", DENSE + MIXTURES)
def test_a_plan_line_is_what_an_estimate_says(client: TestClient, llm: str) -> None:
    check_lines(client, llm, planned(client, asked(llm, ["h100-sxm", "l40s"])))


def test_a_line_that_drafts_is_what_an_estimate_says(client: TestClient) -> None:
    body = asked("llama-3.1-70b", ["h100-sxm"], rate=4.0)
    body["workloads"][0]["targets"] = {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 16}}
    body["workloads"][0]["drafting"] = DRAFTING
    lines = planned(client, body)
    assert [line["engine_settings"]["speculative"] for line in lines] == [DRAFTING] * len(lines)
    check_lines(client, "llama-3.1-70b", lines)


@pytest.mark.parametrize("device", ["a100-pcie-80", "h100-nvl", "rtx-a6000"])
def test_cards_are_joined_alike_in_both(client: TestClient, device: str) -> None:
    """A bridge between two cards is there in some machines: neither route takes one for granted that the other does not."""
    body = asked("qwen2.5-72b", [device], rate=0.5)
    body["workloads"][0]["targets"] = {"ttft_ms": {"p95": 10_000}, "tpot_ms": {"p95": 250}}
    lines = planned(client, body)
    assert any(line["layout"]["tensor_parallel"] > 1 for line in lines)
    check_lines(client, "qwen2.5-72b", lines)


def test_a_replica_over_several_machines_is_estimated_over_their_network(client: TestClient) -> None:
    body = asked("deepseek-v3", ["a100-sxm-80"], rate=0.5)
    body["workloads"][0]["precision"] = {"weights": ["bf16"], "kv_cache": ["bf16"]}
    body["workloads"][0]["targets"] = {"ttft_ms": {"p95": 60_000}, "tpot_ms": {"p95": 2_000}}
    lines = planned(client, body)
    assert any(line["nodes"] > line["replicas"] for line in lines)
    check_lines(client, "deepseek-v3", lines)


def planned(client: TestClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = client.post("/v1/recommendations", json=body)
    assert response.status_code == 201, response.text
    lines: list[dict[str, Any]] = response.json()["plan"]
    assert lines, response.json()["rejected"]
    return lines


def check_lines(client: TestClient, llm: str, lines: list[dict[str, Any]]) -> None:
    """With its machine named, and where a replica is on one machine without, a line is what an estimate says."""
    for line in lines:
        for node in (line["node"], None) if line["nodes"] <= line["replicas"] else (line["node"],):
            check_line(client, llm, line, node)


def check_line(client: TestClient, llm: str, line: dict[str, Any], node: str | None) -> None:
    replicas = line["replicas"]
    one = {
        "llm": llm,
        "device": line["device"],
        "partition": line["partition"] and line["partition"]["profile"],
        "node": node,
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
    assert found["node"] == node
    assert found["basis"] == line["basis"]
    predicted = line["predicted"]
    for metric in ("ttft_ms", "tpot_ms", "e2e_ms"):
        for percentile in PERCENTILES:
            for end in ("expected", "low", "high"):
                assert predicted[metric][percentile][end] == pytest.approx(found[metric][percentile][end], rel=0.01), (
                    metric,
                    percentile,
                    end,
                )
    for metric in ("output_tokens_per_s", "power_w"):
        for end in ("expected", "low", "high"):
            assert predicted[metric][end] == pytest.approx(replicas * found[metric][end], rel=0.01), (metric, end)
