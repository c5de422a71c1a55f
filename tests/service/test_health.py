"""Liveness, readiness, metrics; a database that is missing, not migrated, not seeded or read-only."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.database import Database
from service.main import create_app
from service.migrate import migrate, newest_revision
from service.settings import Settings
from tests.service.bodies import RECOMMENDATION, TINY_CONFIG

LOOPBACK = ("127.0.0.1", 1)


def served(url: str, **settings: Any) -> TestClient:
    app = create_app(Settings(database_url=url, **settings))
    return TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False)


class TestReadyz:
    def test_seeded_is_ready(self, client: TestClient) -> None:
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json()["schema_revision"] == newest_revision()

    @pytest.mark.parametrize("path", ["/readyz", "/v1/devices", "/v1/recommendations", "/v1/offers"])
    def test_not_migrated_says_so(self, empty_url: str, path: str) -> None:
        with served(empty_url) as client:
            answer = client.get(path)
            assert client.get("/healthz").status_code == 200
        assert answer.status_code == 503
        assert "clusterwright migrate" in answer.json()["detail"]
        assert "Traceback" not in answer.text
        assert "retry-after" in answer.headers

    def test_not_seeded_says_so(self, empty_url: str) -> None:
        database = Database(empty_url)
        migrate(database)
        database.close()
        with served(empty_url) as client:
            assert "clusterwright seed" in client.get("/readyz").json()["detail"]
            answer = client.post("/v1/recommendations", json=RECOMMENDATION)
        assert answer.status_code == 503
        assert "clusterwright seed" in answer.json()["detail"]

    def test_unreachable_is_503(self) -> None:
        with served("postgresql+psycopg://nobody:nothing@127.0.0.1:1/none") as client:
            assert client.get("/readyz").status_code == 503
            answer = client.get("/v1/devices")
        assert answer.status_code == 503
        assert "nothing" not in answer.text  # the password

    def test_a_missing_folder_is_503(self, tmp_path: Path) -> None:
        with served(f"sqlite:///{tmp_path}/no/such/folder/file.sqlite") as client:
            assert client.get("/readyz").status_code == 503
            assert client.get("/v1/devices").status_code == 503


class TestReadOnlyDisk:
    def test_reading_works_and_writing_is_503(self, seeded_template: Path) -> None:
        with served(f"sqlite:///file:{seeded_template}?mode=ro&uri=true") as client:
            assert client.get("/v1/devices").status_code == 200
            answer = client.post("/v1/llms", json={"id": "tiny-readonly", "config": TINY_CONFIG})
        assert answer.status_code == 503
        assert "read-only" in answer.json()["detail"]


class TestWriterTaken:
    def test_reading_goes_on_storing_is_503_and_nothing_is_half_there(
        self, tmp_path: Path, seeded_template: Path
    ) -> None:
        path = tmp_path / "locked.sqlite"
        path.write_bytes(seeded_template.read_bytes())
        body = RECOMMENDATION | {"limits": {"devices": ["h200-sxm"]}, "alternatives": 0}
        with served(f"sqlite:///{path}", database_lock_timeout_s=0.2, jobs_in_service=0) as client:
            with sqlite3.connect(path, isolation_level=None) as lock:
                lock.execute("BEGIN IMMEDIATE")
                assert client.post("/v1/recommendations", json=body).status_code == 503
                assert client.get("/v1/devices").status_code == 200
                lock.execute("ROLLBACK")
            assert client.get("/v1/recommendations").json()["items"] == []
            assert client.post("/v1/recommendations", json=body).status_code == 201


class TestMetrics:
    def test_counts_requests_by_route(self, client: TestClient) -> None:
        client.get("/v1/devices/h200-sxm")
        client.get("/v1/devices/mi300x")
        text = client.get("/metrics").text
        assert 'clusterwright_requests_total{method="GET",route="/v1/devices/{device_id}",status="200"} 2.0' in text


class TestRequestIds:
    def test_given_ones_are_kept_odd_ones_replaced(self, client: TestClient) -> None:
        assert client.get("/healthz", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
        assert client.get("/healthz", headers={"X-Request-Id": "a b\tc"}).headers["x-request-id"].startswith("req_")

    def test_log_lines_hold_no_secret(self, client: TestClient, app: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
        assert app.title == "Clusterwright"
        caplog.set_level("DEBUG", logger="clusterwright")
        client.get("/v1/devices?vendor=secret-vendor", headers={"Authorization": "Bearer cw_very-secret"})
        lines = [r.getMessage() for r in caplog.records if r.name.startswith("clusterwright")]
        assert any("/v1/devices 401" in line for line in lines)
        assert not any("secret" in line for line in lines)


class TestUnexpectedFailure:
    def test_is_a_problem_without_traceback(self, app: FastAPI) -> None:
        @app.get("/fails")
        def fails() -> None:
            raise RuntimeError("an inner detail")

        with TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False) as client:
            answer = client.get("/fails")
        assert answer.status_code == 500
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        assert "inner detail" not in answer.text
