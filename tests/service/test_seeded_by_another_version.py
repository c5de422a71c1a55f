"""A database that an older version seeded, under this one: said at once, by name, with what mends it; and never a failure."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, col, delete, select

from catalog.read import Catalog
from service.catalog_release.queries import require_release
from service.constants.tables import ConstantTable
from service.database import Database
from service.main import create_app
from service.migrate import migrate
from service.seeding import seed
from service.settings import Settings
from tests.conftest import FixedClock
from tests.service.bodies import ESTIMATE, RECOMMENDATION

LATER = "turn_overhead_fraction"
"""A constant that versions did without."""
ESTIMATES = {"estimates": [ESTIMATE]}
EDITED = "request_overhead_ms"


@pytest.fixture
def database(empty_url: str, catalog: Catalog, clock: FixedClock) -> Iterator[Database]:
    database = Database(empty_url)
    migrate(database)
    with database.writing() as session:
        seed(session, catalog, clock)
    yield database
    database.close()


@pytest.fixture
def client(database: Database, clock: FixedClock) -> Iterator[TestClient]:
    """Of a service over this database, which the tests change before it is asked."""
    url = database.url.render_as_string(hide_password=False)
    app = create_app(Settings(database_url=url, jobs_in_service=0), clock)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1), raise_server_exceptions=False) as client:
        yield client


def forget(session: Session, name: str) -> None:
    session.execute(delete(ConstantTable).where(col(ConstantTable.name) == name))


def seeded_by_an_older_version(database: Database) -> None:
    with database.writing() as session:
        forget(session, LATER)
        release = require_release(session)
        release.digest = release.seeded_digest = "0" * 64
        release.revision += 1


class TestOlder:
    def test_is_not_ready_and_says_why_and_what_mends_it(self, client: TestClient, database: Database) -> None:
        assert client.get("/readyz").status_code == 200
        seeded_by_an_older_version(database)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert LATER in answer.json()["detail"]
        assert "clusterwright seed" in answer.json()["detail"]
        assert "retry-after" in answer.headers

    @pytest.mark.parametrize(("path", "body"), [("recommendations", RECOMMENDATION), ("estimates", ESTIMATES)])
    def test_what_computes_is_refused_with_the_same_words(
        self, client: TestClient, database: Database, path: str, body: dict[str, Any]
    ) -> None:
        seeded_by_an_older_version(database)
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == client.get("/readyz").json()["detail"]

    @pytest.mark.parametrize("path", ["devices", "llms", "offers?limit=1", "nodes", "recommendations"])
    def test_what_is_stored_can_be_read(self, client: TestClient, database: Database, path: str) -> None:
        seeded_by_an_older_version(database)
        assert client.get(f"/v1/{path}").status_code == 200

    def test_starting_says_so_in_the_log(
        self, empty_url: str, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        seeded_by_an_older_version(database)
        with TestClient(create_app(Settings(database_url=empty_url, jobs_in_service=0))):
            assert any("not ready" in line and LATER in line for line in caplog.messages)

    def test_seeding_mends_it_under_the_running_service(
        self, client: TestClient, database: Database, catalog: Catalog, clock: FixedClock
    ) -> None:
        seeded_by_an_older_version(database)
        assert client.post("/v1/estimates", json=ESTIMATES).status_code == 503
        with database.writing() as session:
            assert not seed(session, catalog, clock).unchanged
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/estimates", json=ESTIMATES).status_code == 200


class TestOtherRows:
    """A catalog that is another one, and lacks nothing."""

    def test_values_that_were_changed_by_hand_serve(self, client: TestClient, database: Database) -> None:
        edit(database, 17.0)
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/estimates", json=ESTIMATES).status_code == 200

    def test_another_release_that_has_every_constant_serves(self, client: TestClient, database: Database) -> None:
        with database.writing() as session:
            require_release(session).seeded_digest = "0" * 64
        assert client.get("/readyz").status_code == 200

    def test_a_row_that_was_taken_out_comes_back_and_changed_ones_stay(
        self, client: TestClient, database: Database, catalog: Catalog, clock: FixedClock
    ) -> None:
        edit(database, 17.0)
        with database.writing() as session:
            forget(session, LATER)
        assert client.get("/readyz").status_code == 503
        with database.writing() as session:
            assert not seed(session, catalog, clock).unchanged
        with database.reading() as session:
            kept = session.exec(select(ConstantTable).where(ConstantTable.name == EDITED)).all()
        assert {row.row["value"] for row in kept} == {17.0}
        assert client.get("/readyz").status_code == 200


def edit(database: Database, value: float) -> None:
    with database.writing() as session:
        for row in session.exec(select(ConstantTable).where(ConstantTable.name == EDITED)).all():
            row.row = row.row | {"value": value, "low": value, "high": value}
