"""Whole recommendations of workloads with traffic classes over HTTP: ``python -m tests.bench.class_requests``.

From the request to the stored answer: classes screened, planned together, and every mix simulated. Seconds are what the
client waits, processor seconds the server's; on a busy machine only the latter say anything. ``--file`` asks for a
request of your own.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from tests.bench.planner import cpu_s, post, seeded_database
from tests.bench.server_process import ServerProcess
from tests.bench.workloads import LLMS, workload

CASES = ((1, 3), (1, 10), (5, 10))
WAIT_S = 300.0


def request(workloads: int, classes: int, seed: int) -> dict[str, Any]:
    """Each workload's classes differ in lengths, rate and targets; the same for the same seed."""
    rng = random.Random(f"{workloads} {classes} {seed}")
    made = []
    for w in range(workloads):
        parts = [workload(rng, f"c{k}") for k in range(classes)]
        made.append(
            {
                "name": f"w{w}",
                "llm": LLMS[w % len(LLMS)],
                "context_tokens": 32768,
                "traffic_classes": [
                    part["traffic"] | {"name": part["name"], "targets": part["targets"]} for part in parts
                ],
            }
        )
    return {"workloads": made}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.class_requests", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", type=int, choices=range(len(CASES)), help="one of the cases, from 0")
    parser.add_argument("--alternatives", type=int, default=0)
    parser.add_argument("--file", type=Path, help="a request of your own instead")
    arguments = parser.parse_args()
    table = Table(title="requests with traffic classes, whole catalog")
    for heading in (
        "workloads × classes",
        "seed",
        "outcome",
        "USD/h",
        "gap",
        "rounds",
        "simulations",
        "s",
        "processor s",
    ):
        table.add_column(heading, overflow="fold")
    cases: list[tuple[str, str, dict[str, Any]]] = [
        (f"{w} × {k}", str(seed), request(w, k, seed))
        for number, (w, k) in enumerate(CASES)
        if arguments.only in (None, number)
        for seed in range(1, arguments.seeds + 1)
    ]
    if arguments.file is not None:
        cases = [(arguments.file.stem, "", json.loads(arguments.file.read_text(encoding="utf-8")))]
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(seeded_database(Path(folder) / "bench.sqlite"), Path(folder) / "server.log")
        server.start()
        try:
            with httpx.Client(
                base_url=server.address, timeout=WAIT_S, headers={"Prefer": f"wait={WAIT_S:.0f}"}
            ) as client:
                for name, seed, body in cases:
                    used, began = cpu_s(server.pid), time.perf_counter()
                    found = post(client, body | {"alternatives": arguments.alternatives})
                    seconds, solve = time.perf_counter() - began, found["solve"]
                    table.add_row(
                        name, seed, found["outcome"], str(solve["usd_per_hour"]), f"{solve['gap_fraction'] or 0.0:.2%}",
                        str(solve["confirmation_rounds"]), str(solve["simulations"]), f"{seconds:.1f}",
                        f"{cpu_s(server.pid) - used:.1f}",
                    )  # fmt: skip
        finally:
            server.stop()
    Console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
