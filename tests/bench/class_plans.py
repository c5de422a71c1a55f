"""Medians of the fleet optimiser over traffic classes and the whole catalog: ``python -m tests.bench.class_plans``.

From a finished table of candidates to a verified plan. Seconds are wall-clock, processor seconds are this process's: on
a busy machine only the latter say anything.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from solver.fleet import SolveOptions, solve_fleet, verify
from tests.bench.class_fleets import catalog_fleets
from tests.bench.planner import seeded_database

STOCK = (4, 200)
CASES = (
    ("5 × 10, catalog's stock", 5, 10, None, 0.0, "proven ≤ 3 s"),
    ("5 × 10, 4 to 200 nodes an offer", 5, 10, STOCK, 0.0, "proven ≤ 3 s"),
    ("20 × 20, catalog's stock", 20, 20, None, 0.01, "gap ≤ 1 % in 30 s"),
    ("20 × 20, 4 to 200 nodes an offer", 20, 20, STOCK, 0.01, "gap ≤ 1 % in 30 s"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.class_plans", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--time-limit-s", type=float, default=30.0, help="for the solver, each plan (default 30)")
    parser.add_argument("--only", type=int, choices=range(len(CASES)), help="one of the cases, from 0")
    arguments = parser.parse_args()
    table = Table(title="workloads × traffic classes, whole catalog")
    for heading in ("what", "seed", "candidates", "USD/h", "bound", "true gap", "seconds", "processor s", "bar"):
        table.add_column(heading, overflow="fold")
    with tempfile.TemporaryDirectory() as folder:
        fleets = catalog_fleets(seeded_database(Path(folder) / "bench.sqlite"))
    for number, (name, workloads, classes, stock, gap_asked, bar) in enumerate(CASES):
        if arguments.only not in (None, number):
            continue
        gaps, seconds, cpu = [], [], []
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            problem = fleets.problem(seed, workloads, classes, stock)
            began, used = time.perf_counter(), time.process_time()
            result = solve_fleet(problem, SolveOptions(time_limit_s=arguments.time_limit_s, gap_fraction=gap_asked))
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            wrong = verify(problem, result)
            if wrong or result.objective is None or result.bound is None:
                raise SystemExit(f"{name}, seed {seed}: {result.status} {wrong[:3]}")
            gaps.append(result.gap_fraction or 0.0)
            table.add_row(
                name, str(seed), f"{result.candidates:,}", f"{result.objective:.2f}", f"{result.bound:.2f}",
                f"{gaps[-1]:.3%}", f"{seconds[-1]:.1f}", f"{cpu[-1]:.1f}", bar,
            )  # fmt: skip
        table.add_row(
            name, "median", "", "", "", f"{statistics.median(gaps):.3%}", f"{statistics.median(seconds):.1f}",
            f"{statistics.median(cpu):.1f}", bar, end_section=True,
        )  # fmt: skip
    Console(width=150).print(table)
    Console().print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
