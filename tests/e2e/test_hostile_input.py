"""What the service answers to bad input over HTTP, as a process of its own on a database file."""

import copy
import json
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bench.server_process import ServerProcess
from tests.seeds import cases

CHAT: dict[str, Any] = json.loads((Path(__file__).resolve().parents[2] / "examples/chat-70b.json").read_text())
ANSWERS_WITHIN_S = 60.0
"""Slack for a busy machine; docs/performance.md has the figures."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> Path:
    path = tmp_path_factory.mktemp("e2e") / "served.sqlite"
    shutil.copy(seeded_template, path)
    return path


@pytest.fixture(scope="module")
def client(database: Path) -> Iterator[httpx.Client]:
    server = ServerProcess(f"sqlite:///{database}", database.with_suffix(".log"))
    server.start()
    with httpx.Client(base_url=server.address, timeout=ANSWERS_WITHIN_S) as client:
        yield client
    server.stop()


def asked(**changes: Any) -> dict[str, Any]:
    """The example with top-level fields, or those of its workload, replaced."""
    body = copy.deepcopy(CHAT)
    for name, value in changes.items():
        if name in ("limits", "workloads", "objective", "time_limit_s"):
            body[name] = value
        else:
            body["workloads"][0][name] = value
    return body


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text[:2000]
    assert response.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in response.text
    document: dict[str, Any] = response.json()
    return document


def stored(client: httpx.Client) -> int:
    return len(client.get("/v1/recommendations", params={"limit": 500}).json()["items"])


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (asked(llm="llama-3.1-70"), "llama-3.1-70b"),
        (asked(limits={"devices": ["h200-smx"]}), "h200-sxm"),
        (asked(limits={"regions": ["us-east-11"]}), "us-east-1"),
        (asked(limits={"offers": {"verda:1B200.30V:FIN:on_deman": {"max_nodes": 1}}}), "verda:1B200.30V:FIN:on_demand"),
        (asked(precision={"weights": ["fp9"], "kv_cache": ["bf16"]}), "fp8"),
    ],
    ids=["llm", "device", "region", "offer", "precision"],
)
def test_unknown_names_are_answered_with_close_matches(client: httpx.Client, body: dict[str, Any], hint: str) -> None:
    document = problem(client.post("/v1/recommendations", json=body), 422)
    assert any(hint in error["detail"] for error in document["errors"]), document


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "1e308", "Infinity", '"fast"'])
def test_targets_outside_their_domain(client: httpx.Client, value: str) -> None:
    text = json.dumps(asked(targets={"ttft_ms": {"p95": "HERE"}})).replace('"HERE"', value)
    response = client.post("/v1/recommendations", content=text, headers={"content-type": "application/json"})
    document = problem(response, 422)
    assert document["errors"][0]["pointer"] == "/workloads/0/targets/ttft_ms/p95"


def test_a_percentile_nobody_computes(client: httpx.Client) -> None:
    document = problem(client.post("/v1/recommendations", json=asked(targets={"ttft_ms": {"p97": 1000}})), 422)
    assert "p99" in document["errors"][0]["detail"]


def test_a_context_longer_than_the_model_takes(client: httpx.Client) -> None:
    document = problem(client.post("/v1/recommendations", json=asked(context_tokens=1_000_000)), 422)
    assert document["errors"][0]["pointer"] == "/workloads/0/context_tokens"
    assert "131072" in document["errors"][0]["detail"]


def test_a_rate_no_catalog_can_serve(client: httpx.Client) -> None:
    traffic = CHAT["workloads"][0]["traffic"] | {"requests_per_s": 5e8}
    began = time.monotonic()
    response = client.post("/v1/recommendations", json=asked(traffic=traffic, limits={"devices": ["h200-sxm"]}))
    assert time.monotonic() - began < ANSWERS_WITHIN_S
    answer = response.json()
    assert response.status_code == 201, answer
    assert answer["outcome"] == "infeasible"
    assert answer["conflicts"]
    share = answer["largest_servable_fraction"]
    assert 0.0 < share < 1.0
    lower = next(r for r in answer["relaxations"] if r["limit"] == "traffic.requests_per_s")
    assert lower["relaxing_to"] == pytest.approx(5e8 * share)


def test_contradictory_limits_are_both_named(client: httpx.Client) -> None:
    """The cheapest plan draws too much and the most frugal costs too much: each limit alone leaves a plan."""
    # Machines whose power nobody publishes are left out of both; few devices, so that all is explained in time.
    few = {"devices": ["a100-sxm-80", "b200-sxm"], "sourcing": "any"}
    known = few | {"max_power_kw": 1_000}
    freer = {"precision": {"weights": ["bf16", "fp8"], "kv_cache": ["bf16", "fp8"]}}
    cheapest = client.post("/v1/recommendations", json=asked(limits=known, **freer)).json()["totals"]
    frugal = client.post("/v1/recommendations", json=asked(objective="power", limits=few, **freer)).json()["totals"]
    assert frugal["power_kw"] < cheapest["power_kw"]
    budget = {"max_usd_per_hour": f"{float(cheapest['usd_per_hour']) * 1.001:.6f}"}
    power = {"max_power_kw": frugal["power_kw"] * 1.001}
    answer = client.post("/v1/recommendations", json=asked(limits=few | budget | power, **freer)).json()
    assert answer["outcome"] == "infeasible", answer["totals"]
    limits = set(answer["conflicts"][0]["limits"])
    assert {"limits.max_usd_per_hour", "limits.max_power_kw"} <= limits, answer["conflicts"]


def test_a_body_of_fifty_megabytes(client: httpx.Client) -> None:
    body = b'{"workloads": [' + b" " * 50_000_000 + b"]}"
    problem(client.post("/v1/recommendations", content=body, headers={"content-type": "application/json"}), 413)


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_deeply_nested_json(client: httpx.Client, bracket: str) -> None:
    text = bracket * 100_000
    response = client.post("/v1/recommendations", content=text, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    problem(response, response.status_code)


def test_ten_thousand_workloads(client: httpx.Client) -> None:
    many = [CHAT["workloads"][0] | {"name": f"w{i}"} for i in range(10_000)]
    for one in many:
        one.pop("precision", None)
    document = problem(client.post("/v1/recommendations", json={"workloads": many[:4_000]}), 422)
    assert "50" in document["errors"][0]["detail"]
    assert client.post("/v1/recommendations", json={"workloads": many}).status_code in (413, 422)


def test_tensor_parallelism_that_does_not_divide_the_heads(client: httpx.Client) -> None:
    estimate = {
        "llm": "llama-3.1-70b", "device": "h200-sxm", "layout": {"tensor_parallel": 3},
        "traffic": {"prompt_tokens": {"distribution": "fixed", "tokens": 100},
                    "output_tokens": {"distribution": "fixed", "tokens": 100}},
        "load": {"kind": "closed", "concurrency": 1},
    }  # fmt: skip
    answer = client.post("/v1/estimates", json={"estimates": [estimate]}).json()["estimates"][0]
    assert answer["outcome"] == "unsupported"
    assert "3" in answer["detail"]
    assert "heads" in answer["detail"]


@pytest.mark.parametrize("config", [{}, {"hello": "world"}, {"model_type": "bert"}, {"num_hidden_layers": -1}])
def test_a_config_that_is_none(client: httpx.Client, config: dict[str, Any]) -> None:
    document = problem(client.post("/v1/llms", json={"id": "mine", "config": config}), 422)
    assert document["errors"][0]["pointer"].startswith("/config")
    assert client.get("/v1/llms/mine").status_code == 404


@pytest.mark.parametrize("amount", ["cheap", "NaN", "-1", "Infinity", 12.5, True])
def test_a_price_that_is_no_number(client: httpx.Client, amount: Any) -> None:
    offer = "verda:1B200.30V:FIN:on_demand"
    before = client.get(f"/v1/offers/{offer}/prices").json()
    price = {"usd_per_hour": amount, "valid_from": "2026-11-01T00:00:00Z", "source": "an invoice"}
    problem(client.post(f"/v1/offers/{offer}/prices", json=price), 422)
    assert client.get(f"/v1/offers/{offer}/prices").json() == before


def test_an_unmigrated_database_is_not_ready(tmp_path: Path) -> None:
    from tests.service.test_serve import COMMAND, ROOT, environment, free_port

    path, port = tmp_path / "empty.sqlite", free_port()
    sqlite3.connect(path).close()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", str(port)], env=environment(f"sqlite:///{path}"), cwd=ROOT,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        ready = answered(f"http://127.0.0.1:{port}/readyz")
        assert ready.status_code == 503
        assert "migrate" in ready.text
        refused = httpx.post(f"http://127.0.0.1:{port}/v1/recommendations", json=CHAT, timeout=30)
        assert "migrate" in problem(refused, 503)["detail"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert "Traceback" not in log


def answered(address: str) -> httpx.Response:
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            return httpx.get(address, timeout=5)
        except httpx.TransportError:
            assert time.monotonic() < deadline, "no answer"
            time.sleep(0.05)


def test_sigterm_during_a_solve_answers_or_stores_nothing(tmp_path: Path, seeded_template: Path) -> None:
    """Whatever moment the signal hits: a 201 is stored, a 503 is not."""
    path = tmp_path / "stopped.sqlite"
    shutil.copy(seeded_template, path)
    many = [
        CHAT["workloads"][0] | {"name": f"w{i}", "llm": llm} for i, llm in enumerate(("llama-3.1-70b", "qwen3-32b"))
    ]
    for delay_s in (0.4, 0.05)[: cases(2, few=1)]:
        server = ServerProcess(f"sqlite:///{path}", tmp_path / "log")
        server.start()
        answers: list[httpx.Response | httpx.HTTPError] = []

        def post(address: str = server.address, answers: list[httpx.Response | httpx.HTTPError] = answers) -> None:
            try:
                answers.append(httpx.post(f"{address}/v1/recommendations", json={"workloads": many}, timeout=60))
            except httpx.HTTPError as error:
                answers.append(error)

        before = rows(path)
        asking = threading.Thread(target=post)
        asking.start()
        time.sleep(delay_s)
        server.stop()
        asking.join(60)
        answer = answers[0]
        made = isinstance(answer, httpx.Response) and answer.status_code == 201
        if isinstance(answer, httpx.Response) and not made:
            problem(answer, 503)
        assert rows(path) - before == int(made), answer


def rows(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM recommendation").fetchone()[0])


def test_nothing_of_it_was_stored(client: httpx.Client) -> None:
    """Every stored recommendation answers again; refused requests left none."""
    items = client.get("/v1/recommendations", params={"limit": 500}).json()["items"]
    for item in items:
        again = client.get(f"/v1/recommendations/{item['id']}")
        assert again.status_code == 200
        assert again.json()["outcome"] == item["outcome"]
