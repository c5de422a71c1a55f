"""Models that no fit has seen, against what was measured of them: their intervals hold it as often as they say."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.benchmark_rows import DEFAULT_ROOT

HELD_BACK = DEFAULT_ROOT / "kept_back"
OF_NINE_OF_TEN = 0.75
"""Few runs of one model lie together, so that fewer than nine of ten may be held by chance."""


def told(client: TestClient, file: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each run of a file: its results, and the estimate of the same load on the same server."""
    cases, results = [], []
    for run in json.loads((HELD_BACK / file).read_text())["runs"].values():
        measured = run["benchmark"]
        context, load = measured["context"], measured["load"]
        cases.append({
            "llm": context["llm"], "device": context["device"], "layout": context["layout"], "precision": context["precision"],
            "engine": {
                "name": context["engine"]["name"], "version": context["engine"]["version"],
                "max_batched_tokens": run["max_batched_tokens"], "max_sequences": run["max_sequences"],
                "max_context_tokens": run["max_context_tokens"],
            },
            "traffic": {kind: measured["traffic"][kind] for kind in ("prompt_tokens", "output_tokens")},
            "load": {k: load[k] for k in ("kind", "requests", "concurrency", "requests_per_s") if k in load},
        })  # fmt: skip
        results.append(measured["results"])
    answer = client.post("/v1/estimates", json={"estimates": cases})
    assert answer.status_code == 200, answer.text
    return list(zip(results, answer.json()["estimates"], strict=True))


@pytest.mark.parametrize("kernel", ["q", "s"])
def test_a_dense_model_of_recurrent_layers_is_told_by_what_was_measured_of_such_layers(
    client: TestClient, kernel: str
) -> None:
    """Qwen3.5 27B by either kernel that vLLM scans prompts with: dense models of plain attention, predicted far better, say
    nothing of it."""
    runs = told(client, f"h100-sxm_vllm-0.24.0_qwen3.5-27b_bf16_tp1_{kernel}.json")
    for figure in ("ttft_ms", "tpot_ms"):
        inside = [
            said[figure]["mean"]["low"] <= measured[figure]["mean"] <= said[figure]["mean"]["high"]
            for measured, said in runs
        ]
        assert sum(inside) >= OF_NINE_OF_TEN * len(runs), (figure, inside)


def test_a_dense_model_of_plain_attention_is_told_as_closely_as_others(client: TestClient) -> None:
    """Qwen3 8B, of which nothing was measured before either."""
    runs = told(client, "h100-sxm_vllm-0.24.0_qwen3-8b_bf16_tp1_q.json")
    for measured, said in runs:
        assert said["basis"] == "corrected"
        mean = said["tpot_ms"]["mean"]
        assert mean["high"] < 1.4 * mean["low"]
        assert mean["low"] <= measured["tpot_ms"]["mean"] <= mean["high"]
