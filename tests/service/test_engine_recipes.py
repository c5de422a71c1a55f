"""What an estimate assumes of a server whose options are not stated: how its engine's documentation starts the model."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed, estimated

ASKED: dict[str, Any] = {
    "llm": "deepseek-r1", "device": "b200-sxm", "layout": {"tensor_parallel": 8},
    "precision": {"weights": "fp8", "kv_cache": "fp8"}, "engine": {"name": "sglang"},
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 819, "high": 1024},
        "output_tokens": {"distribution": "uniform", "low": 819, "high": 1024},
    },
    "load": {"kind": "closed", "concurrency": 16, "requests": 160},
}  # fmt: skip


def first_token_ms(found: dict[str, Any]) -> float:
    return float(found["ttft_ms"]["mean"]["expected"])


class TestAdmissionInterval:
    def test_unstated_it_is_the_documented_one_and_told(self, client: TestClient) -> None:
        found = estimated(client, ASKED)
        assert found["engine"]["admission_interval_steps"] == 30
        stated = estimated(client, changed(ASKED, "engine/admission_interval_steps", 30))
        assert first_token_ms(found) == first_token_ms(stated)

    def test_few_clients_have_the_shorter_one(self, client: TestClient) -> None:
        few = changed(ASKED, "load", {"kind": "closed", "concurrency": 8})
        assert estimated(client, few)["engine"]["admission_interval_steps"] == 10

    def test_stated_it_is_what_is_simulated(self, client: TestClient) -> None:
        every_step = estimated(client, changed(ASKED, "engine/admission_interval_steps", 1))
        found = estimated(client, ASKED)
        assert every_step["engine"]["admission_interval_steps"] == 1
        waits_ms = first_token_ms(found) - first_token_ms(every_step)
        assert 6.0 < waits_ms / float(found["tpot_ms"]["mean"]["expected"]) < 25.0

    def test_nothing_is_documented_of_other_models(self, client: TestClient) -> None:
        other = changed(changed(ASKED, "llm", "llama-3.1-8b"), "layout", {"tensor_parallel": 1})
        assert estimated(client, other)["engine"]["admission_interval_steps"] == 1

    def test_engines_that_have_no_such_option_refuse_it_by_name(self, client: TestClient) -> None:
        body = changed(ASKED, "engine", {"name": "vllm", "admission_interval_steps": 10})
        (found,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
        assert (found["outcome"], found["reason"]) == ("unsupported", "option_not_in_engine")
        assert "admission_interval_steps" in found["detail"]

    def test_none_is_an_interval_of_no_steps(self, client: TestClient) -> None:
        body = changed(ASKED, "engine/admission_interval_steps", 0)
        assert client.post("/v1/estimates", json={"estimates": [body]}).status_code == 422


class TestUploads:
    def test_of_a_server_that_states_nothing_are_compared_with_what_an_estimate_takes(self, client: TestClient) -> None:
        found = estimated(client, ASKED)
        ratios = [
            uploaded(client, first_token_ms(found), arguments)["before"]["predicted_over_measured"]["ttft_ms"]
            for arguments in ([], ["--scheduler-recv-interval", "30"], ["--tp-size", "8"])
        ]
        assert ratios[0] == ratios[1]
        assert ratios[0] == pytest.approx(1.0, abs=0.2)  # settings that neither states are the upload's own
        assert ratios[2] < 0.8 * ratios[0]


def uploaded(client: TestClient, ttft_ms: float, arguments: list[str]) -> dict[str, Any]:
    run = {
        "context": {name: ASKED[name] for name in ("llm", "device", "layout", "precision")}
        | {"devices": 8, "engine": {"name": "sglang", "arguments": arguments}},
        "load": ASKED["load"],
        "traffic": ASKED["traffic"],
        "results": {"completed": 160, "failed": 0, "ttft_ms": {"mean": ttft_ms}},
    }
    answer = client.post("/v1/benchmarks", json=run)
    assert answer.status_code == 201, answer.text
    stored: dict[str, Any] = client.get(f"/v1/benchmarks/{answer.json()['id']}").json()
    return stored
