"""Bad input gets a problem document that names the field; a client's mistake is never a 5xx."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import ESTIMATE, RECOMMENDATION, changed

JSON = {"content-type": "application/json"}


def post(client: TestClient, path: str, text: str | bytes) -> Any:
    return client.post(path, content=text, headers=JSON)


WRONG: list[tuple[str, Any, str, str]] = [
    ("workloads/0/llm", "llama-3.1-70", "/workloads/0/llm", "did you mean 'llama-3.1-70b'"),
    (
        "workloads/0/targets/ttft_ms",
        {"p95": 0},
        "/workloads/0/targets/ttft_ms/p95",
        "greater than or equal to 0.000000001",
    ),
    (
        "workloads/0/targets/ttft_ms",
        {"p95": -5},
        "/workloads/0/targets/ttft_ms/p95",
        "greater than or equal to 0.000000001",
    ),
    ("workloads/0/targets/ttft_ms", {"p95": float("nan")}, "/workloads/0/targets/ttft_ms/p95", "finite"),
    ("workloads/0/targets/ttft_ms", {"p95": float("inf")}, "/workloads/0/targets/ttft_ms/p95", "finite"),
    ("workloads/0/targets/ttft_ms", {"p95": 1e308}, "/workloads/0/targets/ttft_ms/p95", "1000000000"),
    ("workloads/0/targets/ttft_ms", {"p97": 5}, "/workloads/0/targets/ttft_ms/p97", "mean, p50, p90, p95, p99"),
    ("workloads/0/targets/latency", {"p95": 5}, "/workloads/0/targets/latency", "unknown field"),
    (
        "workloads/0/traffic/requests_per_s",
        0,
        "/workloads/0/traffic/requests_per_s",
        "greater than or equal to 0.000000001",
    ),
    ("workloads/0/traffic/requests_per_s", 1e308, "/workloads/0/traffic/requests_per_s", "1000000000"),
    ("workloads/0/context_tokens", 10_000_000, "/workloads/0/context_tokens", "131072"),
    ("workloads/0/precision", {"weights": ["fp9"]}, "/workloads/0/precision/weights/0", "did you mean 'fp8'"),
    ("workloads/0/utilisation_limit_fraction", 1.5, "/workloads/0/utilisation_limit_fraction", "less than or equal"),
    ("workloads", [], "/workloads", "at least 1"),
    (
        "workloads/0/traffic/prompt_tokens",
        {"token": 5},
        "/workloads/0/traffic/prompt_tokens",
        "'distribution' is required",
    ),
    ("limits", {"devices": ["h200-smx"]}, "/limits/devices/0", "h200-sxm"),
    ("limits", {"providers": ["amazon-web"]}, "/limits/providers/0", "no provider"),
    ("limits", {"regions": ["us-east-11"]}, "/limits/regions/0", "us-east-1"),
    ("limits", {"commitments": ["on-demand"]}, "/limits/commitments/0", "did you mean 'on_demand'"),
    ("limits", {"offers": {"aws:p5:x:y": {"max_nodes": 1}}}, "/limits/offers/aws:p5:x:y", "no offer"),
    ("limits", {"max_usd_per_hour": "cheap"}, "/limits/max_usd_per_hour", "decimal"),
    ("limits", {"max_usd_per_hour": 12.5}, "/limits/max_usd_per_hour", "string"),
    ("objective", "speed", "/objective", "known: cost, throughput, power"),
    ("objective", "throughput", "/limits", "max_usd_per_hour"),
    ("time_limit_s", 0, "/time_limit_s", "greater than or equal to 0.000000001"),
    ("time_limit_s", True, "/time_limit_s", "valid number"),
    ("time_limit_s", "5", "/time_limit_s", "valid number"),
    ("alternatives", True, "/alternatives", "valid integer"),
    ("alternatives", "1", "/alternatives", "valid integer"),
    ("workloads/0/traffic/requests_per_s", True, "/workloads/0/traffic/requests_per_s", "valid number"),
    ("workloads/0/targets/ttft_ms", {"p95": "800"}, "/workloads/0/targets/ttft_ms/p95", "valid number"),
    ("limits", {"max_nodes_per_offer": True}, "/limits/max_nodes_per_offer", "valid integer"),
    ("limits", {"max_usd_per_hour": 12}, "/limits/max_usd_per_hour", "string"),
    ("limits", {"partitions": "yes"}, "/limits/partitions", "boolean"),
    ("limits", {"sourcing": {"named_place": 1}}, "/limits/sourcing/named_place", "boolean"),
    ("price_as_of", 1_795_000_000, "/price_as_of", "2026-11-21"),
    ("price_as_of", "1795000000", "/price_as_of", "2026-11-21"),
    ("price_as_of", "yesterday", "/price_as_of", "datetime"),
    ("limit", {}, "/limit", "unknown field"),
]


class TestPostRecommendation:
    @pytest.mark.parametrize(("path", "value", "pointer", "says"), WRONG, ids=lambda v: str(v)[:40])
    def test_each_wrong_field_is_named(
        self, client: TestClient, path: str, value: Any, pointer: str, says: str
    ) -> None:
        answer = post(client, "/v1/recommendations", json.dumps(changed(RECOMMENDATION, path, value)))
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        errors = answer.json()["errors"]
        assert any(e["pointer"] == pointer and says in e["detail"] for e in errors), errors

    def test_every_wrong_name_is_reported_at_once(self, client: TestClient) -> None:
        body = changed(RECOMMENDATION, "workloads/0/llm", "lama-3.1-70b")
        body["limits"] = {"devices": ["h200-sxm", "h1000"], "regions": ["mars"]}
        answer = client.post("/v1/recommendations", json=body)
        assert [e["pointer"] for e in answer.json()["errors"]] == [
            "/workloads/0/llm", "/limits/devices/1", "/limits/regions/0",
        ]  # fmt: skip

    def test_a_list_of_wrong_entries_is_not_called_empty(self, client: TestClient) -> None:
        response = client.post("/v1/recommendations", json=changed(RECOMMENDATION, "workloads/0/traffic", {}))
        assert response.status_code == 422
        assert "/workloads" not in [e["pointer"] for e in response.json()["errors"]]

    def test_ten_thousand_workloads_name_the_limit(self, client: TestClient) -> None:
        body = {"workloads": [{"name": "x"}] * 10_000}
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert any(e["pointer"] == "/workloads" and "50" in e["detail"] for e in answer.json()["errors"])

    def test_two_workloads_of_one_name_are_refused(self, client: TestClient) -> None:
        body = {"workloads": RECOMMENDATION["workloads"] * 2}
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert "'chat'" in answer.json()["detail"]

    def test_a_lognormal_that_cannot_be_is_refused(self, client: TestClient) -> None:
        body = changed(
            RECOMMENDATION, "workloads/0/traffic/prompt_tokens", {"distribution": "lognormal", "mean": 100, "p95": 9000}
        )
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert "no lognormal" in answer.json()["detail"]

    def test_nothing_is_stored(self, client: TestClient) -> None:
        client.post("/v1/recommendations", json=changed(RECOMMENDATION, "time_limit_s", 0))
        assert client.get("/v1/recommendations").json()["items"] == []

    def test_a_whole_number_may_be_written_with_a_point(self, client: TestClient) -> None:
        """JSON does not tell 1.0 from 1; encoders of floating point write it so. Last, since it stores a plan."""
        answer = post(client, "/v1/recommendations", json.dumps(changed(RECOMMENDATION, "alternatives", 1.0)))
        assert answer.status_code in (200, 201), answer.text
        assert answer.json()["request"]["alternatives"] == 1


class TestBodies:
    @pytest.mark.parametrize(
        "text",
        [b"", b"{", b"not json", b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe\x00", b'{"workloads": NaN', b"\x00"],
        ids=lambda b: repr(b[:10]),
    )
    @pytest.mark.parametrize("path", ["/v1/recommendations", "/v1/estimates", "/v1/llms", "/v1/offers"])
    def test_what_is_not_json_is_400(self, client: TestClient, path: str, text: bytes) -> None:
        answer = post(client, path, text)
        assert answer.status_code in (400, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize(
        "said", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", None]
    )
    @pytest.mark.parametrize("path", ["/v1/recommendations", "/v1/estimates", "/v1/traces", "/v1/offers/import"])
    def test_a_body_that_does_not_say_it_is_json_is_415(self, client: TestClient, path: str, said: str | None) -> None:
        """It was called a dictionary that is not valid. curl says a form unless told otherwise."""
        headers = {} if said is None else {"content-type": said}
        answer = client.post(path, content=json.dumps(RECOMMENDATION).encode(), headers=headers)
        assert answer.status_code == 415, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["accept"] == "application/json"
        assert "send `Content-Type: application/json`" in answer.json()["detail"]
        assert (said or "no Content-Type") in answer.json()["detail"]
        assert client.get(answer.json()["type"]).status_code == 200

    @pytest.mark.parametrize(
        "said", ["application/json; charset=utf-8", "Application/JSON", "application/problem+json"]
    )
    def test_any_name_of_json_is_read(self, client: TestClient, said: str) -> None:
        body = json.dumps({"estimates": []}).encode()
        assert client.post("/v1/estimates", content=body, headers={"content-type": said}).status_code == 422

    @pytest.mark.parametrize("text", ["null", "[]", "1", '"text"', "true"])
    def test_json_that_is_no_object_is_422(self, client: TestClient, text: str) -> None:
        assert post(client, "/v1/recommendations", text).status_code == 422

    def test_fifty_megabytes_are_413(self, client: TestClient) -> None:
        answer = post(client, "/v1/recommendations", b" " * 50_000_000)
        assert answer.status_code == 413
        assert "2000000" in answer.json()["detail"]

    def test_a_body_without_length_is_counted(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", content=(b" " * 100_000 for _ in range(30)), headers=JSON)
        assert answer.status_code == 413

    def test_a_body_at_the_limit_is_read(self, client: TestClient) -> None:
        assert post(client, "/v1/recommendations", b" " * 1_999_998 + b"{}").status_code == 422


class TestEstimates:
    def test_an_unknown_name_alone_is_refused(self, client: TestClient) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [changed(ESTIMATE, "device", "h2000")]})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/estimates/0/device"
        assert "h200-sxm" in answer.json()["errors"][0]["detail"]

    def test_too_many_name_the_limit(self, client: TestClient) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [{}] * 1001})
        assert answer.status_code == 422
        assert "1000" in answer.text

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("layout/tensor_parallel", 0),
            ("layout/tensor_paralel", 2),
            ("engine", {"memory_fraction": 1.5}),
            ("load/concurrency", 0),
            ("load/kind", "burst"),
            ("traffic/prompt_tokens/low", 2000),
            ("traffic/prompt_tokens/distribution", "normal"),
            ("traffic/output_tokens", {"distribution": "histogram", "histogram": [{"tokens": 5, "share": 0.4}]}),
        ],
    )
    def test_each_wrong_field_is_named(self, client: TestClient, path: str, value: Any) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [changed(ESTIMATE, path, value)]})
        assert answer.status_code == 422
        pointer = answer.json()["errors"][0]["pointer"]
        assert pointer.startswith("/estimates/0/" + path.split("/")[0])


class TestAddresses:
    def test_unknown_is_a_problem(self, client: TestClient) -> None:
        answer = client.get("/v1/nothing")
        assert answer.status_code == 404
        assert answer.json()["type"] == "/problems/not-found"

    def test_wrong_method_lists_the_right_ones(self, client: TestClient) -> None:
        answer = client.delete("/v1/devices")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET"

    def test_every_problem_type_is_explained(self, client: TestClient) -> None:
        shown = client.get(client.get("/v1/nothing").json()["type"])
        assert shown.status_code == 200
        assert shown.json()["status"] == 404

    @pytest.mark.parametrize("odd", ["%00", "a%2Fb", "' OR 1=1 --", "x" * 3000, "..%2f..", "%F0%9F%92%A9"])
    @pytest.mark.parametrize("noun", ["devices", "nodes", "llms", "offers", "recommendations"])
    def test_odd_ids_are_404(self, client: TestClient, noun: str, odd: str) -> None:
        assert client.get(f"/v1/{noun}/{odd}").status_code in (404, 414, 422)
