"""Every paged list says how many entries there are, whatever the page and whatever the filters."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.tco_bodies import RESULT, store_recommendation
from tests.service.test_measurements import WANTED

FILTERED = {
    "/v1/devices": {"vendor": "AMD"},
    "/v1/nodes": {"device": "H100-sxm"},
    "/v1/llms": {"family": "Llama"},
    "/v1/providers": {"provider_class": "specialist"},
    "/v1/offers": {"provider": "aws", "device": "h200", "named_place": "true"},
    "/v1/offers/unpriced": {"provider": "aws"},
    "/v1/api-prices": {"model": "llama"},
    "/v1/benchmarks": {"status": "accepted", "llm": "llama-3.1-8b"},
    "/v1/measurements": {"status": "queued", "device": "b200-sxm"},
    "/v1/recommendations": {"outcome": "optimal"},
}
"""Lists with entries, each with filters that leave several and not all."""
EMPTY = (
    "/v1/fleets", "/v1/jobs", "/v1/agents", "/v1/device-measurements", "/v1/benchmarks/training-runs",
    "/v1/training/recommendations",
)  # fmt: skip


@pytest.fixture(autouse=True)
def some_of_each(client: TestClient, app: FastAPI) -> None:
    for name, outcome in (("rec_one", "optimal"), ("rec_two", "optimal"), ("rec_three", "feasible")):
        store_recommendation(app.state.database, name, RESULT | {"outcome": outcome})
    for device in ("b200-sxm", "b200-sxm", "b300-sxm"):
        assert client.post("/v1/measurements", json=WANTED | {"device": device}).status_code == 201


def walk(client: TestClient, path: str, filters: dict[str, str], limit: int) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        answer = client.get(path, params=filters | {"limit": limit} | ({"next": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        yield answer.json()
        cursor = answer.json()["next"]
        if cursor is None:
            return


def test_every_list_with_a_cursor_is_here(app: FastAPI) -> None:
    document = app.openapi()
    listed = {
        path
        for path, item in document["paths"].items()
        if any(p["name"] == "next" for p in item.get("get", {}).get("parameters", ()))
    }
    assert listed == FILTERED.keys() | set(EMPTY)


@pytest.mark.parametrize("path", FILTERED)
def test_the_total_is_what_the_pages_hold(client: TestClient, path: str) -> None:
    totals = {}
    for filters in ({}, FILTERED[path]):
        whole = list(walk(client, path, filters, 500))
        ids = [item["id"] for page in whole for item in page["items"]]
        assert {page["total"] for page in whole} == {len(ids)}
        few = walk(client, path, filters, min(500, max(1, len(ids) // 3)))
        pages = [next(few) for _ in range(2)]
        assert {page["total"] for page in pages} == {len(ids)}
        totals[bool(filters)] = len(ids)
    assert 1 < totals[True] < totals[False]


@pytest.mark.parametrize("path", EMPTY)
def test_nothing_is_none(client: TestClient, path: str) -> None:
    answer = client.get(path).json()
    assert answer["total"] == len(answer["items"])
