"""What a broken, careless or hostile uploader sends: never a 5xx, never half stored, never silently accepted."""

import copy
import datetime as dt
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.tokens.create import revoke_token
from service.tokens.queries import all_tokens
from service.wire.examples import examples
from tests.conftest import FixedClock
from tests.service.bodies import changed
from tests.service.test_benchmarks import CONTEXT, FIXTURES, RUN

JSON = {"content-type": "application/json"}
ROUTES = ["/v1/benchmarks", "/v1/benchmarks/import", "/v1/device-measurements"]
numbers = iter(range(1_000_000))


def a_run(**changes: dict[str, Any]) -> dict[str, Any]:
    """A right run that no other test uploaded, with fields of its parts replaced."""
    run = copy.deepcopy(RUN)
    run["context"]["notes"] = f"bad input {next(numbers)}"
    for part, fields in changes.items():
        run[part] |= fields
    return run


def stored(client: TestClient) -> int:
    """Results of every status, over all pages."""
    count, page = 0, client.get("/v1/benchmarks", params={"limit": 500}).json()
    while True:
        count += len(page["items"])
        if page["next"] is None:
            return count
        page = client.get("/v1/benchmarks", params={"limit": 500, "next": page["next"]}).json()


def quarantined(client: TestClient, run: dict[str, Any]) -> str:
    """The reasons of a run that is kept, listed as quarantined, and says why."""
    answer = client.post("/v1/benchmarks", json=run)
    assert answer.status_code == 201, answer.text
    receipt = answer.json()
    assert receipt["status"] == "quarantined"
    assert client.get(f"/v1/benchmarks/{receipt['id']}").json()["status"] == "quarantined"
    return " ".join(receipt["reasons"])


class TestBodies:
    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize(
        "body",
        [
            b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe" * 50, b"\x1f\x8b\x08\x00", b"\xff\xfe\x00{", json.dumps(RUN).encode()[:-40],
            b'{"context": {"device": "h200', b"[" * 100_000, b"{" * 100_000, b"null", b'"text"', b"17", b"",
        ],
        ids=["png", "gzip", "utf16", "truncated", "cut", "deep-list", "deep-object", "null", "text", "number", "empty"],
    )  # fmt: skip
    def test_junk_is_refused_and_not_stored(self, client: TestClient, path: str, body: bytes) -> None:
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code in (400, 422)
        assert answer.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize(
        "payload", ["\x00\x01\x02", "%PDF-1.7", '{"mean_ttft_ms": 80,', [], {}, 17, None, "a: &x [*x]"]
    )
    def test_a_file_that_no_tool_wrote(self, client: TestClient, payload: Any) -> None:
        before = stored(client)
        answer = client.post("/v1/benchmarks/import", json={"context": CONTEXT, "payload": payload})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("/payload")
        assert stored(client) == before

    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
    def test_two_hundred_megabytes(self, client: TestClient, path: str, declared: bool) -> None:
        """Refused by its declared length before it is sent, and without one as soon as it is too long."""
        sent = 0

        def chunks() -> Iterator[bytes]:
            nonlocal sent
            for _ in range(200):
                sent += 1
                yield b" " * 1_000_000

        headers = JSON | ({"content-length": "200000000"} if declared else {})
        answer = client.post(path, content=b"{}" if declared else chunks(), headers=headers)
        assert answer.status_code == 413
        assert answer.json()["type"].endswith("/body-too-large")

    def test_every_number_as_a_string(self, client: TestClient) -> None:
        def quoted(value: Any) -> Any:
            if isinstance(value, dict):
                return {k: quoted(v) for k, v in value.items()}
            return str(value) if isinstance(value, (int, float)) else value

        before = stored(client)
        answer = client.post("/v1/benchmarks", json=quoted(a_run()))
        assert answer.status_code == 422
        named = {error["pointer"] for error in answer.json()["errors"]}
        assert {"/context/devices", "/load/concurrency", "/results/completed", "/results/tpot_ms/mean"} <= named
        assert stored(client) == before

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
    @pytest.mark.parametrize("place", ['"mean": 9.0', '"duration_s": 10.0', '"concurrency": 4'])
    def test_numbers_that_are_none(self, client: TestClient, number: str, place: str) -> None:
        name = place.split(":")[0]
        body = json.dumps(a_run()).replace(place, f"{name}: {number}", 1)
        assert number in body
        answer = client.post("/v1/benchmarks", content=body, headers=JSON)
        assert answer.status_code in (400, 422)

    def test_a_number_of_more_digits_than_a_float_holds_in_a_file(self, client: TestClient) -> None:
        body = changed(examples()["BenchmarkImport"], "payload/duration", 10**400)
        answer = client.post("/v1/benchmarks/import", json=body)
        assert answer.status_code == 422, answer.text[:300]
        assert answer.json()["errors"][0]["pointer"] == "/payload/duration"

    @pytest.mark.parametrize("latency", ["ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"])
    def test_negative_latencies(self, client: TestClient, latency: str) -> None:
        answer = client.post("/v1/benchmarks", json=a_run(results={latency: {"mean": -1.0}}))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == f"/results/{latency}/mean"

    def test_an_unknown_device_is_named_with_its_neighbours(self, client: TestClient) -> None:
        answer = client.post("/v1/benchmarks", json=a_run(context={"device": "h200-smx"}))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/context/device"
        assert "did you mean 'h200-sxm'" in answer.json()["errors"][0]["detail"]


class TestFigures:
    def test_percentiles_reversed(self, client: TestClient) -> None:
        reversed_ = {"ttft_ms": {"mean": 80.0, "p50": 95.0, "p90": 78.0}}
        assert "TTFT p50 95 ms is above p90 78 ms" in quarantined(client, a_run(results=reversed_))

    def test_seconds_where_milliseconds_belong(self, client: TestClient) -> None:
        seconds = {
            name: {k: v / 1e3 for k, v in RUN["results"][name].items()} for name in ("ttft_ms", "tpot_ms", "e2e_ms")
        }
        assert "as between seconds and milliseconds" in quarantined(client, a_run(results=seconds))

    def test_faster_than_light(self, client: TestClient) -> None:
        scaled = {
            "ttft_ms": {"mean": 8e-3}, "tpot_ms": {"mean": 9e-4}, "e2e_ms": {"mean": 0.0971}, "duration_s": 1e-3,
            "requests_per_s": 4e4, "output_tokens_per_s": 4e6,
        }  # fmt: skip
        assert "faster than the device can be" in quarantined(client, a_run(results=scaled))

    def test_a_clock_an_hour_ahead(self, client: TestClient, clock: FixedClock) -> None:
        ahead = (clock.now + dt.timedelta(hours=1)).isoformat()
        assert "60 minutes after it was received" in quarantined(client, a_run(context={"measured_at": ahead}))

    def test_a_clock_an_hour_behind_is_an_hour_on_the_way(self, client: TestClient, clock: FixedClock) -> None:
        """Nobody can tell it from a result that waited in a spool; when it was received is the service's own word."""
        behind = (clock.now - dt.timedelta(hours=1)).isoformat()
        answer = client.post("/v1/benchmarks", json=a_run(context={"measured_at": behind})).json()
        assert answer["status"] == "accepted"
        kept = client.get(f"/v1/benchmarks/{answer['id']}").json()
        assert dt.datetime.fromisoformat(kept["recorded_at"]) == clock.now


class TestReplays:
    @pytest.mark.parametrize("changed", [False, True])
    def test_a_key_with_the_body_it_had_and_with_another(self, client: TestClient, changed: bool) -> None:
        key = {"Idempotency-Key": f"bad-{next(numbers)}"}
        run = a_run()
        first = client.post("/v1/benchmarks", json=run, headers=key).json()
        before = stored(client)
        if changed:
            run["results"]["completed"] = 41
        again = client.post("/v1/benchmarks", json=run, headers=key)
        assert again.status_code == (409 if changed else 200)
        assert changed or again.json() == first
        assert stored(client) == before

    @pytest.mark.parametrize("path", ROUTES)
    def test_a_revoked_token(
        self, client: TestClient, with_role: Callable[[str], dict[str, str]], clock: FixedClock, path: str
    ) -> None:
        headers, others = with_role("agent"), with_role("reader")
        assert client.post(path, json={}, headers=headers).status_code == 422
        with client.app.state.database.writing() as session:  # type: ignore[attr-defined]
            newest_agent = [t for t in all_tokens(session) if t.role == "agent" and t.revoked_at is None][-1]
            revoke_token(session, newest_agent.id, clock)
        before = client.get("/v1/benchmarks", headers=others).json()
        bodies: dict[str, dict[str, Any]] = {
            "/v1/benchmarks": a_run(),
            "/v1/benchmarks/import": {
                "context": CONTEXT | {"notes": f"bad input {next(numbers)}"},
                "payload": (FIXTURES / "vllm_bench_serve.json").read_text(),
            },
            "/v1/device-measurements": {"device": "l4", "name": f"probe {next(numbers)}", "torch": "2.11.0"},
        }
        assert client.post(path, json=bodies[path], headers=headers).status_code == 401
        assert client.get("/v1/benchmarks", headers=others).json() == before
