"""POST /v1/traces: stored once under its digest; what is wrong is answered with its line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.traces.present import describe
from service.traces.reading import read_trace

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
BLOCKS = (FIXTURES / "blocks.jsonl").read_text()
LOG = (FIXTURES / "log.csv").read_text()


def post(client: TestClient, payload: Any, **more: Any) -> Any:
    headers = {"Idempotency-Key": more.pop("key")} if "key" in more else {}
    return client.post("/v1/traces", json={"payload": payload} | more, headers=headers)


def test_stored_once_and_found_again(client: TestClient) -> None:
    first = post(client, BLOCKS)
    assert first.status_code == 201, first.text
    trace = first.json()
    assert first.headers["Location"] == f"/v1/traces/{trace['id']}"
    again = post(client, BLOCKS)
    assert (again.status_code, again.json()) == (200, trace)
    assert client.get(f"/v1/traces/{trace['id']}").json() == trace
    assert post(client, BLOCKS, block_tokens=500).json()["id"] != trace["id"]  # it says something else then


def test_what_is_answered_is_what_the_command_line_says(client: TestClient) -> None:
    trace = post(client, LOG).json()
    said = describe(read_trace(line.encode() for line in LOG.splitlines())).model_dump(mode="json")
    assert {name: trace[name] for name in said} == said


def test_a_size_of_cache_gives_the_shared_prefix(client: TestClient) -> None:
    trace = post(client, BLOCKS).json()
    assert trace["traffic"]["shared_prefix_fraction"] == 0.0
    sized = client.get(f"/v1/traces/{trace['id']}", params={"cache_tokens": 2000}).json()
    assert sized["traffic"]["shared_prefix_fraction"] == pytest.approx(2048 / 4914)
    assert sized["traffic"]["shared_prefix_fraction"] == sized["prefixes"]["cache_sizes"][-2]["shared_prefix_fraction"]
    less = client.get(f"/v1/traces/{trace['id']}", params={"cache_tokens": 5}).json()
    assert less["traffic"]["shared_prefix_fraction"] == 0.0
    assert client.get(f"/v1/traces/{trace['id']}", params={"cache_tokens": 0}).status_code == 422


def test_its_traffic_can_be_sent_as_it_is(client: TestClient) -> None:
    traffic = post(client, BLOCKS).json()["traffic"]
    estimate = {
        "llm": "llama-3.1-8b",
        "device": "h200-sxm",
        "layout": {"tensor_parallel": 1},
        "precision": {"weights": "bf16"},
    }
    shape = {name: value for name, value in traffic.items() if name != "requests_per_s"}
    load = {"kind": "open", "requests_per_s": traffic["requests_per_s"]}
    answer = client.post("/v1/estimates", json={"estimates": [estimate | {"traffic": shape, "load": load}]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["estimates"][0]["outcome"] == "estimated"


def test_the_same_key_again(client: TestClient) -> None:
    first = post(client, BLOCKS, key="trace-1")
    assert post(client, BLOCKS, key="trace-1").json() == first.json()
    assert post(client, LOG, key="trace-1").status_code == 409


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ("\n", "holds no request"),
        ("hello", "line 1: states no count"),
        ('{"prompt": "hello"}', "tokenizer"),
        (BLOCKS + BLOCKS, "line 6: `timestamp` goes back behind line 5"),
        ("\ud800", "should be a valid string"),
        ("x" * 2_000_000, "line 1: is longer than"),
    ],
)
def test_what_is_wrong(client: TestClient, payload: str, said: str) -> None:
    body = json.dumps({"payload": payload})
    answer = client.post("/v1/traces", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/payload"
    assert said in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("body", [{}, {"payload": ""}, {"payload": 7}, {"payload": "x", "block_tokens": 0}])
def test_fields_that_are_wrong(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/v1/traces", json=body).status_code == 422


def test_a_large_file_is_read_apart(client: TestClient) -> None:
    row = {"timestamp": 0, "input_length": 1300, "output_length": 40, "hash_ids": [0, 1, 2]}
    lines = [json.dumps(row | {"timestamp": 40 * n, "hash_ids": [n % 7, 100 + n % 7]}) for n in range(3_000)]
    trace = post(client, "\n".join(lines)).json()
    assert trace["requests"] == 3_000
    assert trace["prefixes"]["cache_sizes"][-1]["block_hit_share"] == pytest.approx(1 - 14 / 6_000)


def test_unknown_ones_and_roles(client: TestClient, with_role: Callable[[str], dict[str, str]]) -> None:
    assert client.get("/v1/traces/trace_0").status_code == 404
    reader, agent = with_role("reader"), with_role("agent")
    assert client.post("/v1/traces", json={"payload": BLOCKS}, headers=reader).status_code == 403
    stored = client.post("/v1/traces", json={"payload": BLOCKS}, headers=agent).json()
    assert client.get(f"/v1/traces/{stored['id']}", headers=reader).status_code == 200
