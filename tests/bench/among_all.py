"""What proving a plan against every candidate changes: ``python -m tests.bench.among_all``.

The first plan that holds in simulation, its rivals believed as like candidates turned out, beside the plan that no
candidate beats when believed as screened (docs/decisions/0006). The same requests as ``python -m tests.bench``.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.assemble import assemble
from solver.confirm import Confirmations
from solver.confirmed_plans import solve_confirmed
from solver.planning import PlanningInput
from solver.recommend import screened
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

DEARER = 1e-4
"""Share of a price beyond which two plans differ."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.among_all", description=__doc__)
    parser.add_argument("--requests", type=int, default=24, help="of one workload (default 24)")
    parser.add_argument("--shared", type=int, default=6, help="of five workloads (default 6)")
    parser.add_argument("--seed", type=int, default=11)
    arguments = parser.parse_args()
    table = Table("workloads", "requests", "dearer", "mean", "largest", "simulations", "processor s, medians")
    spaces = SpaceCache()
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for workloads, count in ((1, arguments.requests), (5, arguments.shared)):
            planned = [planning_of(url, body, spaces) for body in requests(count, workloads, arguments.seed)]
            for planning in planned:
                solved(planning, spaces, among_all=False)  # warm
            pairs = [(solved(p, spaces, among_all=False), solved(p, spaces, among_all=True)) for p in planned]
            excess = [first[0] / whole[0] - 1.0 for first, whole in pairs if first[0] and whole[0]]
            table.add_row(
                str(workloads), str(len(excess)), str(sum(e > DEARER for e in excess)),
                f"{statistics.mean(excess):.2%}", f"{max(excess):.1%}",
                " → ".join(f"{statistics.mean(pair[part][1] for pair in pairs):.1f}" for part in (0, 1)),
                " → ".join(f"{statistics.median(pair[part][2] for pair in pairs):.2f}" for part in (0, 1)),
            )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    console.print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    return 0


def solved(planning: PlanningInput, spaces: SpaceCache, *, among_all: bool) -> tuple[float | None, int, float]:
    """(USD an hour, simulations, processor seconds)."""
    began, confirmations = time.process_time(), Confirmations()
    assembly = assemble(planning, [screened(planning, one, spaces) for one in planning.workloads])
    _, result, _ = solve_confirmed(assembly, planning, confirmations, among_all=among_all)
    return result.usd_per_hour, confirmations.simulations, time.process_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
