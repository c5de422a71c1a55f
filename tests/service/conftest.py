"""A running application and clients with each role."""

import copy
import datetime as dt
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session
from starlette.routing import BaseRoute

import service.clock
import service.main
from catalog.read import Catalog
from service.benchmarks import facts
from service.catalog_release.queries import require_release
from service.main import create_app
from service.offers.queries import last_price_change
from service.openapi_document import DescribedApi
from service.recommendations import catalog_snapshot
from service.recommendations.spaces import SpaceCache, SpaceKey
from service.settings import Settings
from service.tokens.create import create_token
from solver.candidates.space import SearchSpace
from solver.recommend import recommend
from tests.conftest import FixedClock
from tests.service.remembered import Remembered, by_content, by_identity

LOOPBACK = ("127.0.0.1", 50_000)


class SharedSpaces(SpaceCache):
    """Search spaces of the seeded catalog, kept from one application to the next with all that was simulated of their candidates, as
    one service keeps them from request to request. Models that tests add, and devices that they probe, are left to each alone."""

    shared = SpaceCache(most=60)

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._catalog = catalog

    def _is_seeded(self, key: SpaceKey) -> bool:
        catalog_key, llm = key[:2]
        return catalog_key == self._catalog.digest and llm in self._catalog.llms

    def __getitem__(self, key: SpaceKey) -> SearchSpace:
        return self.shared[key] if self._is_seeded(key) else super().__getitem__(key)

    def __setitem__(self, key: SpaceKey, space: SearchSpace) -> None:
        if self._is_seeded(key):
            self.shared[key] = space
        else:
            super().__setitem__(key, space)


@pytest.fixture(scope="session", autouse=True)
def spaces_are_shared(catalog: Catalog) -> Iterator[None]:
    """Every application would otherwise simulate the same candidates anew: most of the time of the service's tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.main, "SpaceCache", lambda: SharedSpaces(catalog))
        yield


@pytest.fixture(scope="session", autouse=True)
def the_seeded_catalog_is_read_once() -> Iterator[None]:
    """Every application would otherwise convert its thousands of rows anew: half a second of each plan. A catalog that a test
    changed has another revision, and is read."""
    read_snapshot, read_facts = catalog_snapshot.read_snapshot, facts._read
    kept: dict[tuple[object, ...], Any] = {}

    def snapshot_of(session: Session, price_as_of: dt.datetime) -> Any:
        release = require_release(session)
        if release.revision != 1:
            return read_snapshot(session, price_as_of)
        key = release.digest, last_price_change(session, price_as_of)
        if key not in kept:
            kept[key] = read_snapshot(session, price_as_of)
        return kept[key]

    def facts_of(session: Session, digest: str, revision: int) -> Any:
        if revision != 1:
            return read_facts(session, digest, revision)
        if (digest,) not in kept:
            kept[(digest,)] = read_facts(session, digest, revision)
        return kept[(digest,)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog_snapshot, "read_snapshot", snapshot_of)
        patch.setattr(facts, "_read", facts_of)
        yield


@pytest.fixture(scope="session", autouse=True)
def answers_are_remembered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, key in (("solve_request", by_content), ("explained", by_identity)):
            patch.setattr(recommend, name, Remembered(getattr(recommend, name), key))
        yield


class SharedRoutes(DescribedApi):
    """An application whose included routes are those of the first one, with what FastAPI made of them at their first requests, and
    whose OpenAPI document is the first one's too."""

    included: ClassVar[dict[int, BaseRoute]] = {}
    """By the identity of their routers, which are modules' own and stay."""
    documents: ClassVar[list[dict[str, Any]]] = []
    """None or one: the same for every application, and a second's work."""

    def include_router(self, router: APIRouter, **options: Any) -> None:
        if id(router) in self.included:
            self.router.routes.append(self.included[id(router)])
        else:
            super().include_router(router, **options)
            self.included[id(router)] = self.router.routes[-1]

    def openapi(self) -> dict[str, Any]:
        if not self.documents:
            self.documents.append(super().openapi())
        return copy.deepcopy(self.documents[0])


@pytest.fixture(scope="session", autouse=True)
def routes_are_shared() -> Iterator[None]:
    """Every application would otherwise derive the same models from the same signatures anew: a quarter of a second each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.main, "DescribedApi", SharedRoutes)
        yield


@pytest.fixture(scope="session", autouse=True)
def limits_count_processor_time() -> Iterator[None]:
    """Answers that a time limit cuts short would otherwise depend on what else the machine does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.clock, "time_limits_run_by", time.thread_time)
        yield


@cache
def defaults() -> Settings:
    """Read once, of an environment that says nothing: half of what an application takes to start."""
    return Settings(shutdown_grace_s=0.5)


@pytest.fixture
def settings(seeded_url: str) -> Settings:
    return defaults().model_copy(update={"database_url": seeded_url})


@pytest.fixture
def app(settings: Settings, clock: FixedClock) -> FastAPI:
    return create_app(settings, clock)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """On loopback, with no token configured: an editor."""
    with TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def with_role(
    client: TestClient,  # noqa: ARG001  it starts the application
    app: FastAPI,
    clock: FixedClock,
) -> Iterator[Callable[[str], dict[str, str]]]:
    """Headers of a new token; from the first one on, anonymous clients are refused. Revoked afterwards."""
    made: list[Any] = []

    def headers(role: str) -> dict[str, str]:
        with app.state.database.writing() as session:
            row, secret = create_token(session, f"test {role}", role, clock)
            made.append(row.id)
        return {"Authorization": f"Bearer {secret}"}

    yield headers
    from service.tokens.create import revoke_token

    with app.state.database.writing() as session:
        for token_id in made:
            revoke_token(session, token_id, clock)
