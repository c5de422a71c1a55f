"""Steps of the scheduler as something plans choose, over HTTP: as measured, cheaper, told to the engine, and estimated as planned."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from fastapi.testclient import TestClient

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.engine import profiles
from tests.service.bodies import estimated, planned

FILES = "kept_back/h200-sxm_vllm-0.24.0_{}_v.json"
ASKED = 8192


@pytest.mark.parametrize(
    ("file", "first", "token"),
    [
        ("qwen3-32b_fp8_tp1_steps-512", 0.06, 0.06),
        ("qwen3-32b_fp8_tp1_steps-2048", 0.08, 0.06),
        ("qwen3-32b_fp8_tp1_steps-8192", 0.06, 0.06),
        ("qwen3-30b-a3b_fp8_tp1_steps-1024", 0.22, 0.13),
        ("qwen3-30b-a3b_fp8_tp2_captured-4096", 0.25, 0.18),
    ],
)
def test_as_measured_with_steps_of_several_sizes(client: TestClient, file: str, first: float, token: float) -> None:
    """Runs in no fit, predicted before."""
    for run in json.loads((DEFAULT_ROOT / FILES.format(file)).read_text())["runs"].values():
        measured = run["benchmark"]
        context = measured["context"]
        named = (
            ("kind", "requests_per_s") if measured["load"]["kind"] == "open" else ("kind", "concurrency", "requests")
        )
        load = {name: measured["load"][name] for name in named}
        names = ("max_batched_tokens", "max_sequences", "max_context_tokens", "max_captured_tokens")
        engine = {"name": "vllm", "version": "0.24.0", "load_format": "dummy"} | {
            name: run[name] for name in names if name in run
        }
        body = {name: context[name] for name in ("llm", "device", "layout", "precision")}
        body |= {"engine": engine, "traffic": measured["traffic"], "load": load}
        found = estimated(client, body)
        for figure, within in (("ttft_ms", first), ("tpot_ms", token)):
            mean, seen = found[figure]["mean"], measured["results"][figure]["mean"]
            assert mean["expected"] == pytest.approx(seen, rel=within), (run["predicted_as"], figure)
            assert mean["low"] <= seen <= mean["high"], (run["predicted_as"], figure)


def asked(**changes: Any) -> dict[str, Any]:
    traffic = {
        "requests_per_s": 15,
        "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 3600},
        "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
    }
    workload = {
        "name": "chat", "llm": "qwen3-32b", "traffic": traffic,
        "targets": {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 25}},
    }  # fmt: skip
    return {
        "workloads": [workload | changes], "limits": {"devices": ["h200-sxm", "b200-sxm"]}, "alternatives": 0,
    }  # fmt: skip


def test_plans_choose_smaller_steps_where_that_is_cheaper_and_the_engine_is_told(client: TestClient) -> None:
    chosen = planned(client, asked())
    with patch.dict(profiles.PLANNED_STEPS, clear=True):
        alone = planned(client, asked(context_tokens=8193))  # another search space than is kept
    assert [line["engine_settings"]["max_batched_tokens"] for line in alone["plan"]] == [ASKED]
    assert float(chosen["totals"]["usd_per_hour"]) < 0.9 * float(alone["totals"]["usd_per_hour"])
    (line,) = chosen["plan"]
    tokens = line["engine_settings"]["max_batched_tokens"]
    assert tokens in profiles.PLANNED_STEPS["vllm"].batched_tokens
    files = client.get(f"/v1/recommendations/{chosen['id']}/deployments", params={"target": "vllm"})
    assert files.status_code == 200, files.text
    assert f"--max-num-batched-tokens {tokens}" in json.dumps(files.json()).replace("\\n", " ")


def test_what_does_not_work_counts_a_way_of_serving_once_whatever_its_steps(client: TestClient) -> None:
    def failing(body: dict[str, Any]) -> dict[tuple[str, str], int]:
        return {(one["device"], one["reason"]): one["count"] for one in planned(client, body)["rejected"]}

    with patch.dict(profiles.PLANNED_STEPS, clear=True):
        alone = failing(asked(context_tokens=8194) | {"limits": {"devices": ["h200-sxm", "b200-sxm", "l4"]}})
    several = failing(asked(context_tokens=8195) | {"limits": {"devices": ["h200-sxm", "b200-sxm", "l4"]}})
    assert several
    assert set(several) <= set(alone)
    assert all(count <= alone[key] for key, count in several.items())
