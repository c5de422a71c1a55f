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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.light_requests", description=__doc__)
    parser.add_argument("--clients", type=int, default=8, help="that solve (default 8)")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--per-second", type=float, default=10.0, help="light requests sent (default 10)")
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
        took_ms: dict[str, list[float]] = {read: [] for read in READS}
        try:
            with httpx.Client(base_url=server.address, timeout=300) as http:
                post(http, requests(1, 1, 90)[0])
            heavy = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.light_requests", "--solve", server.address, "--clients", str(options.clients)]
                + ["--estimates"] * options.estimates
            )  # fmt: skip
            time.sleep(3.0)
            used, began = cpu_s(server.pid), time.monotonic()
            draw = random.Random(1)
            with httpx.Client(base_url=server.address, timeout=60) as http:
                while time.monotonic() < began + options.seconds:
                    read = draw.choice(READS)
                    sent = time.perf_counter()
                    http.get(read).raise_for_status()
                    took_ms[read].append((time.perf_counter() - sent) * 1e3)
                    time.sleep(1.0 / options.per_second)
            used, peak = (cpu_s(server.pid) - used) / (time.monotonic() - began), peak_mib(server.pid)
            heavy.kill()
            heavy.wait()
        finally:
            server.stop()
    ordered = sorted(ms for each in took_ms.values() for ms in each)
    at = {percent: ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] for percent in (50, 90, 99)}
    print(
        f"{len(ordered)} light requests while {options.clients} clients solve: p50 {at[50]:.1f} ms, p90 {at[90]:.1f} ms,"
        f" p99 {at[99]:.1f} ms (bar {BAR_MS:.0f} ms), longest {ordered[-1]:.1f} ms"
    )
    for read, each in took_ms.items():
        print(f"  {read}: median {sorted(each)[len(each) // 2]:.1f} ms, longest {max(each):.1f} ms of {len(each)}")
    print(f"the server used {used:.2f} processors, peak memory {peak:.0f} MiB; load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
