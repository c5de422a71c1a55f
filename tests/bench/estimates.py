"""A thousand unlike deployments in one POST /v1/estimates: ``python -m tests.bench.estimates``.

After a request of ten, which waits for what the service loads ahead. The service's time limit is off: on a busy machine the processor
time says more than the clock.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.bench.planner import cpu_s, peak_mib, seeded_database
from tests.bench.server_process import ServerProcess

LLMS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma-3-27b")
DEVICES = ("h100-sxm", "h200-sxm", "b200-sxm", "l40s", "a100-sxm-80", "mi300x")
BAR_S = 5.0
DEGREES = (1, 2, 4, 8)
PROMPTS = (300, 1_000, 3_000)
LOADS: tuple[dict[str, Any], ...] = (
    {"kind": "open", "requests_per_s": 0.5},
    {"kind": "open", "requests_per_s": 2.0},
    {"kind": "closed", "concurrency": 16},
    {"kind": "closed", "concurrency": 64},
)


def asked(count: int) -> list[dict[str, Any]]:
    """Different deployments, the first ``count`` of a grid walked so that all of it is met."""
    grid = list(itertools.product(PROMPTS, LOADS, DEGREES, DEVICES, LLMS))
    step = next(s for s in itertools.count(211) if all(s % p for p in (2, 3, 5)))
    return [
        {
            "llm": llm,
            "device": device,
            "layout": {"tensor_parallel": degree},
            "traffic": {
                "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "p95": 2.5 * prompt},
                "output_tokens": {"distribution": "lognormal", "mean": 250, "p95": 600},
            },
            "load": load,
        }
        for prompt, load, degree, device, llm in (grid[i * step % len(grid)] for i in range(count))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.estimates", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="deployments in one request (default 1000)")
    parser.add_argument("--times", type=int, default=3, help="requests sent (default 3)")
    arguments = parser.parse_args()
    body = {"estimates": asked(arguments.count)}
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        server = ServerProcess(url, Path(folder) / "log", CLUSTERWRIGHT_ESTIMATE_TIME_LIMIT_S="300")
        server.start()
        try:
            httpx.post(f"{server.address}/v1/estimates", json={"estimates": asked(10)}, timeout=300)
            for _ in range(arguments.times):
                used, began = cpu_s(server.pid), time.perf_counter()
                response = httpx.post(f"{server.address}/v1/estimates", json=body, timeout=300)
                took, used = time.perf_counter() - began, cpu_s(server.pid) - used
                if response.status_code != 200:
                    print(response.text[:2000], file=sys.stderr)
                    return 1
                outcomes = Counter(one["outcome"] for one in response.json()["estimates"])
                print(
                    f"{arguments.count:,} estimates in {took:.2f} s (bar {BAR_S:g} s), {used:.2f} processor seconds of the server"
                    f" ({dict(outcomes)})"
                )
            print(f"most memory of the service: {peak_mib(server.pid):.0f} MiB")
        finally:
            server.stop()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
