"""What light requests take while others solve: ``python -m tests.bench.light_requests``.

Eight clients send recommendations one after the other (those of the bench: one workload, whole catalog), each in a thread of a process
of its own; one client reads devices, offers, models and stored recommendations meanwhile, ten times a second. SQLite, one service.
``--estimates`` has the clients send 1,000 estimates a call instead.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from tests.bench.estimates import asked
from tests.bench.planner import cpu_s, peak_mib, post, seeded_database
from tests.bench.server_process import ServerProcess
from tests.bench.workloads import requests

BAR_MS = 100.0
CLIENTS, PER_SECOND = 8, 10.0
READS = (
    "/v1/devices?limit=20", "/v1/devices/h200-sxm", "/v1/offers?device=h200-sxm&limit=20", "/v1/llms/llama-3.1-70b",
    "/v1/recommendations?limit=5", "/v1/benchmarks?limit=5", "/v1/jobs?limit=5", "/healthz", "/readyz",
)  # fmt: skip


def solving(address: str, number: int, estimates: bool) -> None:
    """One client that sends heavy requests until it is ended."""
    count = 0
    with httpx.Client(base_url=address, timeout=300) as http:
        while True:
            count += 1
            if estimates:
                http.post("/v1/estimates", json={"estimates": asked(1_000)})
            else:
                http.post("/v1/recommendations", json=requests(1, 1, 1_000 * number + count)[0])


def solve_for_ever(address: str, clients: int, estimates: bool) -> None:
    threads = [
        threading.Thread(target=solving, args=(address, n, estimates), daemon=True) for n in range(1, 1 + clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def taken_ms(
    server: ServerProcess,
    seconds: float,
    clients: int = CLIENTS,
    per_second: float = PER_SECOND,
    *,
    estimates: bool = False,
) -> dict[str, list[float]]:
    """What each kind of light request took, one after the other, while so many clients solve."""
    took: dict[str, list[float]] = {read: [] for read in READS}
    heavy = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.light_requests", "--solve", server.address, "--clients", str(clients)]
        + ["--estimates"] * estimates
    )
    try:
        time.sleep(3.0)
        until, draw = time.monotonic() + seconds, random.Random(1)
        with httpx.Client(base_url=server.address, timeout=60) as http:
            while time.monotonic() < until:
                read = draw.choice(READS)
                sent = time.perf_counter()
                http.get(read).raise_for_status()
                took[read].append((time.perf_counter() - sent) * 1e3)
                time.sleep(1.0 / per_second)
    finally:
        heavy.kill()
        heavy.wait()
    return took


def at_percent(took: dict[str, list[float]], percent: float) -> float:
    """Of all of them."""
    ordered = sorted(ms for each in took.values() for ms in each)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.light_requests", description=__doc__)
    parser.add_argument("--clients", type=int, default=CLIENTS, help="that solve (default 8)")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--per-second", type=float, default=PER_SECOND, help="light requests sent (default 10)")
    parser.add_argument("--estimates", action="store_true")
    parser.add_argument("--solve", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve is not None:
        solve_for_ever(options.solve, options.clients, options.estimates)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        # Clients wait for one another: with as many as these the queue is never full, and each is in time.
        server = ServerProcess(url, Path(folder) / "log", CLUSTERWRIGHT_ESTIMATE_TIME_LIMIT_S="120")
        server.start()
        try:
            with httpx.Client(base_url=server.address, timeout=300) as http:
                post(http, requests(1, 1, 90)[0])
            used, began = cpu_s(server.pid), time.monotonic()
            took = taken_ms(server, options.seconds, options.clients, options.per_second, estimates=options.estimates)
            used, peak = (cpu_s(server.pid) - used) / (time.monotonic() - began), peak_mib(server.pid)
        finally:
            server.stop()
    count = sum(len(each) for each in took.values())
    print(
        f"{count} light requests while {options.clients} clients solve: p50 {at_percent(took, 50):.1f} ms,"
        f" p90 {at_percent(took, 90):.1f} ms, p99 {at_percent(took, 99):.1f} ms (bar {BAR_MS:.0f} ms),"
        f" longest {at_percent(took, 100):.1f} ms"
    )
    for read, each in took.items():
        print(f"  {read}: median {sorted(each)[len(each) // 2]:.1f} ms, longest {max(each):.1f} ms of {len(each)}")
    print(f"the server used {used:.2f} processors, peak memory {peak:.0f} MiB; load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
