"""Formats that an engine does not document on a device are neither planned nor estimated; the answer names those that it does."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_sourcing import BODY, answered


def estimated(client: TestClient, device: str, weights: str, **engine: str) -> dict[str, Any]:
    case = {
        "llm": "llama-3.1-8b", "device": device, "traffic": {"prompt_tokens": 200, "output_tokens": 50},
        "load": {"kind": "closed", "concurrency": 1, "requests": 1}, "precision": {"weights": weights},
        "layout": {"tensor_parallel": 2}, "engine": {"max_context_tokens": 512, **engine},
    }  # fmt: skip
    found: dict[str, Any] = client.post("/v1/estimates", json={"estimates": [case]}).json()["estimates"][0]
    return found


@pytest.mark.parametrize(
    ("device", "weights", "engine"),
    [
        ("tpu-v5e", "q4_k_m", {}), ("gaudi3", "int4", {}), ("trainium2", "nvfp4", {}), ("xeon-8480", "q4_k_m", {"name": "vllm"}),
        ("h100-sxm", "fp8", {"name": "llama.cpp"}), ("n300", "int4", {}),
    ],
)  # fmt: skip
def test_what_no_engine_documents_is_refused_with_what_it_takes(
    client: TestClient, device: str, weights: str, engine: dict[str, str]
) -> None:
    refused = estimated(client, device, weights, **engine)
    assert (refused["outcome"], refused["reason"]) == ("unsupported", "format_not_in_engine")
    assert f"of {weights} on {device}" in refused["detail"]
    assert "bf16" in refused["detail"]


@pytest.mark.parametrize(("device", "weights"), [("tpu-v6e", "int8"), ("gaudi3", "fp8"), ("xeon-8480", "int4")])
def test_what_is_documented_is_estimated(client: TestClient, device: str, weights: str) -> None:
    assert estimated(client, device, weights).get("reason") != "format_not_in_engine"


@pytest.mark.parametrize(("device", "engine"), [("xeon-8480", "llama.cpp"), ("m4-max", "llama.cpp")])
def test_the_own_engine_is_one_that_loads_the_format(client: TestClient, device: str, engine: str) -> None:
    assert estimated(client, device, "q4_k_m")["engine"]["name"] == engine


def test_weights_without_a_matrix_unit_are_widened_where_that_is_documented(client: TestClient) -> None:
    assert estimated(client, "a100-sxm-80", "fp8")["outcome"] == "estimated"
    refused = estimated(client, "a100-sxm-80", "fp8", name="sglang")
    assert (refused["reason"], "does not widen" in refused["detail"]) == ("precision_not_on_device", True)


def test_engines_of_the_past_are_estimated_by_name_only(client: TestClient) -> None:
    assert estimated(client, "v100s-pcie-32", "fp16", name="vllm")["outcome"] != "unsupported"
    assert estimated(client, "v100s-pcie-32", "fp16")["engine"]["name"] == "llama.cpp"


def test_it_is_not_planned(client: TestClient) -> None:
    body = changed(BODY, "limits", {"devices": ["tpu-v5e"], "sourcing": "any"})
    body["workloads"][0]["precision"] = {"weights": ["q4_k_m"]}
    refused = answered(client, body)
    assert refused["outcome"] == "infeasible"
    assert {one["reason"] for one in refused["rejected"]} == {"format_not_in_engine"}
    assert "it takes bf16" in refused["rejected"][0]["nearest"]
