"""How many processes answer as something plans choose, over HTTP: none busier than was measured to serve, told to the engine, estimated."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from fastapi.testclient import TestClient

from solver.engine import profiles
from tests.service.bodies import changed, estimated, planned
from tests.service.test_front_end import ASKED, SHORT

MOST = 0.75
MORE = profiles.PLANNED_SERVERS["vllm"].api_servers
LONGER: dict[str, Any] = {
    "prompt_tokens": {"distribution": "lognormal", "mean": 900, "p95": 2700},
    "output_tokens": {"distribution": "lognormal", "mean": 100, "p95": 300},
}  # fmt: skip


def asked(llm: str, rate: float, traffic: dict[str, Any] = SHORT, **changes: Any) -> dict[str, Any]:
    workload = {
        "name": "chat", "llm": llm, "targets": {"ttft_ms": {"p95": 2000}}, "traffic": traffic | {"requests_per_s": rate},
    } | changes  # fmt: skip
    limits = {"devices": ["h100-sxm", "h200-sxm"], "sourcing": "any"}
    return {"workloads": [workload], "limits": limits, "alternatives": 0}


@contextmanager
def one_process() -> Iterator[None]:
    """Plans whose engines answer from as many processes as are asked."""
    with patch.dict(profiles.PLANNED_SERVERS, clear=True):
        yield


@pytest.mark.parametrize("llm", ["qwen3-30b-a3b", "llama-3.1-8b"])
@pytest.mark.parametrize("rate", [5, 36, 44, 90, 250])
def test_no_front_end_of_a_plan_is_busier_than_was_measured_to_serve(client: TestClient, llm: str, rate: float) -> None:
    """At the rate that is planned; and at that over the utilisation limit, at which targets are held, too."""
    body = asked(llm, rate)
    found = planned(client, body)
    assert {line["engine"] for line in found["plan"]} == {"vllm"}
    for line in found["plan"]:
        busy, copies = line["predicted"]["front_end_fraction"], line["layout"]["data_parallel"]
        each = line["predicted"]["output_tokens_per_s"]["expected"] / line["replicas"] / copies
        assert busy == pytest.approx(each * 60e-6 / line["engine_settings"]["api_servers"], rel=0.05)
        assert busy <= MOST * found["request"]["workloads"][0]["utilisation_limit_fraction"] * 1.01


def test_of_a_mix_what_passes_tokens_on_is_no_busier_either(client: TestClient) -> None:
    targets = {"ttft_ms": {"p95": 2000}}
    classes = [
        {"name": name, "requests_per_s": 60, "targets": targets} | traffic
        for name, traffic in (("short", SHORT), ("long", LONGER))
    ]
    body = asked("llama-3.1-8b", 1.0)
    body["workloads"] = [{"name": "both", "llm": "llama-3.1-8b", "traffic_classes": classes}]
    found = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"}).json()
    assert any(len(line["classes"]) > 1 for line in found["plan"])
    assert all(line["predicted"]["front_end_fraction"] <= MOST for line in found["plan"])


def test_a_high_rate_is_answered_from_several_processes_and_is_cheaper_for_it(client: TestClient) -> None:
    several = planned(client, asked("llama-3.1-8b", 100.0))
    with one_process():
        alone = planned(client, asked("llama-3.1-8b", 100.0, context_tokens=4097))  # another search space than is kept
    assert {line["engine_settings"]["api_servers"] for line in alone["plan"]} == {1}
    assert MORE in {line["engine_settings"]["api_servers"] for line in several["plan"]}
    assert float(several["totals"]["usd_per_hour"]) < 0.9 * float(alone["totals"]["usd_per_hour"])
    files = client.get(f"/v1/recommendations/{several['id']}/deployments", params={"target": "vllm"})
    assert files.status_code == 200, files.text
    assert f"--api-server-count {MORE}" in json.dumps(files.json()).replace("\\n", " ")


def test_a_line_behind_several_processes_is_what_an_estimate_says(client: TestClient) -> None:
    found = planned(client, asked("llama-3.1-8b", 101.0))
    (line, *_) = [one for one in found["plan"] if one["engine_settings"]["api_servers"] == MORE]
    rate = line["serves_requests_per_s"] / line["replicas"]
    body = {name: line[name] for name in ("device", "node", "layout", "precision")} | {
        "llm": "llama-3.1-8b",
        "traffic": SHORT,
    }
    one = estimated(
        client, body | {"engine": line["engine_settings"], "load": {"kind": "open", "requests_per_s": rate}}
    )
    assert one["basis"] == line["basis"] == "borrowed"
    for figure in ("ttft_ms", "tpot_ms"):
        assert one[figure] == line["predicted"][figure]
    assert one["front_end_fraction"] == pytest.approx(line["predicted"]["front_end_fraction"])


def test_where_one_process_would_do_there_is_one(client: TestClient) -> None:
    """And no candidate more than without the choice."""
    few = planned(client, asked("qwen3-30b-a3b", 20.0))
    with one_process():
        alone = planned(client, asked("qwen3-30b-a3b", 20.0, context_tokens=4098))
    assert {line["engine_settings"]["api_servers"] for line in few["plan"]} == {1}
    assert few["solve"]["candidates"] == alone["solve"]["candidates"]
    assert few["totals"]["usd_per_hour"] == alone["totals"]["usd_per_hour"]


@pytest.mark.parametrize("engine", ["sglang", "jetstream", "neuron"])
@pytest.mark.parametrize(("option", "value"), [("api_servers", 2), ("max_captured_tokens", 2048)])
def test_engines_of_which_it_is_not_documented_refuse_it_by_name(
    client: TestClient, engine: str, option: str, value: int
) -> None:
    """Those that are scheduled like vLLM too."""
    devices = {"sglang": "h100-sxm", "jetstream": "tpu-v5e", "neuron": "trainium2"}
    body = changed(changed(ASKED, "engine", {"name": engine, option: value}), "device", devices[engine])
    (found,) = client.post("/v1/estimates", json={"estimates": [body]}).json()["estimates"]
    assert (found["outcome"], found["reason"]) == ("unsupported", "option_not_in_engine")
    assert option in found["detail"]


def test_the_price_of_a_rate_is_that_of_the_plan_for_it_whichever_was_asked(client: TestClient) -> None:
    """At a rate which one process passes on there are no candidates with more, at others there are."""
    few, many = (planned(client, asked("llama-3.1-8b", rate)) for rate in (20.0, 102.0))
    for known, other, rate in ((few, many, 102), (many, few, 20)):
        path = f"/v1/recommendations/{known['id']}/price-curve"
        answer = client.post(path, json={"of": "requests_per_s", "points": [rate], "time_limit_s": 60})
        assert answer.status_code == 200, answer.text
        (point,) = answer.json()["points"]
        assert float(point["solved"]["usd_per_hour"]) == pytest.approx(float(other["totals"]["usd_per_hour"]))


def test_machines_with_too_few_processors_are_named_with_both_numbers(client: TestClient) -> None:
    """Some machines with an L40S have fewer than four processes and the engine's own take; where one process is enough it is no reason."""
    body = asked("llama-3.2-1b", 300.0) | {"limits": {"devices": ["l40s"], "sourcing": "any"}}
    (said,) = [one for one in planned(client, body)["rejected"] if one["reason"] == "host_processors_exceeded"]
    assert said["device"] == "l40s"
    assert "processes that answer take" in said["nearest"]
    few = asked("llama-3.2-1b", 10.0) | {"limits": {"devices": ["l40s"], "sourcing": "any"}}
    assert "host_processors_exceeded" not in [one["reason"] for one in planned(client, few)["rejected"]]
