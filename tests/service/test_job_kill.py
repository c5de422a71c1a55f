"""A worker (on SQLite the service) killed in the middle of a job, a restart of the service: one result, no event missed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.bench.jobs import LATER, SETTINGS, plan_request, storm
from tests.bench.server_process import ServerProcess
from tests.seeds import cases


def test_every_job_has_one_result(seeded_url: str) -> None:
    report = storm(seeded_url, kills=cases(2, few=1), workers=2, most_wait_s=1.5)
    assert (report.lost, report.twice) == (0, 0)
    assert report.jobs >= 2
    assert report.taken_again >= 1


def test_a_stream_resumes_after_a_restart_of_the_service(seeded_url: str, tmp_path: Path) -> None:
    server = ServerProcess(
        seeded_url, tmp_path / "log", **SETTINGS, CLUSTERWRIGHT_JOBS_IN_SERVICE="1", CLUSTERWRIGHT_SHUTDOWN_GRACE_S="0"
    )
    server.start()
    try:
        with httpx.Client(base_url=server.address, timeout=60) as client:
            job = client.post("/v1/recommendations", json=plan_request("restart", quick=True), headers=LATER).json()
            before = []
            with client.stream("GET", job["events"]) as stream:
                for number, _event, data in events(stream):
                    before.append(number)
                    if data.get("state") == "running":
                        break
        server.stop()
        server.start()
        with httpx.Client(base_url=server.address, timeout=60) as client:
            last = {"Last-Event-ID": str(before[-1])}
            with client.stream("GET", job["events"], headers=last) as stream:
                after = list(events(stream))
            assert [number for number, _, _ in after] == list(range(before[-1] + 1, after[-1][0] + 1))
            assert after[-1][1] == "state"
            assert after[-1][2]["state"] == "succeeded"
            assert client.get(after[-1][2]["result"]).status_code == 200
            shown = client.get(f"/v1/jobs/{job['id']}").json()
            assert shown["attempts"] == 1  # it was handed back: the shutdown is not held against the job
    finally:
        server.stop()


def events(stream: httpx.Response) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Numbers, names and data, as they come."""
    fields: dict[str, str] = {}
    for line in stream.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "id" in fields:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}
