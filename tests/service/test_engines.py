"""The serving engine is searched like the formats: fixed by naming one, chosen among several."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed

DENSE: dict[str, Any] = {
    "workloads": [
        {
            "name": "chat", "llm": "llama-3.1-8b", "context_tokens": 8192,
            "traffic": {
                "requests_per_s": 10.0,
                "prompt_tokens": {"distribution": "lognormal", "mean": 800, "p95": 2400},
                "output_tokens": {"distribution": "lognormal", "mean": 250, "p95": 700},
            },
            "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 40}},
        }
    ],
    "limits": {"devices": ["h100-sxm", "l40s"], "commitments": ["on_demand"]},
    "alternatives": 0,
}  # fmt: skip


def planned(client: TestClient, *engines: str, rate: float = 10.0) -> dict[str, Any]:
    body = changed(DENSE, "workloads/0/traffic/requests_per_s", rate)
    if engines:
        body = changed(body, "workloads/0/engines", list(engines))
    response = client.post("/v1/recommendations", json=body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    assert found["outcome"] == "optimal"
    return found


def price(answer: dict[str, Any]) -> float:
    return float(answer["totals"]["usd_per_hour"])


def engines_of(answer: dict[str, Any]) -> set[str]:
    return {line["engine"] for line in answer["plan"]}


class TestChoice:
    def test_unless_asked_each_device_has_its_own(self, client: TestClient) -> None:
        own, named = planned(client), planned(client, "vllm")
        assert engines_of(own) == engines_of(named) == {"vllm"}
        assert price(own) == price(named)

    @pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "llama.cpp"])
    def test_one_is_fixed_and_the_estimate_of_a_line_is_that_engines(self, client: TestClient, engine: str) -> None:
        found = planned(client, engine)
        assert engines_of(found) == {engine}
        for line in found["plan"]:
            assert line["engine_settings"]["name"] == engine
            workload = DENSE["workloads"][0]
            one = {
                "llm": workload["llm"], "device": line["device"], "layout": line["layout"], "precision": line["precision"],
                "engine": line["engine_settings"],
                "traffic": {k: v for k, v in workload["traffic"].items() if k != "requests_per_s"},
                "load": {"kind": "open", "requests_per_s": line["serves_requests_per_s"] / line["replicas"]},
            }  # fmt: skip
            (estimate,) = client.post("/v1/estimates", json={"estimates": [one]}).json()["estimates"]
            assert estimate["basis"] == line["basis"]
            for metric in ("ttft_ms", "tpot_ms"):
                assert line["predicted"][metric]["p95"]["expected"] == pytest.approx(
                    estimate[metric]["p95"]["expected"], rel=0.01
                )

    def test_of_several_the_cheapest_plan_is_no_dearer_than_with_any_of_them(self, client: TestClient) -> None:
        alone = {engine: price(planned(client, engine, rate=80.0)) for engine in ("sglang", "llama.cpp", "vllm")}
        assert len(set(alone.values())) > 1, "engines that cost the same show nothing"
        together = planned(client, *alone, rate=80.0)
        assert price(together) <= min(alone.values()) + 1e-6
        assert engines_of(together) <= set(alone)

    def test_names_in_any_case(self, client: TestClient) -> None:
        assert engines_of(planned(client, "SGLang")) == {"sglang"}


class TestEstimates:
    def asked(self, client: TestClient, device: str, **more: Any) -> dict[str, Any]:
        traffic = {name: {"distribution": "fixed", "tokens": 200} for name in ("prompt_tokens", "output_tokens")}
        one = {
            "llm": "llama-3.2-1b", "device": device, "precision": {"weights": "fp16"}, "traffic": traffic,
            "load": {"kind": "closed", "concurrency": 1, "requests": 20},
        } | more  # fmt: skip
        (found,) = client.post("/v1/estimates", json={"estimates": [one]}).json()["estimates"]
        assert isinstance(found, dict)
        return found

    def test_unless_named_it_is_the_devices_own(self, client: TestClient) -> None:
        for device, own in (("h100-sxm", "vllm"), ("m3-ultra", "mlx"), ("v100-sxm2-16", "llama.cpp")):
            found = self.asked(client, device)
            assert (found["outcome"], found["engine"]["name"]) == ("estimated", own), found

    def test_a_named_one_that_does_not_run_there_is_refused(self, client: TestClient) -> None:
        found = self.asked(client, "m3-ultra", engine={"name": "vllm"})
        assert (found["outcome"], found["reason"]) == ("unsupported", "engine_not_available")
        assert "mlx" in found["detail"]


class TestRefusals:
    def test_an_unknown_engine_is_answered_with_the_near_ones(self, client: TestClient) -> None:
        response = client.post("/v1/recommendations", json=changed(DENSE, "workloads/0/engines", ["vlm"]))
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/workloads/0/engines/0"
        assert "vllm" in error["detail"]

    def test_devices_that_run_none_of_them_are_rejected_with_what_they_run(self, client: TestClient) -> None:
        body = changed(changed(DENSE, "workloads/0/engines", ["tgi"]), "limits/devices", ["h100-sxm", "tpu-v5e"])
        answer = client.post("/v1/recommendations", json=body).json()
        reasons = {(r["device"], r["reason"]): r for r in answer["rejected"]}
        assert "jetstream" in reasons["tpu-v5e", "engine_not_available"]["nearest"]

    @pytest.mark.parametrize("engines", [[], "vllm", [7], ["vllm"] * 33])
    def test_what_is_no_list_of_engines(self, client: TestClient, engines: object) -> None:
        response = client.post("/v1/recommendations", json=changed(DENSE, "workloads/0/engines", engines))
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"].startswith("/workloads/0/engines")
