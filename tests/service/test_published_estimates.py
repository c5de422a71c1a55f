"""Estimates where no layout is stated: the smallest that holds the model, or the speed that others published of the system."""

from typing import Any

import pytest
from fastapi.testclient import TestClient


def estimated(client: TestClient, llm: str, device: str, **more: Any) -> dict[str, Any]:
    case = {
        "llm": llm, "device": device, "traffic": {"prompt_tokens": 500, "output_tokens": 101},
        "load": {"kind": "closed", "concurrency": 1, "requests": 2}, "engine": {"max_context_tokens": 1024},
    } | more  # fmt: skip
    found: dict[str, Any] = client.post("/v1/estimates", json={"estimates": [case]}).json()["estimates"][0]
    return found


@pytest.mark.parametrize(
    ("llm", "device", "degree"), [("llama-3.1-8b", "h100-sxm", 1), ("llama-3.1-70b", "h100-sxm", 2)]
)
def test_the_smallest_layout_that_holds_the_model_is_taken(
    client: TestClient, llm: str, device: str, degree: int
) -> None:
    found = estimated(client, llm, device)
    assert found["outcome"] == "estimated"
    assert found["layout"]["tensor_parallel"] == degree
    if degree > 1:
        smaller = estimated(client, llm, device, layout={"tensor_parallel": degree // 2})
        assert smaller["outcome"] == "does_not_fit"


def test_a_layout_that_is_stated_and_does_not_fit_is_told_the_smallest(client: TestClient) -> None:
    refused = estimated(client, "llama-3.1-70b", "h100-sxm", layout={"tensor_parallel": 1})
    assert refused["outcome"] == "does_not_fit"
    assert refused["smallest_layout"]["tensor_parallel"] == 2
    stated = estimated(client, "llama-3.1-70b", "h100-sxm", layout=refused["smallest_layout"])
    assert stated["outcome"] == "estimated"


def test_what_no_machine_holds_has_no_smallest_layout(client: TestClient) -> None:
    refused = estimated(client, "llama-3.1-405b", "l4", layout={})
    assert (refused["outcome"], refused["smallest_layout"]) == ("does_not_fit", None)
    assert estimated(client, "llama-3.1-405b", "l4")["outcome"] == "does_not_fit"


@pytest.mark.parametrize(
    ("llm", "device", "engine", "tokens_per_s"),
    [
        ("llama-3.1-8b", "cerebras-wse3", "cerebras", (1837, 2200)),
        ("llama-3.1-8b", "groq-lpu-v1", "groq", (751, 780)),
        ("gpt-oss-120b", "sn40l", "sambanova", (693, 738)),
        ("llama-3.1-8b", "hexagon-x-elite", "qnn", (10.04, 10.04)),
        ("llama-2-7b", "mediatek-apu", "neuropilot", (22, 22)),
    ],
)
def test_a_published_speed_answers_where_physics_cannot(
    client: TestClient, llm: str, device: str, engine: str, tokens_per_s: tuple[float, float]
) -> None:
    found = estimated(client, llm, device)
    assert (found["outcome"], found["basis"], found["engine"]["name"]) == ("estimated", "measured", engine)
    assert found["layout"] is found["memory"] is found["bound"] is found["power_w"] is None
    token = found["tpot_ms"]["mean"]
    slowest, fastest = tokens_per_s
    assert token["low"] < 1e3 / fastest <= token["expected"] * (1 + 1e-9)
    assert token["expected"] * (1 - 1e-9) <= 1e3 / slowest < token["high"]
    assert found["evidence"]


def test_nothing_else_is_published_of_it(client: TestClient) -> None:
    many = estimated(client, "llama-3.1-8b", "cerebras-wse3", load={"kind": "closed", "concurrency": 8})
    assert (many["outcome"], many["reason"]) == ("unsupported", "figure_missing")
    assert "one stream" in many["detail"]
    for stated in (
        {"layout": {"tensor_parallel": 1}}, {"precision": {"weights": "fp16"}}, {"engine": {"name": "vllm"}},
    ):  # fmt: skip
        assert estimated(client, "llama-3.1-8b", "cerebras-wse3", **stated)["outcome"] != "estimated", stated
    other = estimated(client, "qwen2.5-0.5b", "cerebras-wse3")
    assert (other["outcome"], other["reason"]) == ("unsupported", "figure_missing")


@pytest.mark.parametrize("device", ["mtia-v2", "maia-100", "maia-200", "coral-edge-tpu"])
def test_what_ships_and_cannot_be_estimated_says_why(client: TestClient, device: str) -> None:
    refused = estimated(client, "llama-3.1-8b", device)
    assert refused["outcome"] == "unsupported"
    assert refused["detail"]
