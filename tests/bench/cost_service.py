"""A service in this process on a database of its own, to compare costs with."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from fastapi.testclient import TestClient

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.main import create_app
from service.migrate import migrate
from service.seeding import seed
from service.settings import Settings
from tests.service.tco_bodies import RESULT, store_recommendation


def fill(url: str) -> None:
    """The tables, the catalog, and one plan stored as ``rec_plan``."""
    database = Database(url)
    migrate(database)
    with database.writing() as session:
        seed(session, read_catalog(), system_clock)
    store_recommendation(database, "rec_plan", RESULT)
    database.close()


@contextmanager
def cost_service() -> Iterator[tuple[TestClient, FastAPI]]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/costs.sqlite"
        fill(url)
        app = create_app(Settings(database_url=url), system_clock)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            yield client, app
