"""Requests longer than the context over HTTP: ended there and counted, or refused where that was asked for."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import ESTIMATE, RECOMMENDATION, changed

SMALL = changed(RECOMMENDATION, "workloads/0/llm", "llama-3.1-8b") | {"limits": {"devices": ["h100-sxm", "l40s"]}}
"""Prompts and replies of up to some 13,000 tokens."""
SHORT = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 900},
    "output_tokens": {"distribution": "histogram", "histogram": [
        {"tokens": 50, "share": 0.75}, {"tokens": 200, "share": 0.25},
    ]},
}  # fmt: skip
STEADY: dict[str, Any] = ESTIMATE | {
    "llm": "llama-3.1-8b", "traffic": SHORT, "load": {"kind": "open", "requests_per_s": 4.0},
}  # fmt: skip


def estimated(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/estimates", json={"estimates": [body]})
    assert response.status_code == 200, response.text
    (found,) = response.json()["estimates"]
    assert found["outcome"] == "estimated", found
    return dict(found)


class TestPlans:
    def test_state_the_context_and_what_is_cut(self, client: TestClient) -> None:
        body = changed(SMALL, "workloads/0/context_tokens", 4096)
        answer = client.post("/v1/recommendations", json=body).json()
        (context,) = answer["contexts"]
        assert (context["workload"], context["traffic_class"], context["context_tokens"]) == ("chat", None, 4096)
        assert 0.02 < context["clipped_fraction"] < 0.2
        assert {line["engine_settings"]["max_context_tokens"] for line in answer["plan"]} == {4096}

    def test_unstated_the_context_is_that_of_the_longest_request(self, client: TestClient) -> None:
        traffic = SMALL["workloads"][0]["traffic"] | SHORT
        answer = client.post("/v1/recommendations", json=changed(SMALL, "workloads/0/traffic", traffic)).json()
        (context,) = answer["contexts"]
        assert (context["context_tokens"], context["clipped_fraction"]) == (1100, 0.0)
        assert {line["engine_settings"]["max_context_tokens"] for line in answer["plan"]} == {1100}

    def test_longer_ones_are_refused_where_that_is_asked_for(self, client: TestClient) -> None:
        body = changed(changed(SMALL, "workloads/0/context_tokens", 4096), "workloads/0/over_context", "refuse")
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/workloads/0/context_tokens"
        assert "over_context" in error["detail"]

    def test_prompts_that_leave_no_room_are_refused_by_name(self, client: TestClient) -> None:
        traffic = SMALL["workloads"][0]["traffic"] | SHORT
        body = changed(changed(SMALL, "workloads/0/traffic", traffic), "workloads/0/context_tokens", 600)
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/workloads/0/context_tokens"
        assert "600 tokens" in error["detail"]


class TestEstimates:
    def test_unstated_the_context_is_that_of_the_longest_request(self, client: TestClient) -> None:
        found = estimated(client, STEADY)
        stated = estimated(client, changed(STEADY, "engine", {"max_context_tokens": 1100}))
        assert found["clipped_fraction"] == 0.0
        assert found == stated

    @pytest.mark.parametrize(("context", "clipped"), [(1100, 0.0), (1099, 0.25), (949, 1.0)])
    def test_say_what_is_cut(self, client: TestClient, context: int, clipped: float) -> None:
        found = estimated(client, changed(STEADY, "engine", {"max_context_tokens": context}))
        assert found["clipped_fraction"] == pytest.approx(clipped)

    def test_requests_that_are_cut_are_sooner_done(self, client: TestClient) -> None:
        whole = estimated(client, STEADY)
        cut = estimated(client, changed(STEADY, "engine", {"max_context_tokens": 1000}))
        assert cut["e2e_ms"]["p95"]["expected"] < 0.6 * whole["e2e_ms"]["p95"]["expected"]
        assert cut["output_tokens_per_s"]["expected"] < whole["output_tokens_per_s"]["expected"]

    @pytest.mark.parametrize("over", [{}, {"over_context": "clip"}, {"over_context": "refuse"}])
    def test_prompts_that_leave_no_room_are_refused_by_name(self, client: TestClient, over: dict[str, str]) -> None:
        body = changed(STEADY, "engine", {"max_context_tokens": 600}) | over
        (found,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
        assert (found["outcome"], found["reason"]) == ("unsupported", "context_too_long")
        assert "600 tokens" in found["detail"]

    def test_a_few_too_long_prompts_are_cut_and_counted(self, client: TestClient) -> None:
        mixed = {
            "distribution": "histogram",
            "histogram": [{"tokens": 100, "share": 0.9}, {"tokens": 900, "share": 0.1}],
        }
        body = changed(changed(STEADY, "engine", {"max_context_tokens": 600}), "traffic/prompt_tokens", mixed)
        assert estimated(client, body)["clipped_fraction"] == pytest.approx(0.1, abs=0.01)

    def test_a_context_stated_beyond_the_models_own_is_an_extended_one(self, client: TestClient) -> None:
        (refused,) = client.post("/v1/estimates", json={"estimates": [long_requests(63_488)]}).json()["estimates"]
        assert (refused["outcome"], refused["reason"]) == ("unsupported", "context_too_long")
        found = estimated(client, long_requests(63_488) | {"engine": {"max_context_tokens": 131_072}})
        assert found["clipped_fraction"] == 0.0
        assert "40960" in found["cautions"][0]

    def test_beyond_what_a_source_states_requests_are_refused(self, client: TestClient) -> None:
        body = long_requests(150_000) | {"engine": {"max_context_tokens": 160_000}}
        (refused,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
        assert (refused["outcome"], refused["reason"]) == ("unsupported", "context_too_long")
        assert "up to 140000 with positions scaled" in refused["detail"]
        (refused,) = client.post("/v1/estimates", json={"estimates": [body | {"llm": "llama-3.1-8b"}]}).json()[
            "estimates"
        ]
        assert "no source states a longer one" in refused["detail"]

    def test_a_server_told_to_take_more_takes_what_the_model_does(self, client: TestClient) -> None:
        found = estimated(client, long_requests(63_488) | {"engine": {"max_context_tokens": 1_000_000}})
        stated = estimated(client, long_requests(63_488) | {"engine": {"max_context_tokens": 140_000}})
        assert found["engine"]["max_context_tokens"] == 140_000
        assert found == stated


def long_requests(prompt_tokens: int) -> dict[str, Any]:
    long = {
        "prompt_tokens": {"distribution": "fixed", "tokens": prompt_tokens},
        "output_tokens": {"distribution": "fixed", "tokens": 200},
    }
    return ESTIMATE | {"llm": "qwen3-32b", "traffic": long, "load": {"kind": "closed", "concurrency": 1}}


class TestPlansBeyondTheModelsOwnContext:
    """A plan and an estimate of one deployment answer alike."""

    BODY = changed(changed(SMALL, "workloads/0/llm", "qwen3-14b"), "workloads/0/context_tokens", 60_000)

    def test_are_made_up_to_what_a_source_states_and_say_so(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=self.BODY)
        assert answer.status_code == 201, answer.text
        (caution,) = (c for c in answer.json()["cautions"] if c["about"] == "extended_context")
        assert "40960" in caution["detail"]
        assert [c["context_tokens"] for c in answer.json()["contexts"]] == [60_000]
        path = f"/v1/recommendations/{answer.json()['id']}/deployments"
        files = client.get(path, params={"target": "vllm"})
        assert files.status_code == 409, files.text
        assert "scale positions" in files.text

    def test_are_refused_beyond(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=changed(self.BODY, "workloads/0/context_tokens", 150_000))
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/workloads/0/context_tokens"
        assert "up to 140000 with positions scaled" in error["detail"]
