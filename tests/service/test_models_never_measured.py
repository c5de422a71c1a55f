"""Models that no fit has seen, against what was measured of them: their intervals hold it as often as they say."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.benchmark_rows import DEFAULT_ROOT

HELD_BACK = DEFAULT_ROOT / "kept_back"
OF_NINE_OF_TEN = 0.75
"""Few runs of one model lie together, so that fewer than nine of ten may be held by chance."""


def told(client: TestClient, file: str, scan_kernel: str | None = None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each run of a file: its results, and the estimate of the same load on the same server. scan_kernel: as it was started with;
    None: as one that says nothing of it."""
    cases, results = [], []
    for run in json.loads((HELD_BACK / file).read_text())["runs"].values():
        measured = run["benchmark"]
        context, load = measured["context"], measured["load"]
        cases.append({
            "llm": context["llm"], "device": context["device"], "layout": context["layout"], "precision": context["precision"],
            "engine": {
                "name": context["engine"]["name"], "version": context["engine"]["version"],
                "max_batched_tokens": run["max_batched_tokens"], "max_sequences": run["max_sequences"],
                "max_context_tokens": run["max_context_tokens"], "max_captured_tokens": run.get("max_captured_tokens"),
                "scan_kernel": scan_kernel, "load_format": "dummy",
            },
            "traffic": {kind: measured["traffic"][kind] for kind in ("prompt_tokens", "output_tokens")},
            "load": {k: load[k] for k in ("kind", "requests", "concurrency", "requests_per_s") if k in load},
        })  # fmt: skip
        results.append(measured["results"])
    answer = client.post("/v1/estimates", json={"estimates": cases})
    assert answer.status_code == 200, answer.text
    return list(zip(results, answer.json()["estimates"], strict=True))


DENSE, MIXTURE = "qwen3.5-27b_bf16_tp1", "qwen3.5-35b-a3b_fp8_tp1"


@pytest.mark.parametrize(
    ("server", "stated"),
    [
        (f"{DENSE}_q", None),
        (f"{DENSE}_s", None),
        (f"{DENSE}_q", "triton"),
        (f"{DENSE}_s", "flashinfer"),
        (f"{MIXTURE}_r", "triton"),
    ],
)
def test_models_of_gated_delta_rules_are_told_by_what_was_measured_of_recurrent_layers(
    client: TestClient, server: str, stated: str | None
) -> None:
    """By either kernel that vLLM scans prompts with: dense models of plain attention, predicted far better, say nothing of them. Where
    the kernel is not stated, intervals of the dense model hold both; of the mixture, whose first tokens come later than is said
    anyway, they hold half."""
    runs = told(client, f"h100-sxm_vllm-0.24.0_{server}.json", stated)
    for figure in ("ttft_ms", "tpot_ms"):
        inside = [
            said[figure]["mean"]["low"] <= measured[figure]["mean"] <= said[figure]["mean"]["high"]
            for measured, said in runs
        ]
        assert sum(inside) >= OF_NINE_OF_TEN * len(runs), (figure, inside)


def test_intervals_hold_the_other_kernel_where_none_is_told(client: TestClient) -> None:
    """First tokens of one prompt alone, by far the most apart: twice as late without FlashInfer. Those that are told stay as narrow."""
    file = "h100-sxm_vllm-0.24.0_qwen3.5-27b_bf16_tp1_q.json"
    untold, flashinfer, triton = (
        told(client, file, kernel)[0][1]["ttft_ms"]["mean"] for kernel in (None, "flashinfer", "triton")
    )
    assert untold["expected"] == flashinfer["expected"] < 0.75 * triton["expected"]
    assert untold["low"] == pytest.approx(flashinfer["low"])
    assert untold["high"] > 1.1 * flashinfer["high"]
    assert untold["high"] > triton["expected"] > flashinfer["expected"]


def test_intervals_of_copies_that_share_experts_hold_what_was_measured_of_two(client: TestClient) -> None:
    """None of the seven loads was faster than is said by more than two hundredths, and one slower by up to 1.6 times. The same model cut by
    tensor parallelism is told as before."""
    runs = told(client, "h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_dp2-ep2_captured-4096_w.json")
    for figure in ("ttft_ms", "tpot_ms"):
        inside = [
            said[figure]["mean"]["low"] <= measured[figure]["mean"] <= said[figure]["mean"]["high"]
            for measured, said in runs
        ]
        assert sum(inside) >= OF_NINE_OF_TEN * len(runs), (figure, inside)
    for measured, said in runs:
        assert said["tpot_ms"]["mean"]["expected"] < 1.02 * measured["tpot_ms"]["mean"]
    cut = told(client, "h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp2_captured-4096_w.json")
    for (_, said), (_, alike) in zip(runs, cut, strict=True):
        widths = [one["tpot_ms"]["mean"]["high"] / one["tpot_ms"]["mean"]["expected"] for one in (said, alike)]
        assert widths[0] > 1.1 * widths[1]


def test_two_copies_of_another_model_lie_in_their_intervals(client: TestClient) -> None:
    """Qwen3 30B-A3B, loaded after what it would take was written down: no load of such copies is in any constant."""
    runs = told(client, "h200-sxm_vllm-0.24.0_qwen3-30b-a3b_bf16_dp2-ep2_captured-4096_x.json")
    assert len(runs) == 3
    for measured, said in runs:
        for figure, most in (("tpot_ms", 0.15), ("ttft_ms", 0.3)):
            mean, seen = said[figure]["mean"], measured[figure]["mean"]
            assert mean["low"] <= seen <= mean["high"]
            assert abs(mean["expected"] / seen - 1.0) < most


def test_a_dense_model_of_plain_attention_is_told_as_closely_as_others(client: TestClient) -> None:
    """Qwen3 8B, of which nothing was measured before either."""
    runs = told(client, "h100-sxm_vllm-0.24.0_qwen3-8b_bf16_tp1_q.json")
    for measured, said in runs:
        assert said["basis"] == "corrected"
        mean = said["tpot_ms"]["mean"]
        assert mean["high"] < 1.4 * mean["low"]
        assert mean["low"] <= measured["tpot_ms"]["mean"] <= mean["high"]
