"""Hidden tokens over HTTP: targets on the first token that is shown, planned, estimated, refused where not modelled."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed, small_estimate, small_plan

TRAFFIC: dict[str, Any] = {
    "prompt_tokens": 500, "thinking_tokens": {"mean": 800, "p95": 2400}, "output_tokens": {"mean": 200, "p95": 600},
}  # fmt: skip
SHOWN: dict[str, Any] = {"prompt_tokens": 500, "output_tokens": 100}
SAYS = "state traffic.thinking_tokens, or limit ttft_ms"
ESTIMATE = small_estimate(TRAFFIC, 2)
PLAN = small_plan("reasoning", TRAFFIC | {"requests_per_s": 8}, {"ttfat_ms": {"p95": 40_000}})


class TestEstimates:
    @pytest.mark.parametrize("load", [{"kind": "open", "requests_per_s": 2}, {"kind": "closed", "concurrency": 16}])
    def test_the_first_answer_comes_after_the_hidden_tokens(self, client: TestClient, load: dict[str, Any]) -> None:
        body = {"estimates": [changed(ESTIMATE, "load", load)]}
        found = client.post("/v1/estimates", json=body).json()["estimates"][0]
        first, answer, last = (found[name]["mean"]["expected"] for name in ("ttft_ms", "ttfat_ms", "e2e_ms"))
        hidden = answer - first
        assert hidden == pytest.approx(800 * found["tpot_ms"]["mean"]["expected"], rel=0.1)
        assert hidden / (last - first) == pytest.approx(0.8, abs=0.03)
        assert found["ttfat_ms"]["p95"]["low"] < found["ttfat_ms"]["p95"]["expected"] < found["ttfat_ms"]["p95"]["high"]

    def test_without_hidden_tokens_there_is_none(self, client: TestClient) -> None:
        plain = {"prompt_tokens": 500, "output_tokens": 100}
        body = {"estimates": [changed(ESTIMATE, "traffic", plain)]}
        assert client.post("/v1/estimates", json=body).json()["estimates"][0]["ttfat_ms"] is None


class TestPlans:
    def test_a_tighter_target_costs_more_and_is_kept(self, client: TestClient) -> None:
        costs = []
        for limit in (60_000, 20_000):
            answer = client.post(
                "/v1/recommendations", json=changed(PLAN, "workloads/0/targets/ttfat_ms/p95", limit)
            ).json()
            assert answer["outcome"] == "optimal", answer
            for line in answer["plan"]:
                assert line["predicted"]["ttfat_ms"]["p95"]["expected"] <= limit
            costs.append(float(answer["totals"]["usd_per_hour"]))
        assert costs[0] < costs[1]

    def test_what_no_machine_does_is_infeasible_by_that_target(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=changed(PLAN, "workloads/0/targets/ttfat_ms/p95", 500)).json()
        assert answer["outcome"] == "infeasible"
        assert any("ttfat_ms" in one["limit"] for one in answer["relaxations"]), answer["relaxations"]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("traffic/thinking_tokens", 0, "greater than or equal to 1"),
        ("traffic/thinking_tokens", {"mean": 10, "p95": 9000}, "no lognormal"),
        ("targets/ttfat_ms", {"p42": 5}, "p95"),
        ("targets/ttfat_ms", {"p95": -5}, "greater than or equal to"),
        ("roles", ["disaggregated"], "hidden tokens"),
    ],
)
def test_what_is_wrong_is_said(client: TestClient, path: str, value: Any, says: str) -> None:
    response = client.post("/v1/recommendations", json=changed(PLAN, f"workloads/0/{path}", value))
    assert response.status_code == 422
    assert says in response.text


class TestNoHiddenTokens:
    """Without them a reply's first token is its answer's: a target on the latter has no prediction to be held against."""

    @pytest.mark.parametrize("target", [500, {"p95": 500}, {"mean": 500, "p99": 900}])
    def test_a_plan_has_no_such_target(self, client: TestClient, target: Any) -> None:
        body = small_plan("chat", SHOWN | {"requests_per_s": 4}, {"ttft_ms": 9_000, "ttfat_ms": target})
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/workloads/0/targets/ttfat_ms"
        assert SAYS in error["detail"]

    def test_nor_has_a_fleet(self, client: TestClient) -> None:
        workload = small_plan("chat", SHOWN, {"ttfat_ms": 500})["workloads"][0]
        workload["demand"] = {"kind": "profile", "weekday_requests_per_s": [2.0] * 24}
        response = client.post("/v1/fleets", json={"workloads": [workload], "limits": {"devices": ["h100-sxm"]}})
        assert response.status_code == 422
        assert SAYS in response.text

    def test_nor_a_price(self, client: TestClient) -> None:
        plan = client.post(
            "/v1/recommendations", json=small_plan("chat", SHOWN | {"requests_per_s": 4}, {"ttft_ms": 9_000})
        ).json()
        response = client.post(f"/v1/recommendations/{plan['id']}/price-curve", json={"of": "ttfat", "points": [500]})
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/of"
        assert SAYS in error["detail"]
