"""What clients who each wait for their answer complete in steady state, over HTTP."""

import itertools
from typing import Any

import pytest
from fastapi.testclient import TestClient

CLIENTS = (96, 128, 192, 256, 384, 768)


def rates(client: TestClient, traffic: dict[str, Any], loads: list[dict[str, Any]]) -> list[float]:
    """Requests a second of each load on one deployment."""
    deployment = {
        "llm": "qwen2.5-72b", "device": "h100-pcie", "layout": {"tensor_parallel": 4}, "traffic": traffic,
    }  # fmt: skip
    answer = client.post("/v1/estimates", json={"estimates": [deployment | {"load": load} for load in loads]})
    assert answer.status_code == 200, answer.text
    return [one["requests_per_s"]["expected"] for one in answer.json()["estimates"]]


def test_more_clients_complete_no_less(client: TestClient) -> None:
    """Steps of a hundred short replies each, begun in and ended in somewhere, made 192 clients complete 6 % more than 256."""
    loads = [{"kind": "closed", "concurrency": clients} for clients in CLIENTS]
    found = rates(client, {"prompt_tokens": 100, "output_tokens": 2}, loads)
    for before, after in itertools.pairwise(found):
        assert after > before * 0.995, found


@pytest.mark.parametrize("clients", [192, 512])
def test_a_steady_loop_completes_what_a_long_run_of_it_does(client: TestClient, clients: int) -> None:
    """What the last clients complete, while nobody follows them, was counted: 5 % too much."""
    traffic = {"prompt_tokens": {"mean": 500, "p95": 1500}, "output_tokens": {"mean": 150, "p95": 400}}
    closed = {"kind": "closed", "concurrency": clients}
    steady, long_run = rates(client, traffic, [closed, closed | {"requests": 60 * clients}])
    assert steady == pytest.approx(long_run, rel=0.03)
