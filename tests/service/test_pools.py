"""POST /v1/recommendations with roles: pools of their own on the wire."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import RECOMMENDATION, changed

LIMITS = {"providers": ["aws"], "regions": ["us-east-2"], "devices": ["h200-sxm", "b200-sxm"]}
LONG = {
    "requests_per_s": 10.0,
    "prompt_tokens": {"distribution": "lognormal", "mean": 6000, "p95": 12000},
    "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
}


def asked(**changes: Any) -> dict[str, Any]:
    body = changed(RECOMMENDATION, "workloads/0/roles", ["aggregated", "disaggregated"])
    body["workloads"][0] |= changes
    return body | {"limits": LIMITS, "alternatives": 1, "time_limit_s": 60}


def answered(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"})
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_pools_are_chosen_where_they_are_cheaper(client: TestClient) -> None:
    tight = asked(traffic=LONG, targets={"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 14}})
    found = answered(client, tight)
    assert found["pools"]["chosen"], found["pools"]
    assert {line["role"] for line in found["plan"]} >= {"prefill", "decode"}
    alone = answered(client, changed(tight, "workloads/0/roles", ["aggregated"]))
    saved = float(alone["totals"]["usd_per_hour"]) - float(found["totals"]["usd_per_hour"])
    assert float(found["pools"]["saves_usd_per_hour"]) == pytest.approx(saved, abs=1e-4)
    assert alone["pools"] is None
    decoded = sum(line["serves_requests_per_s"] for line in found["plan"] if line["role"] != "prefill")
    assert decoded == pytest.approx(10.0, rel=1e-5)
    assert len({(line["provider"], line["region"]) for line in found["plan"]}) == 1
    # 10 requests a second of 300 output tokens each: the two pools serve them once, not twice.
    per_million = float(found["totals"]["usd_per_hour"]) / 3600 / (10 * 300) * 1e6
    assert float(found["totals"]["usd_per_million_output_tokens"]) == pytest.approx(per_million, rel=0.02)
    for line in found["plan"]:
        assert line["predicted"]["ttft_ms"]["p95"]["expected"] <= 2000
        assert line["basis"] in ("borrowed", "analytical")
    stored = client.get(f"/v1/recommendations/{found['id']}").json()
    assert stored["plan"] == found["plan"]
    instead = client.post(f"/v1/recommendations/{found['id']}/why-not", json={"devices": ["h200-sxm"]})
    assert instead.status_code == 200, instead.text
    wanted = client.get(f"/v1/recommendations/{found['id']}/measurements-wanted")
    assert wanted.status_code == 200
    assert "prefill" not in wanted.text


def test_what_pools_would_cost_is_told_where_they_are_not_chosen(client: TestClient) -> None:
    found = answered(client, asked())
    assert not found["pools"]["chosen"]
    assert found["pools"]["reason"] == "no plan with pools of their own costs less"
    assert float(found["pools"]["extra_usd_per_hour"]) >= 0
    assert {line["role"] for line in found["alternatives"][-1]["plan"]} == {"prefill", "decode"}


def test_bad_input(client: TestClient) -> None:
    for path, value in (
        ("workloads/0/roles", []),
        ("workloads/0/roles", ["prefill"]),
        ("workloads/0/roles", "disaggregated"),
        ("workloads/0/roles", ["aggregated"] * 3),
    ):
        answer = client.post("/v1/recommendations", json=changed(asked(), path, value))
        assert answer.status_code == 422, answer.text
        assert any(e["pointer"].startswith("/workloads/0/roles") for e in answer.json()["errors"])


def test_whole_requests_have_a_target(client: TestClient) -> None:
    only = asked(roles=["disaggregated"], targets={"e2e_ms": {"p95": 60_000}})
    found = answered(client, only)
    assert {line["role"] for line in found["plan"]} == {"prefill", "decode"}
    assert found["binding"] is not None
    for line in found["plan"]:
        assert line["predicted"]["e2e_ms"]["p95"]["expected"] <= 60_000
