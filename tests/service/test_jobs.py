"""Jobs over HTTP: long requests, their states, cancellation, limits."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.testclient import TestClient
from sqlmodel import select

from service.access import Caller, Role
from service.jobs.create import enqueue
from service.jobs.stream import Pace, event_stream
from service.jobs.worker import JobWorker, Slot, sweep_once
from service.main import create_app
from service.recommendations.tables import RecommendationTable
from service.settings import Settings
from tests.conftest import FixedClock
from tests.service.bodies import RECOMMENDATION, changed
from tests.service.conftest import LOOPBACK
from tests.service.given_kinds import GIVEN

GIVEN_KINDS = "tests.service.given_kinds"
ME = Caller("127.0.0.1", Role.editor)
WITHIN_S = 120.0


@pytest.fixture
def settings(seeded_url: str) -> Settings:
    """No job is run unless a test says so."""
    return Settings(
        database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=0, job_lease_s=5, job_most_attempts=2
    )


@pytest.fixture
def queue(app: FastAPI, settings: Settings, clock: FixedClock) -> Callable[..., str]:
    """Queues a job of the given kind; its id."""

    def add(caller: Caller = ME, **request: Any) -> str:
        with app.state.database.writing() as session:
            return enqueue(
                session, GIVEN, GIVEN.request(**request).model_dump(mode="json"), caller, settings, clock()
            ).id

    return add


@pytest.fixture
def working(app: FastAPI, client: TestClient, settings: Settings, clock: FixedClock) -> Iterator[None]:  # noqa: ARG001
    """A worker for the given kind."""
    with worker(app, settings, clock):
        yield


@contextlib.contextmanager
def worker(app: FastAPI, settings: Settings, clock: FixedClock) -> Iterator[JobWorker]:
    one = JobWorker(app.state.database, settings, clock, 1, GIVEN_KINDS)
    one.start()
    try:
        yield one
    finally:
        one.close()


def wait_for(client: TestClient, job_id: str, *states: str) -> dict[str, Any]:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        job: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").json()
        if job["state"] in states:
            return job
        time.sleep(0.02)
    raise AssertionError(f"{job['state']}, not {states}: {job}")


def results(app: FastAPI, tag: str) -> int:
    with app.state.database.reading() as session:
        return sum(row.request.get("tag") == tag for row in session.exec(select(RecommendationTable)).all())


class TestRecommendations:
    def test_a_plan_as_a_job_is_the_plan(self, seeded_url: str, clock: FixedClock) -> None:
        settings = Settings(database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=1)
        # Few devices and much time: every question about the plan is answered, however busy the machine is.
        limits = {"devices": ["l40s", "h100-sxm"], "providers": ["hyperstack", "nebius", "verda"]}
        body = changed(RECOMMENDATION, "workloads/0/llm", "llama-3.1-8b") | {"limits": limits, "time_limit_s": 60}
        with TestClient(create_app(settings, clock), base_url="http://localhost", client=LOOPBACK) as client:
            answer = client.post("/v1/recommendations", json=body, headers={"Prefer": "respond-async"})
            assert answer.status_code == 202
            assert answer.headers["preference-applied"] == "respond-async"
            assert answer.json()["state"] == "queued"
            assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
            job = wait_for(client, answer.json()["id"], "succeeded", "failed")
            assert job["problem"] is None
            assert job["progress"]["usd_per_hour"] is not None
            later = client.get(job["result"]).json()
            now = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"}).json()
            for own in ("id", "solve"):
                later.pop(own), now.pop(own)
            assert later == now

    def test_a_mistake_is_answered_at_once(self, client: TestClient) -> None:
        later = {"Prefer": "respond-async"}
        wrong = changed(RECOMMENDATION, "workloads/0/llm", "llama-9")
        assert client.post("/v1/recommendations", json=wrong, headers=later).status_code == 422
        short = changed(RECOMMENDATION, "workloads/0/context_tokens", 10)
        short = changed(short, "workloads/0/over_context", "refuse")
        answer = client.post("/v1/recommendations", json=short, headers=later)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/workloads/0/context_tokens"

    @pytest.mark.parametrize(
        ("change", "prefer", "status"),
        [
            (("time_limit_s", 60), "", 202),
            (("time_limit_s", 60), "handling=lenient; x", 202),
            (("gap_fraction", 0.02), "wait=5, respond-async", 202),
            (("time_limit_s", 60), "wait=60", 201),
            (("time_limit_s", 60), "wait=59", 202),
        ],
    )
    def test_what_may_take_long_is_answered_later(
        self, client: TestClient, change: tuple[str, Any], prefer: str, status: int
    ) -> None:
        body = changed(changed(RECOMMENDATION, *change), "limits", {"devices": ["h200-sxm"]}) | {"alternatives": 0}
        answer = client.post("/v1/recommendations", json=body, headers={"Prefer": prefer})
        assert answer.status_code == status
        if status == 202:
            assert client.post(f"/v1/jobs/{answer.json()['id']}/cancel").json()["state"] == "cancelled"


class TestStates:
    def test_succeeds_or_fails_and_then_cannot_be_cancelled(
        self,
        client: TestClient,
        app: FastAPI,
        queue: Callable[..., str],
        working: None,  # noqa: ARG002
    ) -> None:
        job = wait_for(client, queue(tag="one", busy_s=0.6), "succeeded")
        assert job["attempts"] == 1
        assert job["progress"]["stage"] == "working"
        assert job["progress"]["bound_usd_per_hour"] is None  # a solver's infinity is no figure
        assert client.get("/v1/recommendations").json()["items"][0]["id"] in job["result"]
        assert results(app, "one") == 1
        refused = wait_for(client, queue(refused=True), "failed")
        assert refused["problem"]["status"] == 503
        assert refused["problem"]["detail"] == "no plan in the time given"
        assert refused["attempts"] == 1
        broken = wait_for(client, queue(broken=True), "failed")
        assert broken["problem"]["type"] == "/problems/internal"
        assert "ZeroDivision" not in str(broken)
        dead = wait_for(client, queue(dies=True), "failed")
        assert dead["attempts"] == 2
        assert dead["problem"]["type"] == "/problems/worker-lost"
        assert client.get(dead["problem"]["type"]).status_code == 200
        for ended in (job, refused, dead):
            answer = client.post(f"/v1/jobs/{ended['id']}/cancel")
            assert answer.status_code == 409
            assert ended["state"] in answer.json()["detail"]

    def test_expires_when_nobody_takes_it(
        self, client: TestClient, app: FastAPI, queue: Callable[..., str], settings: Settings, clock: FixedClock
    ) -> None:
        job_id = queue(tag="late")
        clock.advance(seconds=settings.job_expiry_s + 1)
        with worker(app, settings, clock):
            assert wait_for(client, job_id, "expired", "succeeded")["state"] == "expired"
        assert client.post(f"/v1/jobs/{job_id}/cancel").status_code == 409
        assert results(app, "late") == 0

    def test_is_forgotten_after_its_time_and_its_result_is_not(
        self, client: TestClient, app: FastAPI, queue: Callable[..., str], settings: Settings, clock: FixedClock
    ) -> None:
        with worker(app, settings, clock):
            job = wait_for(client, queue(tag="kept"), "succeeded")
        clock.advance(days=settings.job_retention_days + 1)
        while sweep_once(app.state.database, settings, clock()):
            pass
        assert client.get(f"/v1/jobs/{job['id']}").status_code == 404
        assert results(app, "kept") == 1

    def test_lists_filter(self, client: TestClient, queue: Callable[..., str]) -> None:
        first, second = queue(), queue()
        client.post(f"/v1/jobs/{first}/cancel")
        listed = client.get("/v1/jobs", params={"state": "queued", "kind": "given", "limit": 1}).json()
        assert [job["id"] for job in listed["items"]] == [second]
        assert client.get("/v1/jobs", params={"state": "lost"}).status_code == 422
        ids = [job["id"] for job in client.get("/v1/jobs").json()["items"]]
        assert ids == sorted(ids, reverse=True)
        assert {first, second} <= set(ids)

    @pytest.mark.parametrize("job_id", ["job_none", "rec_01", "%00", "x" * 500])
    def test_unknown_ones_are_not_found(self, client: TestClient, job_id: str) -> None:
        for path in (job_id, f"{job_id}/events"):
            assert client.get(f"/v1/jobs/{path}").status_code in (404, 422)
        assert client.post(f"/v1/jobs/{job_id}/cancel").status_code in (404, 422)


class TestCancel:
    def test_a_queued_job_twice(self, client: TestClient, app: FastAPI, queue: Callable[..., str]) -> None:
        job_id = queue(tag="never")
        for _ in range(2):
            answer = client.post(f"/v1/jobs/{job_id}/cancel")
            assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert results(app, "never") == 0

    def test_a_running_job_stops_within_a_second(
        self,
        client: TestClient,
        app: FastAPI,
        queue: Callable[..., str],
        working: None,  # noqa: ARG002
    ) -> None:
        job_id = queue(tag="stopped", busy_s=120)
        wait_for(client, job_id, "running")
        while client.get(f"/v1/jobs/{job_id}").json()["progress"] is None:
            time.sleep(0.02)  # it has begun to work
        answer = client.post(f"/v1/jobs/{job_id}/cancel")
        assert (answer.status_code, answer.json()["cancel_requested"]) == (202, True)
        again = client.post(f"/v1/jobs/{job_id}/cancel")
        assert again.status_code in (200, 202)
        wait_for(client, job_id, "cancelled")  # long before the work would have ended
        assert client.post(f"/v1/jobs/{job_id}/cancel").status_code == 200
        assert results(app, "stopped") == 0
        after = queue(tag="after")
        assert wait_for(client, after, "succeeded")["attempts"] == 1  # the worker goes on

    def test_readers_cancel_their_own_only(
        self, client: TestClient, queue: Callable[..., str], with_role: Callable[[str], dict[str, str]]
    ) -> None:
        other = queue(caller=Caller("tok_somebody", Role.reader))
        reader, editor = with_role("reader"), with_role("editor")
        later = reader | {"Prefer": "respond-async"}
        own = client.post("/v1/recommendations", json=RECOMMENDATION, headers=later).json()["id"]
        assert client.post(f"/v1/jobs/{own}/cancel", headers=reader).status_code == 200
        assert client.post(f"/v1/jobs/{other}/cancel", headers=reader).status_code == 403
        assert client.get(f"/v1/jobs/{other}", headers=reader).status_code == 200
        assert client.post(f"/v1/jobs/{other}/cancel", headers=editor).status_code == 200
        assert client.get(f"/v1/jobs/{other}").status_code == 401


class TestEvents:
    def test_resume_where_the_client_was(self, client: TestClient, queue: Callable[..., str]) -> None:
        job_id = queue()
        client.post(f"/v1/jobs/{job_id}/cancel")
        address = f"/v1/jobs/{job_id}/events"
        whole = client.get(address)
        assert whole.headers["content-type"].startswith("text/event-stream")
        assert [line for line in whole.text.splitlines() if line.startswith("id")] == ["id: 1", "id: 2"]
        rest = client.get(address, headers={"Last-Event-ID": "1"}).text
        assert "id: 1" not in rest
        assert '"state": "cancelled"' in rest
        assert client.get(address, headers={"Last-Event-ID": "2"}).status_code == 204

    @pytest.mark.parametrize("given", ["3", "-1", "x", "1.0", "²", "9" * 30])
    def test_an_id_of_no_event_is_refused(self, client: TestClient, queue: Callable[..., str], given: str) -> None:
        headers = {"Last-Event-ID": given.encode()}
        answer = client.get(f"/v1/jobs/{queue()}/events", headers=headers)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["parameter"] == "last-event-id"

    def test_come_as_they_happen_with_heartbeats_between(
        self, client: TestClient, app: FastAPI, queue: Callable[..., str]
    ) -> None:
        job_id = queue()
        told: list[str] = []

        async def listen() -> None:
            pace = Pace(look_every_s=0.02, heartbeat_every_s=0.2)
            async for said in event_stream(app.state.database, job_id, 0, lambda: False, pace):
                told.append(said)
                if said.startswith(":") and not any("cancelled" in one for one in told):
                    await run_in_threadpool(client.post, f"/v1/jobs/{job_id}/cancel")

        asyncio.run(listen())
        assert told[0].startswith("retry")
        assert [said.partition("\n")[0] for said in told[1:]] == ["id: 1", ": working", "id: 2"]

    def test_end_when_the_service_does(self, app: FastAPI, client: TestClient, queue: Callable[..., str]) -> None:  # noqa: ARG002
        async def listen() -> list[str]:
            return [said async for said in event_stream(app.state.database, queue(), 0, lambda: True)]

        assert len(asyncio.run(listen())) == 1


class TestLimits:
    def test_unfinished_jobs_are_limited(self, seeded_url: str, clock: FixedClock) -> None:
        settings = Settings(database_url=seeded_url, jobs_in_service=0, job_queue_per_caller=2)
        with TestClient(create_app(settings, clock), base_url="http://localhost", client=LOOPBACK) as client:
            for job in client.get("/v1/jobs", params={"state": "queued"}).json()["items"]:
                client.post(f"/v1/jobs/{job['id']}/cancel")  # of tests that share the database
            later = {"Prefer": "respond-async"}
            made = [client.post("/v1/recommendations", json=RECOMMENDATION, headers=later) for _ in range(3)]
            assert [answer.status_code for answer in made] == [202, 202, 429]
            assert int(made[2].headers["retry-after"]) > 0
            client.post(f"/v1/jobs/{made[0].json()['id']}/cancel")
            assert client.post("/v1/recommendations", json=RECOMMENDATION, headers=later).status_code == 202


class TestLeases:
    def test_a_lost_job_is_taken_up_and_the_late_answer_is_refused(
        self, client: TestClient, app: FastAPI, queue: Callable[..., str], settings: Settings, clock: FixedClock
    ) -> None:
        """The first worker is thought dead while it still works: its lease runs out by the clock."""
        job_id = queue(tag="twice", busy_s=2.0)
        first = Slot(app.state.database, settings, clock, threading.Event(), GIVEN_KINDS)
        second = Slot(app.state.database, settings, clock, threading.Event(), GIVEN_KINDS)
        late = threading.Thread(target=first.work_once)
        late.start()
        wait_for(client, job_id, "running")
        clock.advance(seconds=settings.job_lease_s + 1)
        assert sweep_once(app.state.database, settings, clock()) >= 1
        assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"
        assert second.work_once()
        late.join()
        assert client.get(f"/v1/jobs/{job_id}").json()["attempts"] == 2
        assert results(app, "twice") == 1
        first.close(), second.close()

    def test_a_worker_that_is_shut_down_hands_its_job_back(
        self, client: TestClient, app: FastAPI, queue: Callable[..., str], settings: Settings, clock: FixedClock
    ) -> None:
        job_id = queue(tag="handed", busy_s=1.5)
        with worker(app, settings, clock):
            wait_for(client, job_id, "running")
        job = client.get(f"/v1/jobs/{job_id}").json()
        assert (job["state"], job["attempts"]) == ("queued", 0)
        with worker(app, settings, clock):
            assert wait_for(client, job_id, "succeeded")["attempts"] == 1
        assert results(app, "handed") == 1
