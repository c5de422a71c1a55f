"""Every body of the OpenAPI document has an example, and posting it works."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.main import create_app
from service.settings import Settings
from service.wire.examples import examples

REFERENCE = "#/components/schemas/"
SINGLE = {"/v1/recommendations/{recommendation_id}/why-not", "/v1/recommendations/{recommendation_id}/near-optimal",
          "/v1/recommendations/{recommendation_id}/price-curve", "/v1/recommendations/{recommendation_id}/pareto"}  # fmt: skip
"""Questions: each takes seconds, so they are asked of one plan."""
LEASED = ("heartbeat", "complete", "fail")


@pytest.fixture
def settings(seeded_url: str) -> Settings:
    return Settings(database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=0)


def bodies(app: FastAPI) -> dict[tuple[str, str], dict[str, Any]]:
    """The media type of every body, by method and path."""
    return {
        (method, path): route["requestBody"]["content"]["application/json"]
        for path, item in app.openapi()["paths"].items()
        for method, route in item.items()
        if "requestBody" in route
    }


def example(app: FastAPI, path: str, method: str = "post") -> Any:
    return bodies(app)[method, path]["example"]


def test_every_body_has_one_and_none_is_left_over() -> None:
    found = bodies(create_app(Settings()))
    assert {path for path, media in found.items() if "example" not in media} == set()
    assert {media["schema"]["$ref"].removeprefix(REFERENCE) for media in found.values()} == set(examples())


def test_fields_have_examples_and_keep_their_descriptions() -> None:
    schemas = create_app(Settings()).openapi()["components"]["schemas"]
    assert schemas["LognormalLength"]["properties"]["p95"]["examples"] == [4000]
    assert schemas["OfferIn"]["properties"]["node"]["examples"] == ["aws-p5.48xlarge"]
    with_one = {
        f"{model}.{name}": about
        for model, schema in schemas.items()
        for name, about in schema.get("properties", {}).items()
        if "examples" in about
    }
    assert len(with_one) > 100
    assert all(about["description"] for about in with_one.values())


class TestPosted:
    def test_catalog_and_measurements(self, client: TestClient, app: FastAPI) -> None:
        offer = client.post("/v1/offers", json=example(app, "/v1/offers"))
        assert offer.status_code == 201, offer.text
        price = client.post(
            f"/v1/offers/{offer.json()['id']}/prices", json=example(app, "/v1/offers/{offer_id}/prices")
        )
        assert price.status_code == 201, price.text
        gone = {"usd_per_hour": None, "valid_from": "2026-06-02T00:00:00Z", "source": "the test is over"}
        assert client.post(f"/v1/offers/{offer.json()['id']}/prices", json=gone).status_code == 201
        listed = client.post("/v1/offers/import", json=example(app, "/v1/offers/import"))
        assert listed.status_code == 200, listed.text
        assert listed.json()["quotes"] == 1
        assert listed.json()["skipped"] == []
        for path in ("/v1/llms", "/v1/device-measurements"):
            made = client.post(path, json=example(app, path))
            assert made.status_code == 201, made.text
        assert made.json()["status"] == "accepted"
        agent = client.put("/v1/agents/gpu-host-1", json=example(app, "/v1/agents/{agent_id}", "put"))
        assert agent.status_code == 200, agent.text

    def test_benchmarks(self, client: TestClient, app: FastAPI) -> None:
        run = client.post("/v1/benchmarks", json=example(app, "/v1/benchmarks"))
        assert run.status_code == 201, run.text
        imported = client.post("/v1/benchmarks/import", json=example(app, "/v1/benchmarks/import"))
        assert imported.status_code == 201, imported.text
        assert [run.json()["status"], imported.json()["status"]] == ["accepted", "accepted"], run.text + imported.text
        path = "/v1/benchmarks/{benchmark_id}/"
        for decision in ("retract", "release"):
            body = example(app, path + decision)
            assert client.post(f"/v1/benchmarks/{run.json()['id']}/{decision}", json=body).status_code == 200

    def test_a_measurement_is_queued_taken_and_ended(self, client: TestClient, app: FastAPI) -> None:
        run = client.post("/v1/benchmarks", json=example(app, "/v1/benchmarks")).json()
        for ending in ("complete", "fail"):
            assert client.post("/v1/measurements", json=example(app, "/v1/measurements")).status_code == 201
            taken = client.post("/v1/measurements/lease", json=example(app, "/v1/measurements/lease"))
            assert taken.status_code == 200, taken.text
            own = {"lease": taken.json()["lease"]}
            for step in ("heartbeat", ending):
                path = f"/v1/measurements/{{measurement_id}}/{step}"
                body = example(app, path) | own | ({"benchmarks": [run["id"]]} if step == "complete" else {})
                done = client.post(path.format(measurement_id=taken.json()["measurement"]["id"]), json=body)
                assert done.status_code == 200, done.text

    def test_an_estimate_and_a_fleet(self, client: TestClient, app: FastAPI) -> None:
        (one,) = client.post("/v1/estimates", json=example(app, "/v1/estimates")).json()["estimates"]
        assert one["outcome"] == "estimated", one
        queued = client.post("/v1/fleets", json=example(app, "/v1/fleets"), headers={"Prefer": "respond-async"})
        assert queued.status_code == 202, queued.text

    def test_training(self, client: TestClient, app: FastAPI) -> None:
        (run,) = client.post("/v1/training/estimates", json=example(app, "/v1/training/estimates")).json()["estimates"]
        assert run["outcome"] == "estimated", run
        plan = client.post("/v1/training/recommendations", json=example(app, "/v1/training/recommendations")).json()
        assert plan["outcome"] == "optimal", plan["conflicts"]
        why_not = f"/v1/training/recommendations/{plan['id']}/why-not"
        asked = client.post(why_not, json=example(app, "/v1/training/recommendations/{plan_id}/why-not"))
        assert asked.status_code == 200, asked.text
        measured = client.post("/v1/benchmarks/training-runs", json=example(app, "/v1/benchmarks/training-runs"))
        assert (measured.status_code, measured.json()["status"]) == (201, "accepted"), measured.text

    def test_a_trace(self, client: TestClient, app: FastAPI) -> None:
        made = client.post("/v1/traces", json=example(app, "/v1/traces"))
        assert made.status_code == 201, made.text
        assert made.json()["requests"] == 2

    def test_a_comparison(self, client: TestClient, app: FastAPI) -> None:
        made = client.post("/v1/tco/comparisons", json=example(app, "/v1/tco/comparisons"))
        assert made.status_code == 201, made.text
        assert [a["name"] for a in made.json()["alternatives"]] == ["rent", "buy", "API"]

    def test_a_plan_and_questions_about_it(self, client: TestClient, app: FastAPI) -> None:
        made = client.post("/v1/recommendations", json=example(app, "/v1/recommendations"))
        assert made.status_code == 201, made.text
        assert made.json()["outcome"] == "optimal", made.json()["conflicts"]
        for path in sorted(SINGLE):
            asked = client.post(path.format(recommendation_id=made.json()["id"]), json=example(app, path))
            assert asked.status_code == 200, asked.text


def test_every_route_with_a_body_is_posted_here() -> None:
    posted = SINGLE | {
        "/v1/offers", "/v1/offers/{offer_id}/prices", "/v1/offers/import", "/v1/llms", "/v1/device-measurements",
        "/v1/agents/{agent_id}", "/v1/benchmarks", "/v1/benchmarks/import", "/v1/benchmarks/{benchmark_id}/retract",
        "/v1/benchmarks/{benchmark_id}/release", "/v1/measurements", "/v1/measurements/lease", "/v1/estimates",
        "/v1/fleets", "/v1/tco/comparisons", "/v1/recommendations", "/v1/training/estimates", "/v1/training/recommendations", "/v1/traces",
        "/v1/training/recommendations/{plan_id}/why-not", "/v1/benchmarks/training-runs",
    } | {f"/v1/measurements/{{measurement_id}}/{step}" for step in LEASED}  # fmt: skip
    assert {path for _, path in bodies(create_app(Settings()))} == posted
