"""Intervals of weights that are widened as they are read: where no run on a device had them, as wide as others mislead about them."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import estimated

TRAFFIC = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 512},
    "output_tokens": {"distribution": "fixed", "tokens": 128},
}


def interval(client: TestClient, device: str, weights: str, metric: str) -> tuple[str, float, float]:
    body: dict[str, Any] = {
        "llm": "qwen3-8b", "device": device, "layout": {"tensor_parallel": 1},
        "precision": {"weights": weights, "kv_cache": "bf16"}, "engine": {"name": "vllm", "version": "0.24.0"},
        "traffic": TRAFFIC, "load": {"kind": "closed", "concurrency": 8, "requests": 64},
    }  # fmt: skip
    found = estimated(client, body)
    mean = found[metric]["mean"]
    return found["basis"], mean["low"] / mean["expected"], mean["high"] / mean["expected"]


def test_borrowed_times_per_token_hold_what_devices_differ_by(client: TestClient) -> None:
    basis, low, high = interval(client, "gh200-144", "int4", "tpot_ms")
    assert basis == "borrowed"
    assert low <= 0.58
    assert high >= 1.72
    assert interval(client, "gh200-144", "bf16", "tpot_ms")[1] > 0.75


def test_first_tokens_do_not_read_weights_for_each_of_them(client: TestClient) -> None:
    assert interval(client, "gh200-144", "int4", "ttft_ms")[1] > 0.6


@pytest.mark.parametrize("device", ["h100-sxm", "h200-sxm"])
def test_a_device_that_ran_them_is_asked_itself(client: TestClient, device: str) -> None:
    basis, low, high = interval(client, device, "int4", "tpot_ms")
    assert basis == "corrected"
    assert low > 0.8
    assert high < 1.25
