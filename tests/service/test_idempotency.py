"""Idempotency-Key on every POST that stores: the first record again, or a conflict; one record of many at once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from service.fleets.tables import FleetTable
from service.idempotency.tables import StoredKeyTable
from service.jobs.lifecycle import sweep
from service.jobs.tables import JobTable
from service.jobs.worker import JobWorker
from service.measurements.tables import MeasurementTable
from service.recommendations.tables import RecommendationTable
from service.settings import Settings
from service.tco.tables import ComparisonTable
from tests.conftest import FixedClock
from tests.service.bodies import RECOMMENDATION, TINY_CONFIG, changed
from tests.service.tco_bodies import COMPARISON, RESULT, store_recommendation
from tests.service.test_fleets import FLEET
from tests.service.test_jobs import wait_for
from tests.service.test_measurements import FIGURES, WANTED
from tests.service.test_offers import OFFER, PRICE
from tests.service.test_training_plans import TUNE

SMALL = RECOMMENDATION | {
    "workloads": [changed(RECOMMENDATION, "workloads/0/llm", "llama-3.1-8b")["workloads"][0]],
    "limits": {"devices": ["l40s"], "providers": ["aws"]},
    "alternatives": 0,
}
TRAINING = {"jobs": [TUNE], "limits": {"devices": ["h100-sxm"]}}
OTHER = {
    "/v1/recommendations": changed(SMALL, "workloads/0/traffic/requests_per_s", 3.0),
    "/v1/fleets": changed(FLEET, "horizon/months", 24),
    "/v1/training/recommendations": TRAINING | {"limits": {"devices": ["a100-sxm-80"]}},
    "/v1/tco/comparisons": COMPARISON | {"horizon_months": 12},
    "/v1/llms": {"id": "tiny-keyed-2", "config": TINY_CONFIG},
    "/v1/offers": OFFER | {"instance": "keyed-2"},
    "/v1/measurements": WANTED | {"priority": 7},
    "/v1/device-measurements": FIGURES | {"driver": "580.159.05"},
}
BODIES = {
    "/v1/recommendations": SMALL,
    "/v1/fleets": FLEET,
    "/v1/training/recommendations": TRAINING,
    "/v1/tco/comparisons": COMPARISON,
    "/v1/llms": {"id": "tiny-keyed", "config": TINY_CONFIG},
    "/v1/offers": OFFER | {"instance": "keyed"},
    "/v1/measurements": WANTED,
    "/v1/device-measurements": FIGURES | {"driver": "580.159.06"},
}
AS_A_JOB = {"Prefer": "respond-async"}
LATER = {"/v1/fleets": AS_A_JOB}
"""A fleet takes a while: as a job it is stored, and found again, at once."""
counter = iter(range(1_000))


@pytest.fixture
def settings(seeded_url: str) -> Settings:
    """No job is run unless a test says so."""
    return Settings(database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=0)


@pytest.fixture
def key() -> dict[str, str]:
    return {"Idempotency-Key": f"keyed-{next(counter)}"}


@pytest.fixture(autouse=True)
def plan(app: FastAPI, client: TestClient) -> None:  # noqa: ARG001  it starts the application
    store_recommendation(app.state.database, "rec_plan", RESULT)


def withdraw(client: TestClient, offer: str) -> None:
    """Tests of a module may share a database: what was offered by one is gone for the next."""
    gone = {"usd_per_hour": None, "valid_from": "2026-01-02T00:00:00Z", "source": "the test is over"}
    assert client.post(f"/v1/offers/{offer}/prices", json=gone).status_code in (200, 201)


def rows(app: FastAPI, table: Any) -> int:
    with app.state.database.reading() as session:
        return len(session.exec(select(table.id)).all())


def at_once(ask: Callable[[], Any], number: int = 6) -> list[Any]:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_every_route_that_answers_201_takes_a_key(app: FastAPI) -> None:
    storing = {
        path: {p["name"] for p in item["post"].get("parameters", ())}
        for path, item in app.openapi()["paths"].items()
        if "201" in item.get("post", {}).get("responses", {}) or path.endswith("/import")
    }
    assert len(storing) >= 11
    assert {path for path, names in storing.items() if "Idempotency-Key" not in names} == set()


@pytest.mark.parametrize("path", BODIES)
def test_again_is_the_first_record_and_another_body_a_conflict(
    client: TestClient, key: dict[str, str], path: str
) -> None:
    headers = key | LATER.get(path, {})
    first, again = (client.post(path, json=BODIES[path], headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == ((202, 202) if path in LATER else (201, 200)), first.text
    assert again.json()["id"] == first.json()["id"]
    assert again.headers.get("Location") == first.headers.get("Location")
    spelled_out = BODIES[path] | {"price_as_of": None} if path == "/v1/recommendations" else BODIES[path]
    assert client.post(path, json=spelled_out, headers=headers).json()["id"] == first.json()["id"]
    refused = client.post(path, json=OTHER[path], headers=headers)
    assert refused.status_code == 409
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert key["Idempotency-Key"] in refused.json()["detail"]
    other = client.post(path, json=OTHER[path], headers=LATER.get(path))
    assert other.status_code in (201, 202), other.text
    assert other.json()["id"] != first.json()["id"]


def test_without_a_key_nothing_is_remembered(client: TestClient, app: FastAPI) -> None:
    before = rows(app, ComparisonTable)
    made = {client.post("/v1/tco/comparisons", json=COMPARISON).json()["id"] for _ in range(2)}
    assert rows(app, ComparisonTable) == before + 2 == before + len(made)


def test_one_key_at_two_addresses_is_a_conflict(client: TestClient, key: dict[str, str]) -> None:
    assert client.post("/v1/tco/comparisons", json=COMPARISON, headers=key).status_code == 201
    assert client.post("/v1/measurements", json=WANTED, headers=key).status_code == 409


def test_a_refused_request_leaves_the_key_free(client: TestClient, key: dict[str, str]) -> None:
    wrong = changed(SMALL, "workloads/0/llm", "llama-9")
    assert client.post("/v1/recommendations", json=wrong, headers=key).status_code == 422
    assert client.post("/v1/recommendations", json=SMALL, headers=key).status_code == 201


@pytest.mark.parametrize("wrong", ["", "x" * 201, "two words"])
def test_keys_that_are_none_are_refused(client: TestClient, wrong: str) -> None:
    answer = client.post("/v1/measurements", json=WANTED, headers={"Idempotency-Key": wrong})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"].lower() == "idempotency-key"


def test_each_token_has_keys_of_its_own(
    client: TestClient, key: dict[str, str], with_role: Callable[[str], dict[str, str]]
) -> None:
    one, other = (with_role("editor") for _ in range(2))
    first = client.post("/v1/measurements", json=WANTED, headers=key | one)
    assert client.post("/v1/measurements", json=WANTED | {"priority": 3}, headers=key | other).status_code == 201
    assert client.post("/v1/measurements", json=WANTED, headers=key | one).json()["id"] == first.json()["id"]


class TestAtOnce:
    @pytest.mark.parametrize(
        ("path", "table"),
        [
            ("/v1/tco/comparisons", ComparisonTable),
            ("/v1/measurements", MeasurementTable),
            ("/v1/recommendations", RecommendationTable),
        ],
    )
    def test_one_is_stored(self, client: TestClient, app: FastAPI, key: dict[str, str], path: str, table: Any) -> None:
        before = rows(app, table)
        answers = at_once(lambda: client.post(path, json=BODIES[path], headers=key))
        assert sorted(a.status_code for a in answers) == [200] * (len(answers) - 1) + [201]
        assert len({a.json()["id"] for a in answers}) == 1
        assert rows(app, table) == before + 1

    def test_one_job_is_queued(self, client: TestClient, app: FastAPI, key: dict[str, str]) -> None:
        before = rows(app, JobTable)
        headers = key | LATER["/v1/fleets"]
        answers = at_once(lambda: client.post("/v1/fleets", json=FLEET, headers=headers))
        assert {a.status_code for a in answers} == {202}
        assert len({a.json()["id"] for a in answers}) == 1
        assert rows(app, JobTable) == before + 1

    def test_of_two_bodies_one_is_stored(self, client: TestClient, app: FastAPI, key: dict[str, str]) -> None:
        before = rows(app, MeasurementTable)
        priorities = iter(range(4))
        answers = at_once(
            lambda: client.post("/v1/measurements", json=WANTED | {"priority": next(priorities)}, headers=key), 4
        )
        assert sorted(a.status_code for a in answers) == [201, 409, 409, 409]
        assert rows(app, MeasurementTable) == before + 1


class TestPrices:
    def test_a_step_that_was_corrected_since_is_still_the_first_one(
        self, client: TestClient, key: dict[str, str], clock: FixedClock
    ) -> None:
        offer = client.post("/v1/offers", json=OFFER | {"instance": "keyed-step"}).json()["id"]
        path = f"/v1/offers/{offer}/prices"
        first = client.post(path, json=PRICE, headers=key)
        clock.advance(hours=1)
        assert client.post(path, json=PRICE | {"usd_per_hour": "13.0", "correction": True}).status_code == 201
        assert client.post(path, json=PRICE).status_code == 409
        again = client.post(path, json=PRICE, headers=key)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json()
        withdraw(client, offer)

    def test_a_list_is_reported_as_the_first_time(self, client: TestClient, key: dict[str, str]) -> None:
        offer = client.post("/v1/offers", json=OFFER | {"instance": "keyed-list", "region": "dc9"}).json()["id"]
        body = {
            "payload": f"offer,usd_per_hour\n{offer},9.0\n", "valid_from": "2026-01-01T00:00:00Z", "source": "our list",
        }  # fmt: skip
        assert client.post("/v1/offers/import", json=body | {"dry_run": True}, headers=key).json()["appended"] == 0
        first, again = (client.post("/v1/offers/import", json=body, headers=key) for _ in range(2))
        assert first.status_code == again.status_code == 200, first.text
        assert first.json()["appended"] == 1
        assert again.json() == first.json()
        assert client.post("/v1/offers/import", json=body).json()["appended"] == 0
        other = body | {"source": "another list"}
        assert client.post("/v1/offers/import", json=other, headers=key).status_code == 409
        withdraw(client, offer)


class TestJobs:
    def test_a_job_that_is_done_is_answered_with_its_record(
        self, client: TestClient, app: FastAPI, settings: Settings, key: dict[str, str], clock: FixedClock
    ) -> None:
        body = SMALL | {"time_limit_s": 300}  # of the clock on the wall, in the worker's process
        queued = client.post("/v1/recommendations", json=body, headers=key | AS_A_JOB)
        assert queued.status_code == 202
        worker = JobWorker(app.state.database, settings, clock, 1)
        worker.start()
        try:
            done = wait_for(client, queued.json()["id"], "succeeded", "failed")
        finally:
            worker.close()
        again = client.post("/v1/recommendations", json=body, headers=key)
        assert again.status_code == 200, again.text
        assert done["result"] == again.headers["Location"] == f"/v1/recommendations/{again.json()['id']}"

    def test_a_cancelled_job_keeps_its_key_until_it_is_forgotten(
        self, client: TestClient, app: FastAPI, settings: Settings, key: dict[str, str], clock: FixedClock
    ) -> None:
        queued = client.post("/v1/fleets", json=FLEET, headers=key | AS_A_JOB).json()
        client.post(f"/v1/jobs/{queued['id']}/cancel")
        again = client.post("/v1/fleets", json=FLEET, headers=key | AS_A_JOB)
        assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, queued["id"], "cancelled")
        before = rows(app, FleetTable)
        clock.advance(days=settings.job_retention_days + 1)
        with app.state.database.writing() as session:
            sweep(session, settings, clock())
        with app.state.database.reading() as session:
            kept = session.exec(select(StoredKeyTable.key).where(StoredKeyTable.resource == queued["id"])).all()
        assert kept == []
        assert client.post("/v1/fleets", json=FLEET, headers=key | AS_A_JOB).json()["id"] != queued["id"]
        assert rows(app, FleetTable) == before
