"""Request bodies that tests start from."""

import copy
from typing import Any

from fastapi.testclient import TestClient

RECOMMENDATION: dict[str, Any] = {
    "workloads": [
        {
            "name": "chat",
            "llm": "llama-3.1-70b",
            "traffic": {
                "requests_per_s": 20.0,
                "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
                "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
            },
            "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 50}},
        }
    ]
}
ESTIMATE: dict[str, Any] = {
    "llm": "llama-3.1-70b",
    "device": "h200-sxm",
    "layout": {"tensor_parallel": 2},
    "precision": {"weights": "fp8"},
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 819, "high": 1024},
        "output_tokens": {"distribution": "uniform", "low": 204, "high": 256},
    },
    "load": {"kind": "closed", "concurrency": 64, "requests": 160},
}
TINY_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}


def small_estimate(traffic: dict[str, Any], requests_per_s: float) -> dict[str, Any]:
    """Of an 8B model on one device, under requests at random instants."""
    load = {"kind": "open", "requests_per_s": requests_per_s}
    return {"llm": "llama-3.1-8b", "device": "h100-sxm", "traffic": traffic, "load": load}


def small_plan(name: str, traffic: dict[str, Any], targets: dict[str, Any]) -> dict[str, Any]:
    """For an 8B model on two kinds of device: planned in a second or two."""
    return {
        "workloads": [{"name": name, "llm": "llama-3.1-8b", "traffic": traffic, "targets": targets}],
        "limits": {"devices": ["h100-sxm", "l40s"], "sourcing": "any"},
        "alternatives": 0,
    }


def estimated(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    """What the service says of one estimate."""
    answer = client.post("/v1/estimates", json={"estimates": [body]})
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["estimates"]
    return dict(found)


def planned(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    """The service's answer to a request whose plan it proves."""
    answer = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"})
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    assert found["solve"]["status"] == "proven_optimal"
    return found


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at ``/``-separated ``path`` replaced or added.

    >>> changed({"a": [{"b": 1}]}, "a/0/b", 2)
    {'a': [{'b': 2}]}
    """
    result = copy.deepcopy(body)
    here: Any = result
    *way, last = [int(p) if p.isdigit() else p for p in path.split("/")]
    for step in way:
        here = here[step]
    here[last] = value
    return result
