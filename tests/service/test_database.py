"""Transactions: committed before the answer, never half, and no update lost between writers."""

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from service.catalog_release.queries import record_change, require_release
from service.database import Database, WriteSession
from service.offers.tables import PriceStepTable
from tests.conftest import NOW

LOOPBACK = ("127.0.0.1", 1)


@pytest.fixture
def database(seeded_url: str) -> Iterator[Database]:
    database = Database(seeded_url)
    yield database
    database.close()


def change(database: Database) -> None:
    with database.writing() as session:
        record_change(session, "test", {}, NOW)


class TestCommitBeforeResponse:
    def test_a_failing_commit_is_no_success(self, app: FastAPI) -> None:
        @app.post("/written", status_code=201)
        def written(session: WriteSession) -> dict[str, str]:
            record_change(session, "test", {}, NOW)
            return {"stored": "yes"}

        with TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False) as client:
            revision = client.get("/readyz").json()["catalog_revision"]
            engine = app.state.database.engine

            def fail(_connection: object) -> None:
                raise RuntimeError("the disk went away")

            event.listen(engine, "commit", fail)
            assert client.post("/written").status_code == 500
            event.remove(engine, "commit", fail)
            assert client.get("/readyz").json()["catalog_revision"] == revision
            assert client.post("/written").status_code == 201
            assert client.get("/readyz").json()["catalog_revision"] == revision + 1


class TestWriters:
    def test_four_writers_lose_nothing(self, database: Database) -> None:
        with database.reading() as session:
            before = require_release(session).revision
        each = 25

        def write() -> None:
            for number in range(each):
                with database.writing() as session:
                    record_change(session, "test", {"number": number}, NOW)

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with database.reading() as session:
            assert require_release(session).revision == before + 4 * each

    def test_an_error_leaves_nothing(self, database: Database) -> None:
        with database.reading() as session:
            before = require_release(session).digest

        def fail_half_way() -> None:
            with database.writing() as session:
                record_change(session, "test", {}, NOW)
                session.flush()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_half_way()
        with database.reading() as session:
            assert require_release(session).digest == before

    def test_a_lock_is_not_waited_for_for_ever(self, seeded_url: str) -> None:
        first, second = Database(seeded_url), Database(seeded_url, lock_timeout_s=0.2)
        with first.writing() as session:
            record_change(session, "test", {}, NOW)
            session.flush()
            with pytest.raises(OperationalError):
                change(second)
        first.close()
        second.close()


class TestColumnTypes:
    def test_money_and_instants_come_back_exact(self, database: Database) -> None:
        instant = dt.datetime(2026, 5, 3, 14, 30, 15, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))
        amount = Decimal("99999999.999999")
        with database.writing() as session:
            step = PriceStepTable(
                offer_id="aws:p5.48xlarge:us-east-1:on_demand", valid_from=instant, usd_per_hour=amount,
                source="a test", retrieved_on=NOW.date(), confidence="high", recorded_at=NOW,
            )  # fmt: skip
            session.add(step)
            session.flush()
            step_id = step.id
        with database.writing() as session:
            stored = session.get_one(PriceStepTable, step_id)
            assert stored.usd_per_hour == amount
            assert stored.valid_from == instant
            assert stored.valid_from.utcoffset() == dt.timedelta(0)
            session.delete(stored)

    def test_an_instant_without_a_zone_is_refused(self, database: Database) -> None:
        step = PriceStepTable(
            offer_id="x", valid_from=dt.datetime(2026, 1, 1), usd_per_hour=None, source="a test",
            retrieved_on=NOW.date(), confidence="high", recorded_at=NOW,
        )  # fmt: skip
        with database.reading() as session:
            session.add(step)
            with pytest.raises(Exception, match="needs a time zone"):
                session.flush()
