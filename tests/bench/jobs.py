"""Jobs under SIGKILL, and how many plans a minute several workers make.

    python -m tests.bench.jobs kill --url postgresql+psycopg://… --kills 50
    python -m tests.bench.jobs rate --url postgresql+psycopg://… --workers 4 --jobs 60
    python -m tests.bench.jobs cancel --url sqlite:////tmp/bench.sqlite --jobs 20

The database must be migrated and seeded, and nobody else's workers may run on it. ``kill``: on PostgreSQL a worker is
killed, on SQLite the service, which computes there; always one that holds a job, at a random moment. Lost: a job that
did not succeed. Twice: a job with two stored results. ``rate``: one worker first, then as many as asked.
"""

import argparse
import datetime as dt
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import text
from sqlmodel import select

from service.database import Database
from service.jobs.tables import JobTable
from service.recommendations.tables import RecommendationTable
from tests.bench.server_process import START, ServerProcess

LATER = {"Prefer": "respond-async"}
SETTINGS = {
    "CLUSTERWRIGHT_JOB_LEASE_S": "3",
    "CLUSTERWRIGHT_JOB_MOST_ATTEMPTS": "100",
    "CLUSTERWRIGHT_JOB_QUEUE_PER_CALLER": "100000",
    "CLUSTERWRIGHT_JOB_QUEUE": "100000",
}
WITHIN_S = 1_200.0
MOST_WAIT_S = 6.0
"""A job is killed up to so long after it was seen to be held: while its process starts, computes, or stores."""


def plan_request(tag: str, *, quick: bool) -> dict[str, Any]:
    """quick: one kind of device; otherwise the whole catalog, as anybody would ask."""
    lengths = {"distribution": "lognormal", "mean": 1200, "p95": 4000}
    body: dict[str, Any] = {
        "workloads": [
            {
                "name": tag,
                "llm": "llama-3.1-70b",
                "traffic": {
                    "requests_per_s": 20.0,
                    "prompt_tokens": lengths,
                    "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
                },
                "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 50}},
            }
        ],
        "time_limit_s": 300,  # of the clock on the wall: on a busy machine too, what counts is what became of the job
    }
    return body | ({"alternatives": 0, "limits": {"devices": ["h200-sxm"]}} if quick else {})


class WorkerProcess:
    """``clusterwright worker`` with one job at a time."""

    def __init__(self, url: str, log: Path) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_")} | SETTINGS
        environment |= {"CLUSTERWRIGHT_DATABASE_URL": url, "CLUSTERWRIGHT_LOG_LEVEL": "warning"}
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, "worker"], env=environment, stdout=out, stderr=out
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL to the worker alone: the process that computes must notice by itself."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


@dataclass(frozen=True)
class StormReport:
    kills: int
    jobs: int
    taken_again: int
    lost: int
    twice: int


class Storm:
    """A service, workers where there may be any, and jobs enough to keep them busy."""

    def __init__(self, url: str, folder: Path, workers: int, seed: int = 1) -> None:
        self.url = url
        self.database = Database(url)
        self.moments = random.Random(seed)
        self.name = f"storm-{time.time_ns():x}"
        self.tags: list[str] = []
        self.log = folder / "log"
        self.server = ServerProcess(url, folder / "server.log", **SETTINGS)
        self.workers = [] if self.database.is_sqlite else [WorkerProcess(url, self.log) for _ in range(workers)]
        self.server.start()

    def kill_one(self, most_wait_s: float) -> None:
        """Wait until somebody holds a job, and a moment longer; then kill whoever holds it."""
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            self.keep_busy()
            held = self._holders()
            if held:
                time.sleep(self.moments.uniform(0.0, most_wait_s))
                pid = self.moments.choice(sorted(held))
                if pid in self._holders():
                    self._kill(pid)
                    return
            time.sleep(0.02)
        raise RuntimeError(f"nobody takes a job: {self.log.read_text()[-2000:]}")

    def keep_busy(self) -> None:
        with self.database.reading() as session:
            live = session.connection().execute(
                text("SELECT count(*) FROM job WHERE state IN ('queued', 'running')")
            ).scalar_one()  # fmt: skip
        with httpx.Client(base_url=self.server.address, timeout=60) as client:
            for _ in range(len(self.workers) + 2 - live):
                tag = f"{self.name}-{len(self.tags)}"
                answer = client.post("/v1/recommendations", json=plan_request(tag, quick=True), headers=LATER)
                assert answer.status_code == 202, answer.text
                self.tags.append(tag)

    def _holders(self) -> set[int]:
        """Process ids of our workers, or of the service, that hold a job now."""
        ours = {w.pid for w in self.workers} or {self.server.pid}
        with self.database.reading() as session:
            names = session.exec(select(JobTable.worker).where(JobTable.state == "running")).all()
        return ours & {int(name.rpartition(":")[2]) for name in names if name}

    def _kill(self, pid: int) -> None:
        if pid == self.server.pid:
            self.server.kill()
            self.server.start()
            return
        number = next(n for n, worker in enumerate(self.workers) if worker.pid == pid)
        self.workers[number].kill()
        self.workers[number] = WorkerProcess(self.url, self.log)

    def report(self, kills: int) -> StormReport:
        """Waits until every job has ended."""
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            jobs = self._jobs()
            if all(job.finished_at is not None for job in jobs.values()):
                break
            time.sleep(0.2)
        with self.database.reading() as session:
            rows = session.exec(select(RecommendationTable)).all()
            stored = Counter(row.request["workloads"][0]["name"] for row in rows)
        return StormReport(
            kills=kills,
            jobs=len(self.tags),
            taken_again=sum(jobs[tag].attempts > 1 for tag in self.tags if tag in jobs),
            lost=sum(tag not in jobs or jobs[tag].state != "succeeded" or stored[tag] == 0 for tag in self.tags),
            twice=sum(stored[tag] > 1 for tag in self.tags),
        )

    def _jobs(self) -> dict[str, JobTable]:
        with self.database.reading() as session:
            rows = session.exec(select(JobTable).where(JobTable.kind == "recommendation")).all()
        by_tag = {row.request["workloads"][0]["name"]: row for row in rows}
        return {tag: by_tag[tag] for tag in self.tags if tag in by_tag}

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.server.stop()
        self.database.close()


def storm(url: str, kills: int, workers: int = 2, most_wait_s: float = MOST_WAIT_S) -> StormReport:
    """Kill ``kills`` times in the middle of a job; then count what became of every job."""
    with tempfile.TemporaryDirectory() as folder:
        one = Storm(url, Path(folder), workers)
        try:
            for _ in range(kills):
                one.kill_one(most_wait_s)
            return one.report(kills)
        finally:
            one.close()


def plans_per_minute(url: str, workers: int, jobs: int) -> float:
    """From the first plan to the last, so that the start of the workers does not count."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(url, Path(folder) / "server.log", **SETTINGS)
        server.start()
        started = [WorkerProcess(url, Path(folder) / "log") for _ in range(workers)]
        try:
            with httpx.Client(base_url=server.address, timeout=60) as client:
                _finish(client, [_ask(client, n) for n in range(2 * workers)])  # every worker has read the catalog
                jobs_made = _finish(client, [_ask(client, n) for n in range(jobs)])
        finally:
            for worker in started:
                worker.stop()
            server.stop()
    instants = [[_seconds(job[name]) for job in jobs_made] for name in ("started_at", "finished_at")]
    return 60.0 * len(jobs_made) / (max(instants[1]) - min(instants[0]))


def cancel_seconds(url: str, count: int) -> list[float]:
    """From the request to cancel a job whose optimiser is running to its being cancelled, in order of length."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(url, Path(folder) / "server.log", **SETTINGS, CLUSTERWRIGHT_JOBS_IN_SERVICE="1")
        server.start()
        try:
            with httpx.Client(base_url=server.address, timeout=60) as client:
                while len(found) < count:
                    address = _ask(client, len(found))
                    if not _is_solving(client, address):
                        continue
                    asked = time.monotonic()
                    if client.post(f"{address}/cancel").status_code == 409:
                        continue  # it was faster
                    while client.get(address).json()["state"] != "cancelled":
                        time.sleep(0.005)
                    found.append(time.monotonic() - asked)
        finally:
            server.stop()
    return sorted(found)


def _is_solving(client: httpx.Client, address: str) -> bool:
    """Waits for the optimiser; False when the job has ended before it was seen there."""
    while True:
        job = client.get(address).json()
        if job["finished_at"] is not None:
            return False
        if job["progress"] is not None and job["progress"]["stage"] == "solving":
            return True
        time.sleep(0.005)


def _ask(client: httpx.Client, number: int) -> str:
    answer = client.post("/v1/recommendations", json=plan_request(f"rate-{number}", quick=False), headers=LATER)
    assert answer.status_code == 202, answer.text
    return str(answer.headers["location"])


def _finish(client: httpx.Client, addresses: list[str]) -> list[dict[str, Any]]:
    until = time.monotonic() + WITHIN_S
    done: dict[str, dict[str, Any]] = {}
    while len(done) < len(addresses) and time.monotonic() < until:
        for address in addresses:
            if address not in done:
                job = client.get(address).json()
                if job["finished_at"] is None:
                    break
                assert job["state"] == "succeeded", job
                done[address] = job
        time.sleep(0.2)
    assert len(done) == len(addresses), "not all jobs ended"
    return list(done.values())


def _seconds(instant: str) -> float:
    return dt.datetime.fromisoformat(instant).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    kill = actions.add_parser("kill")
    kill.add_argument("--kills", type=int, default=50)
    kill.add_argument("--workers", type=int, default=2)
    rate = actions.add_parser("rate")
    rate.add_argument("--workers", type=int, default=4)
    rate.add_argument("--jobs", type=int, default=60)
    cancel = actions.add_parser("cancel")
    cancel.add_argument("--jobs", type=int, default=20)
    for action in (kill, rate, cancel):
        action.add_argument("--url", required=True, help="a migrated and seeded database")
    arguments = parser.parse_args()
    if arguments.action == "kill":
        print(storm(arguments.url, arguments.kills, arguments.workers))
        return
    if arguments.action == "cancel":
        seconds = cancel_seconds(arguments.url, arguments.jobs)
        median = seconds[len(seconds) // 2]
        print(f"{len(seconds)} running jobs cancelled: median {median:.2f} s, longest {seconds[-1]:.2f} s")
        return
    one = plans_per_minute(arguments.url, 1, arguments.jobs)
    several = plans_per_minute(arguments.url, arguments.workers, arguments.jobs)
    print(
        f"1 worker: {one:.1f} plans a minute; {arguments.workers} workers: {several:.1f}, {several / one:.2f} times"
        f" as many; {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end"
    )


if __name__ == "__main__":
    main()
