"""The catalog's own measured runs in every database: evidence that estimates cite, counted once."""

import dataclasses
import datetime as dt
import json
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import func
from sqlmodel import select

from catalog.read import Catalog
from service.benchmarks.own_runs import store_own_runs
from service.benchmarks.tables import BenchmarkTable, BenchmarkUploadTable
from service.corrections.learn import refresh
from service.corrections.queries import changed_cells, newest_number, versioned_residuals
from service.database import Database
from service.main import create_app
from service.migrate import migrate
from service.seeding import seed
from service.settings import Settings
from tests.conftest import NOW, FixedClock
from tests.service.bodies import ESTIMATE, changed
from tests.service.conftest import LOOPBACK

RUN = "l8b-bf16-tp1-4096-256-c64_b"
STALLED = "stalled"


def body_of(catalog: Catalog, run_id: str) -> dict[str, Any]:
    (run,) = (run for file in catalog.benchmarks for run in file.runs if run.id == run_id)
    return run.benchmark


class TestStored:
    def test_all_are_listed_with_their_status_and_reasons(self, client: TestClient, catalog: Catalog) -> None:
        runs = {run.id: run for file in catalog.benchmarks for run in file.runs}
        answer = client.get("/v1/benchmarks", params={"tool": "catalog", "limit": 500}).json()
        items = {item["id"]: item for item in answer["items"]}
        assert items.keys() == runs.keys()
        for run_id, run in runs.items():
            assert items[run_id]["status"] == ("quarantined" if run.quality == STALLED else "accepted")
            assert bool(items[run_id]["reasons"]) == (run.quality == STALLED)
            assert items[run_id]["output_tokens_per_s"] == run.benchmark["results"]["output_tokens_per_s"]

    def test_one_shows_what_is_predicted_against_what_was_measured(self, client: TestClient, catalog: Catalog) -> None:
        stored = client.get(f"/v1/benchmarks/{RUN}").json()
        assert stored["benchmark"]["context"]["driver"] == "580.159.04"
        assert stored["after"]["correction_set"] == catalog.corrections[-1].number
        ratios = stored["after"]["predicted_over_measured"]
        assert 0.9 < ratios["tpot_ms"] < 1.1
        assert stored["before"]["predicted_over_measured"] is None

    def test_what_estimates_cite_is_there(self, client: TestClient) -> None:
        corrected = changed(changed(ESTIMATE, "llm", "qwen3-8b"), "layout", {"tensor_parallel": 1})
        found = client.post("/v1/estimates", json={"estimates": [ESTIMATE, corrected]}).json()["estimates"]
        assert [e["basis"] for e in found] == ["measured", "corrected"]
        for estimate in found:
            assert estimate["evidence"]
            for cited in estimate["evidence"]:
                assert client.get(f"/v1/benchmarks/{cited}").json()["status"] == "accepted"

    def test_the_same_run_uploaded_is_the_stored_one(self, client: TestClient, catalog: Catalog) -> None:
        answer = client.post("/v1/benchmarks", json=body_of(catalog, RUN))
        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == RUN

    def test_nobody_decides_about_them(self, client: TestClient) -> None:
        for action in ("retract", "release"):
            answer = client.post(f"/v1/benchmarks/{RUN}/{action}", json={"reason": "I would rather not"})
            assert answer.status_code == 409
            assert "catalog" in answer.json()["detail"]


class TestCountedOnce:
    def test_storing_notes_no_cell_and_leaves_no_residual(self, seeded_url: str, catalog: Catalog) -> None:
        database = Database(seeded_url)
        with database.writing() as session:
            assert not changed_cells(session, 1)
            assert refresh(session, NOW) is None
            assert newest_number(session) == catalog.corrections[-1].number
            assert versioned_residuals(session, catalog.corrections[-1].number, 1_000) == []
        database.close()

    def test_estimates_are_the_same_without_them(self, empty_url: str, catalog: Catalog, clock: FixedClock) -> None:
        without = dataclasses.replace(catalog, benchmarks=(), digest="without measured runs")
        database = Database(empty_url)
        migrate(database)
        answers = []
        for release in (without, catalog):
            with database.writing() as session:
                stored = seed(session, release, clock).benchmarks
            assert stored == sum(len(file.runs) for file in release.benchmarks)
            app = create_app(Settings(database_url=empty_url, shutdown_grace_s=0.5), clock)
            with TestClient(app, base_url="http://localhost", client=LOOPBACK) as client:
                answers.append(client.post("/v1/estimates", json={"estimates": [ESTIMATE]}).json())
        database.close()
        assert answers[0] == answers[1]

    def test_again_and_beside_an_upload_nothing_is_stored_twice(
        self, empty_url: str, catalog: Catalog, clock: FixedClock
    ) -> None:
        database = Database(empty_url)
        migrate(database)
        with database.writing() as session:
            seed(session, dataclasses.replace(catalog, benchmarks=(), digest="without measured runs"), clock)
        app = create_app(Settings(database_url=empty_url, shutdown_grace_s=0.5), clock)
        clock.advance(days=1)  # measured before it is uploaded
        with TestClient(app, base_url="http://localhost", client=LOOPBACK) as client:
            uploaded = client.post("/v1/benchmarks", json=body_of(catalog, RUN))
            assert uploaded.status_code == 201, uploaded.text
        total = sum(len(file.runs) for file in catalog.benchmarks)
        with database.writing() as session:
            assert store_own_runs(session, catalog.benchmarks, NOW) == total - 1
        with database.writing() as session:
            assert store_own_runs(session, catalog.benchmarks, NOW + dt.timedelta(days=1)) == 0
            for table in (BenchmarkTable, BenchmarkUploadTable):
                assert session.exec(select(func.count()).select_from(table)).one() == total
        database.close()

    def test_a_run_that_names_nothing_the_catalog_holds_is_an_error_of_the_release(self, catalog: Catalog) -> None:
        from catalog.relations import benchmark_errors

        devices = {k: v for k, v in catalog.devices.items() if k != "h200-sxm"}
        errors = list(benchmark_errors(devices, catalog.llms, catalog.benchmarks))
        lost = [
            run for file in catalog.benchmarks for run in file.runs if run.benchmark["context"]["device"] == "h200-sxm"
        ]
        assert len(errors) == len(lost) > 0
        assert json.dumps("h200-sxm").strip('"') in errors[0]
