"""The figures of docs/performance.md, measured here and now: ``make bench``, or ``python -m tests.bench --quick``."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.planner import (
    candidates_per_s,
    measured_start,
    peak_mib,
    recommendations,
    seeded_database,
    simulated_requests_per_s,
)
from tests.bench.server_process import ServerProcess
from tests.solver.fleet import test_brute_force, test_properties

ROOT = Path(__file__).resolve().parents[2]
errors = Console(stderr=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--requests", type=int, default=60, help="recommendations of one workload (default 60)")
    parser.add_argument("--shared", type=int, default=12, help="recommendations of five workloads (default 12)")
    parser.add_argument("--quick", action="store_true", help="leave out the comparison with brute force")
    arguments = parser.parse_args()
    table = Table(title="clusterwright, measured on this machine")
    for heading in ("what", "measured", "bar"):
        table.add_column(heading, overflow="fold")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments.requests, arguments.shared, table)
    if not arguments.quick:
        with errors.status("comparing with brute force and verifying plans"):
            against_brute_force(table)
    Console().print(table)
    Console().print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    return 0


def measure(folder: Path, count: int, shared: int, table: Table) -> None:
    with errors.status("seeding a database"):
        url = seeded_database(folder / "bench.sqlite")
    server = ServerProcess(url, folder / "log")
    with errors.status("starting the service"):
        ready_s = measured_start(server)
    try:
        with errors.status(f"{count} recommendations over HTTP"):
            one = recommendations(server, count, 1)
        with errors.status(f"{shared} recommendations of five workloads"):
            five = recommendations(server, shared, 5)
        peak = peak_mib(server.pid)
    finally:
        server.stop()
    table.add_row(
        "recommendation, one workload, p50 / p95",
        f"{one.quantile(0.5) * 1e3:.0f} / {one.quantile(0.95) * 1e3:.0f} ms",
        "≤ 250 / 500 ms",
    )
    table.add_row("… processor time of the server, mean", f"{one.mean_cpu_s * 1e3:.0f} ms", "–")
    table.add_row("… proven", f"{one.proven} of {count} ({one.infeasible} infeasible)", "all")
    table.add_row(
        "recommendation, five workloads, p50 / max", f"{five.quantile(0.5):.2f} / {max(five.seconds):.2f} s", "≤ 1.5 s"
    )
    table.add_row("… processor time of the server, mean", f"{five.mean_cpu_s:.2f} s", "–")
    table.add_row("… proven", f"{five.proven} of {shared} ({five.infeasible} infeasible)", "all")
    with errors.status("screening candidates, replaying requests"):
        candidates, per_s = candidates_per_s(url)
        replayed = simulated_requests_per_s(url)
    table.add_row(f"candidates evaluated ({candidates:,} at once)", f"{per_s:,.0f} /s", "≥ 200,000 /s")
    table.add_row("requests simulated, one core", f"{replayed:,.0f} /s", "–")
    table.add_row("service start to ready", f"{ready_s:.2f} s", "≤ 3 s")
    table.add_row("peak memory of the service", f"{peak:.0f} MiB ({peak * 2**20 / 1e6:.0f} MB)", "≤ 500 MB")


def against_brute_force(table: Table) -> None:
    """Runs the tests that compare; their number of instances is their own."""
    tests = (
        ("MILP equals brute force", test_brute_force.INSTANCES, "test_brute_force.py::test_highs_pruned_equals_enumeration"),
        (
            "plans that verify accepts",
            test_properties.INSTANCES,
            "test_properties.py::test_verify_accepts_every_plan_and_rejects_its_mutations",
        ),
    )  # fmt: skip
    for what, instances, test in tests:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", f"tests/solver/fleet/{test}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        verdict = f"all of {instances}" if ran.returncode == 0 else f"FAILED: {ran.stdout.splitlines()[-1]}"
        table.add_row(what, verdict, "all of ≥ 500")


if __name__ == "__main__":
    raise SystemExit(main())
