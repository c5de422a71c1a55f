"""Profiles of requests that missed a bar, by named stage: the service in this process, asked once more."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from service.main import create_app
from service.settings import Settings
from solver.fleet import SolveOptions, solve_fleet
from tests.bench.bars import RAG, ClassFleet, ask_why
from tests.bench.estimates import asked as estimates_asked
from tests.bench.planner import SEED
from tests.bench.stages import Stages, staged
from tests.bench.why_answers import SEED as WHY_SEED
from tests.bench.workloads import requests

WARM = 3
PROFILED_S = 60
PROFILED_ESTIMATES = 100
"""A thousand may take longer than a request may."""


@contextmanager
def service(url: str) -> Iterator[TestClient]:
    """The application on the database at ``url``, its libraries and search spaces loaded."""
    settings = Settings(database_url=url, rate_limit_requests_per_s=100_000, rate_limit_burst=1_000_000)
    with TestClient(
        create_app(settings, run_jobs=False), base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)
    ) as client:
        for body in requests(WARM, 5, SEED + 1):
            asked(client, body)
        yield client


def asked(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    # With time enough: a profile of a search that was cut off says little.
    limited, here = body | {"time_limit_s": PROFILED_S}, {"Prefer": f"wait={PROFILED_S}"}
    response = client.post("/v1/recommendations", json=limited, headers=here)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


def profile(client: TestClient, key: str, slow: list[ClassFleet]) -> tuple[str, Stages]:
    """(of what, where its processor seconds went)."""
    if key == "classes":
        with staged() as stages:
            for one in slow:
                solve_fleet(one.problem, SolveOptions(time_limit_s=10.0, gap_fraction=0.0))
        return f"{len(slow)} fleets that were late", stages
    if key == "why":
        answers = [asked(client, body) for body in requests(2, 5, WHY_SEED)]
        with staged() as stages:
            for answer in answers:
                ask_why(client, answer)
        return f"the questions about {len(answers)} plans", stages
    if key not in _ASKED:
        return "not profiled", Stages()
    title, ask = _ASKED[key]
    with staged() as stages:
        ask(client)
    return title, stages


def _rag(client: TestClient) -> None:
    asked(client, json.loads(RAG.read_text(encoding="utf-8")))


def _estimates(client: TestClient) -> None:
    client.post("/v1/estimates", json={"estimates": estimates_asked(PROFILED_ESTIMATES)}).raise_for_status()


def _plans(count: int, workloads: int) -> Callable[[TestClient], None]:
    def ask(client: TestClient) -> None:
        for body in requests(count, workloads, SEED):
            asked(client, body)

    return ask


_ASKED: dict[str, tuple[str, Callable[[TestClient], None]]] = {
    "one": ("8 requests of one workload", _plans(8, 1)),
    "five": ("2 requests of five workloads", _plans(2, 5)),
    "rag": ("one request of examples/chat-rag-70b.json", _rag),
    "estimates": (f"{PROFILED_ESTIMATES} of them", _estimates),
}
