"""Inputs as people type them, and mistakes: what is plainly meant is understood, the rest is answered with the mend."""

from copy import deepcopy
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.problems import MOST_FIELD_ERRORS
from service.settings import Settings
from tests.service.bodies import RECOMMENDATION


@pytest.fixture
def settings(seeded_url: str) -> Settings:
    """What is asked as a job is not computed: how it was understood is all that is looked at."""
    return Settings(database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=0)


def changed(**at: Any) -> dict[str, Any]:
    """The usual request with values put at paths: ``workloads__0__llm="x"``; ``...`` takes one out."""
    body = deepcopy(RECOMMENDATION)
    for path, value in at.items():
        here: Any = body
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("__"))
        for step in steps:
            here = here[step] if isinstance(here, list) else here.setdefault(step, {})
        if value is ...:
            here.pop(last)
        else:
            here[last] = value
    return body


class TestUnderstood:
    def test_names_in_any_case_and_as_hubs_and_people_write_them(self, client: TestClient) -> None:
        body = changed(
            workloads__0__llm="meta-llama/Llama-3.1-70B-Instruct",
            limits__devices=["H100", "NVIDIA L40S"],
            limits__providers=["AWS", "Lambda"],
        )
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 201, answer.text
        asked = answer.json()["request"]
        assert asked["workloads"][0]["llm"] == "llama-3.1-70b"
        assert asked["limits"]["devices"] == ["h100-sxm", "l40s"]
        assert asked["limits"]["providers"] == ["aws", "lambda"]

    def test_numbers_for_lengths_and_targets(self, client: TestClient) -> None:
        body = changed(
            workloads__0__traffic__prompt_tokens=1000,
            workloads__0__traffic__output_tokens={"mean": 300, "p95": 900},
            workloads__0__targets={"ttft_ms": 2000, "tpot_ms": 80},
            limits__devices=["h100-sxm"],
        )
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 201, answer.text
        (asked,) = answer.json()["request"]["workloads"]
        assert asked["traffic"]["prompt_tokens"] == {"distribution": "fixed", "tokens": 1000}
        assert asked["traffic"]["output_tokens"] == {"distribution": "lognormal", "mean": 300, "p95": 900}
        assert asked["targets"]["ttft_ms"] == {"p95": 2000}

    def test_estimates_know_the_same_names(self, client: TestClient) -> None:
        case = {
            "llm": "Llama-3.1-8B-Instruct", "device": "H100",
            "traffic": {"prompt_tokens": 500, "output_tokens": 100}, "load": {"kind": "closed", "concurrency": 4},
        }  # fmt: skip
        answer = client.post("/v1/estimates", json={"estimates": [case]}).json()
        assert answer["estimates"][0]["outcome"] == "estimated"

    def test_a_name_stated_more_than_once_is_meant_once(self, client: TestClient) -> None:
        """By one of its names or by several: 5,000 of them were answered after 80 s, whatever the time limit."""
        body = changed(limits={"devices": ["H100", "h100-sxm", *["h100-sxm"] * 4_998], "providers": ["aws", "AWS"] * 2})
        answer = client.post("/v1/recommendations", json=body | {"time_limit_s": 5.0, "alternatives": 0}).json()
        assert answer["request"]["limits"]["devices"] == ["h100-sxm"]
        assert answer["request"]["limits"]["providers"] == ["aws"]

    def test_a_job_is_asked_with_the_names_that_were_meant(self, client: TestClient) -> None:
        body = changed(workloads__0__llm="LLAMA-3.1-70B")
        job = client.post("/v1/recommendations", json=body, headers={"Prefer": "respond-async"})
        assert job.status_code == 202
        assert job.json()["request"]["workloads"][0]["llm"] == "llama-3.1-70b"
        client.post(f"/v1/jobs/{job.json()['id']}/cancel")


@pytest.mark.parametrize(
    "limits",
    [
        {"devices": [f"h{n}-none" for n in range(5_000)]},
        {"regions": [f"mars-{n}" for n in range(5_000)]},
        {"offers": {f"mars:{n}": {"max_nodes": 1} for n in range(5_000)}},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_thousands_of_unknown_names_are_refused_by_the_first(client: TestClient, limits: dict[str, Any]) -> None:
    answer = client.post("/v1/recommendations", json=changed(limits=limits))
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == MOST_FIELD_ERRORS


HERE_NOT_HERE = {"only": ["us-east-1"], "never": ["US-EAST-1"]}
NONE_OF_TWO = {"only": ["aws", "gcp"], "never": ["gcp", "azure", "aws"]}
MISTAKES: list[tuple[str, dict[str, Any], str, str]] = [
    ("a field misspelt", changed(workloads__0__trafic={}), "/workloads/0/trafic", "did you mean 'traffic'?"),
    ("a target misspelt", changed(workloads__0__targets__tftt_ms={}), "/workloads/0/targets/tftt_ms", "'ttft_ms'"),
    ("a limit misspelt", changed(limits__provider=["aws"]), "/limits/provider", "'providers'"),
    ("a limit at the top", changed(objectives="cost"), "/objectives", "'objective'"),
    ("a rate misspelt", changed(workloads__0__traffic__request_per_s=1), "/workloads/0/traffic/request_per_s", "'requests_per_s'"),
    ("an unknown model", changed(workloads__0__llm="llama-3.1-7b"), "/workloads/0/llm", "'llama-3.1-70b'"),
    ("an unknown device", changed(limits__devices=["h1000-sxm"]), "/limits/devices/0", "'h100-sxm'"),
    ("an unknown provider", changed(limits__providers=["amazon aws"]), "/limits/providers/0", "no provider 'amazon aws'"),
    ("an unknown region", changed(limits__regions=["us-east1a"]), "/limits/regions/0", "did you mean"),
    ("a region both ways", changed(workloads__0__regions=HERE_NOT_HERE), "/workloads/0/regions", "contradict"),
    ("sellers both ways", changed(workloads__0__providers=NONE_OF_TWO), "/workloads/0/providers", "'aws', 'gcp'"),
    ("an unknown commitment", changed(limits__commitments=["on-demand"]), "/limits/commitments/0", "'on_demand'"),
    ("an unknown format", changed(workloads__0__precision__weights=["fp-8"]), "/workloads/0/precision/weights/0", "'fp8'"),
    ("an unknown percentile", changed(workloads__0__targets__ttft_ms={"p97": 1}), "/workloads/0/targets/ttft_ms/p97", "p95"),
    ("an unknown objective", changed(objective="costs"), "/objective", "'cost'"),
    ("money as a number", changed(limits__max_usd_per_hour=12.5), "/limits/max_usd_per_hour", '"12.480000"'),
    ("money with a sign", changed(limits__max_usd_per_hour="$12"), "/limits/max_usd_per_hour", "not a decimal number"),
    ("no model", changed(workloads__0__llm=...), "/workloads/0/llm", "required"),
    ("no traffic", changed(workloads__0__traffic=...), "/workloads/0", "traffic or traffic_classes"),
    ("no rate", changed(workloads__0__traffic__requests_per_s=...), "/workloads/0/traffic/requests_per_s", "requests come each second"),
    ("no workloads", {"limits": {}}, "/workloads", "required"),
    ("a list that is none", changed(limits__regions="us-east-1"), "/limits/regions", "this must be a list"),
    ("an object that is none", changed(workloads__0="chat"), "/workloads/0", "this must be an object"),
    ("an empty list", changed(workloads=[]), "/workloads", "at least 1 entry belongs here, not 0"),
    ("below zero", changed(workloads__0__traffic__requests_per_s=-1), "/workloads/0/traffic/requests_per_s", "greater than"),
    ("per cent", changed(workloads__0__utilisation_limit_fraction=85), "/workloads/0/utilisation_limit_fraction", "equal to 1"),
    ("confidence as a share", changed(workloads__0__targets__confidence_percent=0.9), "/workloads/0/targets/confidence_percent", "50"),
    ("p95 under it", changed(workloads__0__traffic__prompt_tokens={"mean": 40, "p95": 1}), "/workloads/0/traffic/prompt_tokens", "p95"),
    ("a length in words", changed(workloads__0__traffic__prompt_tokens="long"), "/workloads/0/traffic/prompt_tokens", "object"),
    ("a length as a text", changed(workloads__0__traffic__output_tokens="1000"), "/workloads/0/traffic/output_tokens", "must be a number"),
    ("a target as a text", changed(workloads__0__targets__ttft_ms="800"), "/workloads/0/targets/ttft_ms", "must be a number"),
    ("a word that is none", changed(limits__sourcing="anyy"), "/limits/sourcing", 'an object, {…}, or "any"'),
    ("a context too long", changed(workloads__0__context_tokens=9_000_000), "/workloads/0/context_tokens", "more than"),
    ("a time without offset", changed(price_as_of="2026-11-21T00:00:00"), "/price_as_of", "offset"),
    ("a config.json", {"model_type": "llama", "architectures": ["X"], "hidden_size": 1}, "", "/v1/llms"),
    ("a benchmark's output", {"request_throughput": 1.0, "mean_ttft_ms": 3.0}, "", "/v1/benchmarks/import"),
    ("estimates at the wrong route", {"estimates": []}, "", "/v1/estimates"),
]  # fmt: skip


class TestMistakes:
    @pytest.mark.parametrize(("body", "pointer", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
    def test_each_is_answered_with_its_mend(
        self, client: TestClient, body: dict[str, Any], pointer: str, says: str
    ) -> None:
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422, answer.text
        told = {error.get("pointer"): error["detail"] for error in answer.json()["errors"]}
        assert pointer in told, told
        assert says in told[pointer]

    def test_a_file_at_the_wrong_route_is_one_sentence(self, client: TestClient) -> None:
        for path, body, says in (
            ("/v1/llms", RECOMMENDATION, "/v1/recommendations"),
            ("/v1/estimates", RECOMMENDATION, "/v1/recommendations"),
            ("/v1/benchmarks", {"request_throughput": 1.0, "output_throughput": 2.0}, "/v1/benchmarks/import"),
            ("/v1/llms", {"model_type": "llama", "architectures": []}, "config.json: post it to /v1/llms as"),
        ):
            (error,) = client.post(path, json=body).json()["errors"]
            assert says in error["detail"]

    def test_a_form_of_a_field_is_no_part_of_its_place(self, client: TestClient) -> None:
        """``/demand/series`` was pointed at, and a list was a tuple with items."""
        workload = changed(workloads__0__traffic__requests_per_s=...)["workloads"][0]
        late, early = ({"at": f"2026-01-01T0{hour}:00:00Z", "requests_per_s": 1} for hour in (1, 0))
        series = {"kind": "series", "points": [late, early]}
        few = {"kind": "profile", "weekday_requests_per_s": [1.0] * 23}
        for demand, pointer, says in (
            (series, "/workloads/0/demand", "time does not go on"),
            (few, "/workloads/0/demand/weekday_requests_per_s", "at least 24 entries belong here, not 23"),
        ):
            body = {"workloads": [workload | {"demand": demand}], "limits": {"operation": {"max_configurations": 0}}}
            told = {e["pointer"]: e["detail"] for e in client.post("/v1/fleets", json=body).json()["errors"]}
            assert set(told) == {pointer, "/limits/operation/max_configurations"}, told
            assert says in told[pointer]

    def test_a_number_out_of_range_is_not_told_to_be_a_list(self, client: TestClient) -> None:
        """Where one for all or a list of one for each may stand."""
        body = changed(workloads__0__adapters={"count": 8, "rank": 1_000_000})
        (error,) = client.post("/v1/recommendations", json=body).json()["errors"]
        assert error == {
            "pointer": "/workloads/0/adapters/rank",
            "detail": "Input should be less than or equal to 4096",
        }


class TestManners:
    def test_what_was_stored_has_an_address(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=changed(limits__devices=["h100-sxm"]))
        assert client.get(answer.headers["Location"]).json()["id"] == answer.json()["id"]

    @pytest.mark.parametrize(
        ("path", "allowed"),
        [("/v1/llms", "GET, POST"), ("/v1/recommendations/rec_x", "GET"), ("/v1/estimates", "POST")],
    )
    def test_allow_lists_every_method_of_an_address(self, client: TestClient, path: str, allowed: str) -> None:
        answer = client.delete(path)
        assert answer.status_code == 405
        assert answer.headers["Allow"] == allowed

    def test_what_is_allowed_is_known_without_the_document(
        self, app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Which takes seconds to derive, and the loop that answers everybody would wait for it."""
        monkeypatch.setattr(app, "openapi", None)  # whoever needs it fails
        assert client.delete("/v1/llms").status_code == 405


class TestFilters:
    @pytest.mark.parametrize(
        ("address", "parameter", "says"),
        [
            ("/v1/devices?vendor=nvida", "vendor", "nvidia"),
            ("/v1/devices?family=hoper", "family", "hopper"),
            ("/v1/nodes?device=h1000-sxm", "device", "h100-sxm"),
            ("/v1/llms?family=lama", "family", "llama"),
            ("/v1/offers?provider=lamda", "provider", "lambda"),
            ("/v1/offers?region=us-est-1&provider=aws", "region", "us-east-1"),
        ],
    )
    def test_a_value_that_nothing_has_is_named_with_near_ones(
        self, client: TestClient, address: str, parameter: str, says: str
    ) -> None:
        answer = client.get(address)
        assert answer.status_code == 422, answer.text
        (error,) = answer.json()["errors"]
        assert error["parameter"] == parameter
        assert says in error["detail"].lower()

    def test_known_values_that_meet_nowhere_are_an_empty_list(self, client: TestClient) -> None:
        answer = client.get("/v1/offers", params={"provider": "tensorwave", "device": "h100-sxm"})
        assert (answer.status_code, answer.json()["items"]) == (200, [])
