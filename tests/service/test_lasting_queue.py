"""Queues that stay, over HTTP: seats that let them go are chosen, and said where nobody chooses them."""

import re
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from fastapi.testclient import TestClient

from solver.engine import profiles
from solver.recommend import recommend
from solver.workload import EngineSettings, Workload

PROMPT = {"distribution": "lognormal", "mean": 50, "p95": 150}
OUTPUT = {"distribution": "lognormal", "mean": 300, "p95": 900}
STATED_SEATS = 512


def asked(targets: dict[str, Any]) -> dict[str, Any]:
    return {
        "workloads": [
            {
                "name": "chat", "llm": "qwen3-30b-a3b", "targets": targets,
                "traffic": {"requests_per_s": 300, "prompt_tokens": PROMPT, "output_tokens": OUTPUT},
            }
        ],
        "limits": {"devices": ["h100-sxm"], "commitments": ["on_demand"], "sourcing": "any"},
        "alternatives": 0,
    }  # fmt: skip


@pytest.fixture
def captures_512(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans whose engines are told no more than vLLM does unless told: a crowd on 512 seats is launched step by step."""
    own = recommend.engine_settings

    def settings(engine: EngineSettings, workload: Workload) -> EngineSettings:
        return replace(own(engine, workload), max_captured_tokens=512)

    monkeypatch.setattr(recommend, "engine_settings", settings)
    monkeypatch.setattr(profiles, "PLANNED_STEPS", {})


@pytest.fixture
def answer(client: TestClient, request: pytest.FixtureRequest) -> dict[str, Any]:
    request.getfixturevalue("captures_512")
    response = client.post("/v1/recommendations", json=asked({"ttft_ms": {"p95": 3_000}}))
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


def estimate_of(client: TestClient, line: dict[str, Any], seats: int) -> dict[str, Any]:
    one = {
        "llm": "qwen3-30b-a3b", "device": line["device"], "node": line["node"], "layout": line["layout"],
        "precision": line["precision"], "engine": line["engine_settings"] | {"max_sequences": seats},
        "traffic": {"prompt_tokens": PROMPT, "output_tokens": OUTPUT},
        "load": {"kind": "open", "requests_per_s": line["serves_requests_per_s"] / line["replicas"]},
    }  # fmt: skip
    response = client.post("/v1/estimates", json={"estimates": [one]})
    assert response.status_code == 200, response.text
    (found,) = response.json()["estimates"]
    assert found["outcome"] == "estimated", found
    return dict(found)


def test_a_plan_has_seats_from_which_a_queue_goes(client: TestClient, answer: dict[str, Any]) -> None:
    (line,) = answer["plan"]
    seats = line["engine_settings"]["max_sequences"]
    assert seats < STATED_SEATS
    assert line["max_concurrency"] == seats * line["layout"]["data_parallel"]
    assert line["predicted"]["lasting_queue"] is None
    assert "lasting_queue" not in [caution["about"] for caution in answer["cautions"]]
    found = estimate_of(client, line, seats)
    assert found["lasting_queue"] is None
    assert found["cautions"] == []
    for metric in ("ttft_ms", "tpot_ms", "e2e_ms"):
        assert found[metric]["p95"]["expected"] == pytest.approx(line["predicted"][metric]["p95"]["expected"], rel=0.01)


def test_an_estimate_with_all_seats_says_that_a_queue_stays(client: TestClient, answer: dict[str, Any]) -> None:
    (line,) = answer["plan"]
    found = estimate_of(client, line, STATED_SEATS)
    queue, seats = found["lasting_queue"], line["engine_settings"]["max_sequences"]
    each = line["serves_requests_per_s"] / line["replicas"]
    assert queue["max_sequences"] == seats
    assert queue["completed_requests_per_s"] < each < queue["settled_requests_per_s"]
    (caution,) = found["cautions"]
    assert f"max_sequences {seats} in place of {STATED_SEATS}" in caution
    assert f"{each:.3g} requests per second" in caution


def test_files_start_engines_with_those_seats(client: TestClient, answer: dict[str, Any]) -> None:
    response = client.get(f"/v1/recommendations/{answer['id']}/deployments", params={"target": "compose"})
    assert response.status_code == 200, response.text
    seats = answer["plan"][0]["engine_settings"]["max_sequences"]
    files = " ".join(file["content"] for file in response.json()["files"])
    assert re.search(rf"--max-num-seqs\W+{seats}\b", files), files


def test_no_queue_stays_where_plans_capture_its_steps(client: TestClient) -> None:
    # Another request than above: the same is answered with the plan that is kept.
    response = client.post("/v1/recommendations", json=asked({"ttft_ms": {"p95": 3_001}}))
    assert response.status_code == 201, response.text
    lines = response.json()["plan"]
    assert lines
    for line in lines:
        assert line["engine_settings"]["max_sequences"] == STATED_SEATS
        assert line["engine_settings"]["max_captured_tokens"] > STATED_SEATS
        assert estimate_of(client, line, STATED_SEATS)["lasting_queue"] is None


@pytest.mark.usefixtures("captures_512")
def test_traffic_classes_have_such_seats_too(client: TestClient) -> None:
    body = asked({})
    workload = body["workloads"][0]
    del workload["targets"], workload["traffic"]
    kinds = {"short": PROMPT, "longer": {"distribution": "lognormal", "mean": 60, "p95": 180}}
    workload["traffic_classes"] = [
        {
            "name": name, "share_fraction": 0.5, "targets": {"ttft_ms": {"p95": 3_000}},
            "prompt_tokens": prompt, "output_tokens": OUTPUT,
        }
        for name, prompt in kinds.items()
    ]  # fmt: skip
    workload["requests_per_s"] = 302  # a twelfth of it is more than a crowd on all stated seats completes
    response = client.post("/v1/recommendations", json=body)
    assert response.status_code == 201, response.text
    for line in response.json()["plan"]:
        assert line["predicted"]["lasting_queue"] is None
    assert any(line["engine_settings"]["max_sequences"] < STATED_SEATS for line in response.json()["plan"])


class TestSessions:
    AGENTS: ClassVar = {
        "turns": {"distribution": "uniform", "low": 8, "high": 16}, "think_time_s": 10, "system_prompt_tokens": 2_000,
        "user_tokens": {"distribution": "lognormal", "mean": 600, "p95": 1_800}, "routing": "sticky",
    }  # fmt: skip

    def planned(self, client: TestClient, utilisation_limit_fraction: float) -> dict[str, Any]:
        body = asked({"ttft_ms": {"p95": 1_500}})
        body["workloads"][0] |= {
            "llm": "llama-3.1-8b",
            "utilisation_limit_fraction": utilisation_limit_fraction,
            "traffic": {"requests_per_s": 20, "sessions": self.AGENTS, "output_tokens": PROMPT},
        }
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 201, response.text
        found: dict[str, Any] = response.json()
        return found

    def test_agents_whose_queue_stays_are_said_to_and_how_much_less_mends_it(self, client: TestClient) -> None:
        answer = self.planned(client, 0.85)
        (line,) = answer["plan"]
        queue = line["predicted"]["lasting_queue"]
        each = line["serves_requests_per_s"] / line["replicas"]
        assert queue["completed_requests_per_s"] < each
        assert queue["prefix_hit_fraction"] < line["predicted"]["prefix_hit_fraction"] - 0.3
        eased = answer
        for _ in range(
            2
        ):  # replicas in other steps complete a little less once turns wait: they are said what they complete then
            (detail,) = [one["detail"] for one in eased["cautions"] if one["about"] == "lasting_queue"]
            named = re.search(r"\(utilisation_limit_fraction (0\.\d+)\)$", detail)
            assert named is not None, detail
            eased = self.planned(client, float(named[1]))
            if all(line["predicted"]["lasting_queue"] is None for line in eased["plan"]):
                break
        assert all(line["predicted"]["lasting_queue"] is None for line in eased["plan"])
        assert eased["totals"]["usd_per_hour"] >= answer["totals"]["usd_per_hour"]
