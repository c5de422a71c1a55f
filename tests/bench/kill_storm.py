"""Kill the service with SIGKILL during a storm of uploads, again and again, and count what was lost.

    python -m tests.bench.kill_storm --url sqlite:////tmp/storm.sqlite --kills 50

Clients behave as the agent does: an upload keeps its Idempotency-Key and is sent again until it is answered. The
database must be migrated and seeded. Lost: an answered upload whose record is not there. Duplicated: an upload with
two records. Half: a record without its upload or the reverse.
"""

import argparse
import copy
import json
import random
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import text

from service.database import Database
from tests.bench.server_process import ServerProcess

RUN: dict[str, Any] = {
    "context": {
        "device": "h200-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
        "engine": {"name": "vllm", "version": "0.24.0"},
    },
    "load": {"kind": "closed", "concurrency": 4, "requests": 40},
    "traffic": {
        "prompt_tokens": {"distribution": "fixed", "tokens": 500},
        "output_tokens": {"distribution": "fixed", "tokens": 100},
    },
    "results": {
        "completed": 40, "failed": 0, "duration_s": 10.0, "requests_per_s": 4.0, "output_tokens_per_s": 400.0,
        "ttft_ms": {"mean": 80.0}, "tpot_ms": {"mean": 9.0}, "e2e_ms": {"mean": 971.0},
    },
}  # fmt: skip


@dataclass(frozen=True)
class StormReport:
    kills: int
    acknowledged: int
    sent_again: int
    lost: int
    duplicated: int
    half: int


class Storm:
    """Clients that upload until told to stop; each remembers what was acknowledged."""

    def __init__(self, address: str, name: str) -> None:
        self.address = address
        self.name = name
        self.acknowledged: dict[str, str] = {}
        self.sent_again = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, clients: int) -> None:
        self._threads = [threading.Thread(target=self._upload, args=(n,)) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """No new uploads; those under way are sent until they are answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _upload(self, number: int) -> None:
        count = 0
        client = httpx.Client(base_url=self.address, timeout=10)
        while not self._stop.is_set():
            key = f"{self.name}-{number}-{count}"
            count += 1
            run = copy.deepcopy(RUN)
            run["context"]["notes"] = key
            attempts = 0
            while True:
                attempts += 1
                try:
                    answer = client.post("/v1/benchmarks", json=run, headers={"Idempotency-Key": key})
                    if answer.status_code in (200, 201):
                        break
                except httpx.HTTPError:
                    client.close()
                    client = httpx.Client(base_url=self.address, timeout=10)
                time.sleep(0.05)
            with self._lock:
                self.acknowledged[key] = answer.json()["id"]
                self.sent_again += attempts > 1
        client.close()


def break_connections(url: str) -> None:
    """End every other connection to this PostgreSQL database at once, in the middle of whatever it does."""
    database = Database(url)
    with database.writing() as session:
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        session.connection().execute(text(f"{ending} WHERE datname = current_database() AND pid <> pg_backend_pid()"))
    database.close()


def storm(url: str, kills: int, clients: int = 8, seed: int = 1, what: str = "service") -> StormReport:
    """Kill the service, or break its connections, ``kills`` times at random moments of the storm; then compare answers
    with the database.
    """
    moments = random.Random(seed)
    name = f"storm-{moments.getrandbits(32):x}-{time.time_ns():x}"
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(url, Path(folder) / "server.log")
        clients_ = Storm(server.address, name)
        server.start()
        clients_.start(clients)
        try:
            for _ in range(kills):
                time.sleep(moments.uniform(0.05, 1.0))
                if what == "connections":
                    break_connections(url)
                    continue
                server.kill()
                server.start()
        finally:
            clients_.finish()
            server.stop()
    return _compare(url, name, clients_, kills)


def _compare(url: str, name: str, clients: Storm, kills: int) -> StormReport:
    database = Database(url)
    with database.reading() as session:
        rows = session.connection().execute(
            text("SELECT b.id, b.document, u.id FROM benchmark b LEFT JOIN benchmark_upload u ON u.id = b.upload_id")
        ).all()  # fmt: skip
        empty = session.connection().execute(
            text("SELECT count(*) FROM benchmark_upload u WHERE NOT EXISTS "
                 "(SELECT 1 FROM benchmark b WHERE b.upload_id = u.id)")
        ).scalar_one()  # fmt: skip
    database.close()
    stored: dict[str, list[str]] = {}
    orphans = 0
    for benchmark_id, document, upload_id in rows:
        notes = _notes(document)
        if notes.startswith(name):
            stored.setdefault(notes, []).append(benchmark_id)
        orphans += upload_id is None
    return StormReport(
        kills=kills,
        acknowledged=len(clients.acknowledged),
        sent_again=clients.sent_again,
        lost=sum(benchmark_id not in stored.get(key, []) for key, benchmark_id in clients.acknowledged.items()),
        duplicated=sum(len(ids) > 1 for ids in stored.values()),
        half=orphans + int(empty),
    )


def _notes(document: Any) -> str:
    return str((json.loads(document) if isinstance(document, str) else document)["context"]["notes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="a migrated and seeded database")
    parser.add_argument(
        "--what", choices=("service", "connections"), default="service", help="connections: PostgreSQL's"
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    print(storm(arguments.url, arguments.kills, arguments.clients, what=arguments.what))


if __name__ == "__main__":
    main()
