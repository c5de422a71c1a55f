"""Databases for tests: migrated, never ``create_all``; their own, and dropped afterwards.

SQLite always. PostgreSQL too when CLUSTERWRIGHT_TEST_DATABASE_URL names one; every test module then
gets a database of its own there, a copy of one that is seeded once: the role must be allowed to create databases.
"""

import datetime as dt
import gc
import os
import shutil
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy.engine import make_url

from catalog.read import Catalog
from service.database import Database
from service.migrate import migrate
from service.seeding import seed
from tests.seeds import cases
from tests.simulations import kept
from tests.whole_catalog import whole_catalog

# The same cases every time, and no verdict by the clock: what else the machine does decides no test.
settings.register_profile(
    "tests", derandomize=True, max_examples=cases(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

POSTGRES_URL = os.environ.get("CLUSTERWRIGHT_TEST_DATABASE_URL")
KINDS = ["sqlite", "postgresql"] if POSTGRES_URL else ["sqlite"]
NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests, modules and rows stay to the end: looking for garbage among them again and again is a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


@dataclass
class FixedClock:
    """A clock that tests set."""

    now: dt.datetime = field(default=NOW)

    def __call__(self) -> dt.datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += dt.timedelta(**by)


@pytest.fixture(scope="session", autouse=True)
def simulations_are_kept() -> Iterator[None]:
    with kept():
        yield


@pytest.fixture(autouse=True)
def no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's shell sets must not decide a test."""
    for name in list(os.environ):
        if name.startswith("CLUSTERWRIGHT_") and name != "CLUSTERWRIGHT_TEST_DATABASE_URL":
            monkeypatch.delenv(name)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return whole_catalog()


@pytest.fixture(scope="session", params=KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def seeded_template(tmp_path_factory: pytest.TempPathFactory, catalog: Catalog) -> Path:
    """One migrated and seeded SQLite file; tests work on copies of it."""
    path = tmp_path_factory.mktemp("template") / "seeded.sqlite"
    database = migrated_and_seeded(f"sqlite:///{path}", catalog)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path


@pytest.fixture(scope="session")
def postgres_template(catalog: Catalog) -> Iterator[str]:
    """The name of one migrated and seeded PostgreSQL database; modules work on copies of it."""
    with postgres_database() as url:
        migrated_and_seeded(url, catalog).close()
        yield str(make_url(url).database)


def migrated_and_seeded(url: str, catalog: Catalog) -> Database:
    database = Database(url)
    migrate(database)
    with database.writing() as session:
        seed(session, catalog, FixedClock())
    return database


@pytest.fixture
def empty_url(database_kind: str, tmp_path: Path) -> Iterator[str]:
    """A database without any table."""
    if database_kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.sqlite'}"
        return
    with postgres_database() as url:
        yield url


@pytest.fixture(scope="module")
def seeded_postgres(postgres_template: str) -> Iterator[str]:
    """A seeded database shared by a module; the routes' tests use ids of their own, so they do not meet."""
    with postgres_database(postgres_template) as url:
        yield url


@pytest.fixture
def seeded_url(database_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A migrated and seeded database: a fresh file on SQLite, the module's database on PostgreSQL."""
    if database_kind == "postgresql":
        return str(request.getfixturevalue("seeded_postgres"))
    path = tmp_path / "seeded.sqlite"
    shutil.copy(request.getfixturevalue("seeded_template"), path)
    return f"sqlite:///{path}"


@contextmanager
def postgres_database(template: str = "template0") -> Iterator[str]:
    """A database of its own beside the test database, a copy of ``template`` where one is named; dropped at the end."""
    assert POSTGRES_URL is not None
    server = make_url(POSTGRES_URL)
    name = f"test_{uuid.uuid4().hex}"
    address = server.set(drivername="postgresql").render_as_string(hide_password=False)

    def do(statement: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    do(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        do(f"DROP DATABASE {name} WITH (FORCE)")
