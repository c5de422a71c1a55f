"""The queue of wanted measurements: leases, expiry, retries, dead letters; agents; micro-measurements."""

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.conftest import FixedClock
from tests.service.test_benchmarks import a_run

WANTED: dict[str, Any] = {
    "device": "h200-sxm", "devices": 2, "llm": "llama-3.1-70b", "layout": {"tensor_parallel": 2},
    "precision": {"weights": "fp8"}, "engine": {"name": "vllm"},
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 819, "high": 1024},
        "output_tokens": {"distribution": "fixed", "tokens": 256},
    },
    "loads": [{"kind": "closed", "concurrency": 16}, {"kind": "open", "requests_per_s": 4.0}],
}  # fmt: skip
FIGURES: dict[str, Any] = {
    "device": "h200-sxm", "name": "NVIDIA H200", "driver": "580.159.04", "torch": "2.11.0",
    "copy": [{"bytes": 512_000_000, "read_plus_write_gb_per_s": 4164.8}],
    "gemm": [{"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflop_per_s": 700.0}],
    "all_reduce": [{"world_size": 2, "bytes": 131_072, "us": 9.0}],
}  # fmt: skip
tests_so_far = iter(range(1_000))
AGENT = {"id": "gpu-host-1", "version": "0.1.0"}


@pytest.fixture
def device(client: TestClient) -> str:
    """A device no other test of this module queues for, so that tests sharing a database do not meet."""
    known = [d["id"] for d in client.get("/v1/devices?limit=500").json()["items"]]
    return str(known[next(tests_so_far)])


def queue(client: TestClient, device: str, **changes: Any) -> str:
    answer = client.post("/v1/measurements", json=copy.deepcopy(WANTED) | {"device": device} | changes)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def lease(client: TestClient, device: str, devices: int = 8, agent: str = "gpu-host-1", lease_s: float = 60.0) -> Any:
    body = {"agent": AGENT | {"id": agent}, "device": device, "devices": devices, "lease_s": lease_s}
    answer = client.post("/v1/measurements/lease", json=body)
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.status_code == 200 else None


def status_of(client: TestClient, measurement_id: str) -> str:
    return str(client.get(f"/v1/measurements/{measurement_id}").json()["status"])


class TestQueue:
    def test_taken_once_and_completed_with_results(self, client: TestClient, device: str) -> None:
        wanted = queue(client, device)
        taken = lease(client, device)
        assert (taken["measurement"]["id"], taken["measurement"]["status"]) == (wanted, "leased")
        assert taken["measurement"]["wanted"]["precision"] == {"weights": "fp8", "kv_cache": "bf16"}
        assert lease(client, device, agent="gpu-host-2") is None
        result = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        answer = {"lease": taken["lease"], "benchmarks": [result]}
        for _ in range(2):
            done = client.post(f"/v1/measurements/{wanted}/complete", json=answer).json()
            assert (done["status"], done["benchmarks"]) == ("done", [result])
        assert [a["outcome"] for a in done["attempts"]] == ["done"]

    def test_urgent_first_then_oldest(self, client: TestClient, device: str) -> None:
        first, second, urgent = queue(client, device), queue(client, device), queue(client, device, priority=5)
        assert [lease(client, device)["measurement"]["id"] for _ in range(3)] == [urgent, first, second]

    def test_only_what_the_host_can_hold(self, client: TestClient, device: str) -> None:
        queue(client, device)
        assert lease(client, device, devices=1) is None
        assert lease(client, device, devices=2) is not None

    def test_sixteen_agents_at_once_take_each_measurement_once(self, client: TestClient, device: str) -> None:
        ids = {queue(client, device) for _ in range(5)}
        taken: list[Any] = []
        threads = [
            threading.Thread(target=lambda n=n: taken.append(lease(client, device, agent=f"host-{n}")))
            for n in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(t["measurement"]["id"] for t in taken if t) == sorted(ids)

    @pytest.mark.parametrize(
        ("field", "value", "pointer"),
        [
            ("device", "h2000", "/device"),
            ("llm", "nothing", "/llm"),
            ("devices", 3, "/layout"),
            ("loads", [], "/loads"),
            ("precision", {}, "/precision/weights"),
        ],
    )
    def test_wrong_fields_are_named(self, client: TestClient, field: str, value: Any, pointer: str) -> None:
        answer = client.post("/v1/measurements", json=copy.deepcopy(WANTED) | {field: value})
        assert answer.status_code == 422
        assert pointer in [e["pointer"] for e in answer.json()["errors"]]


class TestLeases:
    def test_a_heartbeat_keeps_it(self, client: TestClient, clock: FixedClock, device: str) -> None:
        wanted = queue(client, device)
        taken = lease(client, device)
        for _ in range(5):
            clock.advance(seconds=50)
            answer = client.post(
                f"/v1/measurements/{wanted}/heartbeat", json={"lease": taken["lease"], "lease_s": 60.0}
            )
            assert answer.status_code == 200
        assert lease(client, device, agent="gpu-host-2") is None

    def test_without_one_it_runs_out_and_another_agent_takes_over(
        self, client: TestClient, clock: FixedClock, device: str
    ) -> None:
        wanted = queue(client, device)
        late = lease(client, device)
        clock.advance(seconds=61)
        assert status_of(client, wanted) == "queued"
        heartbeat = {"lease": late["lease"], "lease_s": 60.0}
        assert client.post(f"/v1/measurements/{wanted}/heartbeat", json=heartbeat).status_code == 409
        second = lease(client, device, agent="gpu-host-2")
        assert second["measurement"]["id"] == wanted
        assert [a["outcome"] for a in second["measurement"]["attempts"]] == ["expired", "running"]
        result = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        body = {"lease": late["lease"], "benchmarks": [result]}
        assert client.post(f"/v1/measurements/{wanted}/complete", json=body).status_code == 409

    def test_a_late_answer_counts_while_nobody_has_taken_over(
        self, client: TestClient, clock: FixedClock, device: str
    ) -> None:
        wanted = queue(client, device)
        taken = lease(client, device)
        clock.advance(seconds=300)
        result = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        body = {"lease": taken["lease"], "benchmarks": [result]}
        assert client.post(f"/v1/measurements/{wanted}/complete", json=body).json()["status"] == "done"

    def test_failures_are_retried_then_given_up(self, client: TestClient, device: str) -> None:
        wanted = queue(client, device, most_attempts=2)
        for expected in ("queued", "dead"):
            taken = lease(client, device)
            body = {"lease": taken["lease"], "reason": "out of memory"}
            assert client.post(f"/v1/measurements/{wanted}/fail", json=body).json()["status"] == expected
        assert lease(client, device) is None
        attempts = client.get(f"/v1/measurements/{wanted}").json()["attempts"]
        assert [(a["outcome"], a["detail"]) for a in attempts] == [("failed", "out of memory")] * 2

    def test_agents_that_die_bury_a_measurement_too(self, client: TestClient, clock: FixedClock, device: str) -> None:
        wanted = queue(client, device, most_attempts=2)
        for _ in range(2):
            assert lease(client, device) is not None
            clock.advance(seconds=61)
        assert lease(client, device) is None
        assert status_of(client, wanted) == "dead"

    def test_results_must_be_stored(self, client: TestClient, device: str) -> None:
        wanted = queue(client, device)
        body = {"lease": lease(client, device)["lease"], "benchmarks": ["bench_none"]}
        answer = client.post(f"/v1/measurements/{wanted}/complete", json=body)
        assert answer.json()["errors"][0]["pointer"] == "/benchmarks/0"
        assert status_of(client, wanted) == "leased"

    def test_cancelled_ones_are_not_taken(self, client: TestClient, device: str) -> None:
        wanted = queue(client, device)
        assert client.post(f"/v1/measurements/{wanted}/cancel").json()["status"] == "cancelled"
        assert lease(client, device) is None
        assert client.post(f"/v1/measurements/{wanted}/cancel").status_code == 409


class TestAgents:
    def test_reporting_is_the_heartbeat(self, client: TestClient, clock: FixedClock) -> None:
        body = {"version": "0.1.0", "hostname": "host", "device": "h200-sxm", "devices": 8}
        first = client.put("/v1/agents/gpu-host-1", json=body).json()
        clock.advance(minutes=5)
        again = client.put("/v1/agents/gpu-host-1", json=body).json()
        assert again["first_seen_at"] == first["first_seen_at"]
        assert again["last_seen_at"] > first["last_seen_at"]
        assert "gpu-host-1" in [a["id"] for a in client.get("/v1/agents").json()["items"]]

    def test_who_may_do_what(self, client: TestClient, with_role: Callable[[str], dict[str, str]]) -> None:
        reader, agent, editor = (with_role(role) for role in ("reader", "agent", "editor"))
        body = {"agent": AGENT, "device": "h200-sxm", "devices": 1}
        assert client.post("/v1/measurements/lease", json=body, headers=reader).status_code == 403
        assert client.post("/v1/measurements/lease", json=body, headers=agent).status_code in (200, 204)
        assert client.post("/v1/measurements", json=WANTED, headers=agent).status_code == 403
        wanted = client.post("/v1/measurements", json=WANTED, headers=editor).json()["id"]
        assert client.get(f"/v1/measurements/{wanted}", headers=reader).status_code == 200


class TestDeviceMeasurements:
    def test_stored_once(self, client: TestClient) -> None:
        first = client.post("/v1/device-measurements", json=FIGURES)
        again = client.post("/v1/device-measurements", json=FIGURES)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        assert first.json()["status"] == "accepted"
        assert first.json()["figures"]["copy"] == FIGURES["copy"]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"copy": [{"bytes": 64_000_000, "read_plus_write_gb_per_s": 9000.0}]}, "at 9000 GB/s, peak 4800"),
            ({"gemm": [{"dtype": "bf16", "m": 16, "n": 16, "k": 16, "tflop_per_s": 1979.0}]}, "dense peak 989"),
        ],
    )
    def test_above_the_datasheet_is_quarantined(self, client: TestClient, change: Any, reason: str) -> None:
        answer = client.post("/v1/device-measurements", json=FIGURES | change).json()
        assert answer["status"] == "quarantined"
        assert reason in answer["reasons"][0]

    def test_an_unknown_device(self, client: TestClient) -> None:
        assert client.post("/v1/device-measurements", json=FIGURES | {"device": "h2000"}).status_code == 422
