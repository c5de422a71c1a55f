"""Mixed use for a while: several services and workers on one PostgreSQL, many clients, what light requests take, memory.

    python -m tests.hostile.soak --url postgresql+psycopg://… --minutes 30 --clients 32

The database is migrated and seeded; nobody else's workers may run on it. Light requests are reads and uploads; one request in
forty is an estimate, one in four hundred a plan. Bars: no 5xx, p99 of light requests ≤ 150 ms, resident memory of each
process within ± 5 % of its mean over the last half. Exit code 1 where a bar is missed. Where the server's autovacuum, which is
PostgreSQL's default, is off, its work is done from here once a minute: else every count of a list reads whole tables.
"""

import argparse
import copy
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy

from tests.bench.server_process import START, ServerProcess
from tests.hostile.corpus import prepared, status_kb
from tests.service.bodies import ESTIMATE, RECOMMENDATION, changed
from tests.service.test_benchmarks import RUN

P99_BAR_MS = 150.0
MEMORY_BAR = 0.05
ESTIMATE_EVERY = 40
PLAN_EVERY = 400
READS = (
    "/v1/devices?limit=20", "/v1/devices/h200-sxm", "/v1/offers?device=h200-sxm&limit=20", "/v1/llms/llama-3.1-70b",
    "/v1/recommendations?limit=5", "/v1/benchmarks?limit=5", "/v1/jobs?limit=5", "/healthz", "/readyz",
)  # fmt: skip


VACUUM_EVERY_S = 60.0
"""As PostgreSQL's ``autovacuum_naptime`` is unless set."""


def vacuum(url: str, until: float) -> None:
    """What autovacuum would do, where it is off."""
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if connection.exec_driver_sql("show autovacuum").scalar_one() == "on":
            return
        print("autovacuum is off: VACUUM (ANALYZE) once a minute from here")
        while time.monotonic() + VACUUM_EVERY_S < until:
            time.sleep(VACUUM_EVERY_S)
            connection.exec_driver_sql("vacuum (analyze)")


class Soak:
    def __init__(self, addresses: list[str], seed: int) -> None:
        self.addresses = addresses
        self.light_ms: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.torn = 0
        self._seed = seed
        self._lock = threading.Lock()

    def client(self, number: int, until: float) -> None:
        draw = random.Random(self._seed * 1_000 + number)
        count = 0
        with httpx.Client(base_url=self.addresses[number % len(self.addresses)], timeout=120) as http:
            while time.monotonic() < until:
                count += 1
                choice = draw.random()
                began = time.perf_counter()
                try:
                    answer, light = self._one(http, choice, draw, f"soak {self._seed} {number} {count}")
                except httpx.TransportError:
                    with self._lock:
                        self.torn += 1
                    continue
                took_ms = (time.perf_counter() - began) * 1e3
                with self._lock:
                    self.statuses[answer.status_code] += 1
                    if light:
                        self.light_ms.append(took_ms)
                time.sleep(draw.expovariate(4.0))

    @staticmethod
    def _one(http: httpx.Client, choice: float, draw: random.Random, tag: str) -> tuple[httpx.Response, bool]:
        if choice < 1 / PLAN_EVERY:
            asked = changed(RECOMMENDATION, "workloads/0/traffic/requests_per_s", draw.uniform(1, 50)) | {
                "time_limit_s": 5
            }
            return http.post("/v1/recommendations", json=asked, headers={"Prefer": "respond-async"}), False
        if choice < 1 / ESTIMATE_EVERY:
            return http.post("/v1/estimates", json={"estimates": [ESTIMATE]}), False
        if choice < 0.3:
            run: dict[str, Any] = copy.deepcopy(RUN)
            run["context"]["notes"] = tag
            return http.post("/v1/benchmarks", json=run), True
        return http.get(draw.choice(READS)), True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--services", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    prepared(options.url)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers = [ServerProcess(options.url, folder / f"service-{n}.log") for n in range(options.services)]
        for server in servers:
            server.start()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_")}
        with (folder / "worker.log").open("ab") as log:
            workers = [
                subprocess.Popen(
                    [sys.executable, "-c", START, "worker"], stdout=log, stderr=log, start_new_session=True,
                    env=environment | {"CLUSTERWRIGHT_DATABASE_URL": options.url},
                )
                for _ in range(options.workers)
            ]  # fmt: skip
        soak = Soak([server.address for server in servers], options.seed)
        until = time.monotonic() + options.minutes * 60
        clients = [threading.Thread(target=soak.client, args=(n, until)) for n in range(options.clients)]
        pids = {f"service {n}": s.pid for n, s in enumerate(servers)} | {
            f"worker {n}": w.pid for n, w in enumerate(workers)
        }
        memory: dict[str, list[int]] = {process: [] for process in pids}
        try:
            for client in clients:
                client.start()
            threading.Thread(target=vacuum, args=(options.url, until), daemon=True).start()
            while time.monotonic() < until:
                for process, pid in pids.items():
                    memory[process].append(status_kb(pid, "VmRSS"))
                time.sleep(2.0)
            for client in clients:
                client.join(150)
        finally:
            for server in servers:
                server.stop()
            for worker in workers:
                worker.terminate()
                worker.wait(30)
    raise SystemExit(not told(soak, memory, options.minutes))


def told(soak: Soak, memory: dict[str, list[int]], minutes: float) -> bool:
    """Prints the figures; whether every bar is met."""
    light = sorted(soak.light_ms)
    p50, p99 = light[len(light) // 2], light[int(len(light) * 0.99)]
    failures = sum(count for status, count in soak.statuses.items() if status >= 500)
    print(
        f"{minutes:g} minutes, load average {os.getloadavg()[0]:.1f}: {sum(soak.statuses.values())} answers {dict(soak.statuses)}"
    )
    print(f"5xx {failures}, torn {soak.torn}; light requests p50 {p50:.1f} ms, p99 {p99:.1f} ms (bar {P99_BAR_MS:.0f})")
    met = failures == 0 and soak.torn == 0 and p99 <= P99_BAR_MS
    for process, samples in memory.items():
        first = samples[0] / 1e3
        half = samples[len(samples) // 2 :]
        mean = sum(half) / len(half)
        spread = max(max(half) - mean, mean - min(half)) / mean
        met = met and spread <= MEMORY_BAR
        print(
            f"{process}: {mean / 1e3:.0f} MB over the last half, ± {spread:.1%} (bar ± {MEMORY_BAR:.0%}); {first:.0f} MB at first"
        )
    return met


if __name__ == "__main__":
    main()
