"""Values at the edges of what a number, an instant or a file can be: answers, never failures of the service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.bodies import ESTIMATE, RECOMMENDATION
from tests.service.command import run
from tests.service.test_benchmarks import RUN
from tests.service.test_health import served

JSON = {"content-type": "application/json"}
EDGES = [
    "5e-324",
    "1e-308",
    "1e-320",
    "1.7976931348623157e308",
    "9223372036854775808",
    "1" + "0" * 400,
    "-0.0",
    "1e-10",
]


def numbers_of(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every number in a body."""
    if isinstance(body, dict | list):
        for key, value in body.items() if isinstance(body, dict) else enumerate(body):
            yield from numbers_of(value, (*path, key))
    elif isinstance(body, int | float) and not isinstance(body, bool):
        yield path


def with_number(body: Any, path: tuple[Any, ...], number: str) -> str:
    changed = json.loads(json.dumps(body))
    here = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = "HERE"
    return json.dumps(changed).replace('"HERE"', number)


CASES = [
    (route, path, body)
    for route, body in (
        ("/v1/recommendations", RECOMMENDATION), ("/v1/estimates", {"estimates": [ESTIMATE]}), ("/v1/benchmarks", RUN),
    )
    for path in numbers_of(body)
]  # fmt: skip


@pytest.mark.parametrize("number", EDGES)
@pytest.mark.parametrize(("route", "path", "body"), CASES, ids=[f"{r}:{'/'.join(map(str, p))}" for r, p, _ in CASES])
def test_no_number_is_a_failure(client: TestClient, route: str, path: tuple[Any, ...], body: Any, number: str) -> None:
    answer = client.post(route, content=with_number(body, path, number), headers=JSON)
    assert answer.status_code in (200, 201, 202, 400, 422), answer.text[:300]


@pytest.mark.parametrize("value", [2**31, 2**63, 2**64, 10**30, 0, -1])
def test_a_correction_set_beyond_the_database(client: TestClient, value: int) -> None:
    assert client.get("/v1/accuracy", params={"correction_set": value}).status_code in (404, 422)


INSTANTS = [
    "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "1969-12-31T23:59:59Z", "9001-01-01T00:00:00Z",
]  # fmt: skip


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("parameter", ["price_as_of", "believed_at"])
def test_instants_at_the_ends_of_time(client: TestClient, parameter: str, instant: str) -> None:
    answer = client.get("/v1/offers", params={parameter: instant, "limit": 1})
    assert answer.status_code == 422, answer.text[:300]
    assert "1970 to 9000" in answer.text
    assert client.post("/v1/recommendations", json=RECOMMENDATION | {"price_as_of": instant}).status_code == 422


def test_a_number_of_more_digits_than_a_float_holds_is_no_instant(client: TestClient) -> None:
    answer = client.post("/v1/recommendations", json=RECOMMENDATION | {"price_as_of": 10**400})
    assert answer.status_code == 422, answer.text[:300]
    assert answer.json()["errors"][0]["pointer"] == "/price_as_of"


def test_after_a_failure_the_connection_stays_open(app: FastAPI) -> None:
    """A defect is answered like anything else; what raises is not left to the server, which would hang up."""

    def fail() -> None:
        raise RuntimeError("a defect")

    app.add_api_route("/defect", fail)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:  # it raises what reaches it
        answer = client.get("/defect")
        assert answer.status_code == 500
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        assert "a defect" not in answer.text


class TestDamagedDatabase:
    @pytest.fixture
    def damaged(self, tmp_path: Path, seeded_template: Path) -> Path:
        """Overwritten in the middle; the first pages, which say that it is a database, are whole."""
        path = tmp_path / "damaged.sqlite"
        data = bytearray(seeded_template.read_bytes())
        page = 4096
        data[4 * page : len(data)] = b"\xa5" * (len(data) - 4 * page)
        path.write_bytes(data)
        return path

    def test_is_503_with_what_to_do(self, damaged: Path, caplog: pytest.LogCaptureFixture) -> None:
        with served(f"sqlite:///{damaged}") as client:
            assert client.get("/healthz").status_code == 200
            for path in ("/readyz", "/v1/devices", "/v1/offers?limit=1", "/v1/recommendations"):
                answer = client.get(path)
                assert answer.status_code == 503, (path, answer.text[:300])
                assert "restore a backup" in answer.json()["detail"], path
        assert "Traceback" not in caplog.text

    @pytest.mark.parametrize("command", [["migrate"], ["seed"], ["token", "list"], ["devices"]])
    def test_a_file_that_is_no_database_is_one_line(self, tmp_path: Path, command: list[str]) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("not a database, but long enough to be read as one. " * 200)
        before = path.read_bytes()
        done = run(*command, url=f"sqlite:///{path}")
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "not a database" in done.stderr or "restore a backup" in done.stderr
        assert path.read_bytes() == before
