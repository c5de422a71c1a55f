"""Five questions about a plan of five workloads over the whole catalog: ``python -m tests.bench.why_answers``.

A service process is asked over HTTP, warm, right after it made the plan. Its processor time is what a busy machine does
not distort.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from tests.bench.planner import cpu_s, post, seeded_database
from tests.bench.server_process import ServerProcess
from tests.bench.workloads import requests

BAR_S = 3.0
SEED = 7


def questions(answer: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(what, path, body): four things the plan does without, and what its first target costs 20 % tighter."""
    used = {line["device"] for line in answer["plan"]}
    providers = {line["provider"] for line in answer["plan"]}
    devices = [d for d in ("h200-sxm", "l4", "h100-sxm", "mi325x") if d not in used][:2]
    provider = next(p for p in ("aws", "gcp", "azure") if p not in providers)
    workload = answer["request"]["workloads"][0]
    target = workload["targets"]["tpot_ms"]["p95"]
    curve = {"of": "targets.tpot_ms.p95", "workload": workload["name"], "points": [0.8 * target]}
    return [
        *((f"why not {d}", "why-not", {"devices": [d]}) for d in devices),
        (f"why not {provider}", "why-not", {"providers": [provider]}),
        ("why not TP8", "why-not", {"layouts": [{"tensor_parallel": 8}]}),
        ("TPOT 20 % tighter", "price-curve", curve),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.why_answers", description=__doc__)
    parser.add_argument("--plans", type=int, default=3, help="plans asked about (default 3)")
    arguments = parser.parse_args()
    console = Console(width=120)
    table = Table("plan", "question", "says", "s", "processor s", title="five why answers, each plan of five workloads")
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(seeded_database(Path(folder) / "bench.sqlite"), Path(folder) / "log")
        server.start()
        try:
            with httpx.Client(base_url=server.address, timeout=300) as client:
                for body in requests(arguments.plans, 5, SEED):
                    ask_five(client, server.pid, body, table)
        finally:
            server.stop()
    console.print(table)
    console.print(f"bar: {BAR_S:g} s together; {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    return 0


def ask_five(client: httpx.Client, pid: int, body: dict[str, Any], table: Table) -> None:
    answer = post(client, body)
    wall = used = 0.0
    for what, path, question in questions(answer):
        began, before = time.perf_counter(), cpu_s(pid)
        response = client.post(f"/v1/recommendations/{answer['id']}/{path}", json=question)
        response.raise_for_status()
        took, spent = time.perf_counter() - began, cpu_s(pid) - before
        wall, used = wall + took, used + spent
        found = response.json()
        first = found["answers"][0]["forced_in"] if path == "why-not" else found["points"][0]["solved"]
        table.add_row(answer["id"][-6:], what, first["says"], f"{took:.2f}", f"{spent:.2f}")
    table.add_row(answer["id"][-6:], "[bold]together[/bold]", "", f"{wall:.2f}", f"{used:.2f}", end_section=True)


if __name__ == "__main__":
    raise SystemExit(main())
