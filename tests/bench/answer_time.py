"""Processor time of whole answers, here and in an older checkout: ``python -m tests.bench.answer_time --against FOLDER``.

``--sessions`` asks the requests of ``tests.bench.spread_plans``, by case and routing, in place of those of ``tests.bench.workloads``.
Each request is answered by both one after the other, on the same machine within seconds, so that the ratio says something where other
work makes single figures wander. Search spaces are known before; nothing is cut short by a clock.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
ONE, SEED = "--only", "--seed-database"


def answered_in_s(database: str, number: int, seed: int, workloads: int, sessions: bool) -> tuple[float, str]:
    """(processor seconds of one answer, what it says) in the checkout that this process imports."""
    from dataclasses import replace

    from service.recommendations.spaces import SpaceCache
    from solver.planning.types import no_clock
    from solver.recommend.recommend import recommend, space_of
    from tests.bench.planner import planning_of
    from tests.bench.spread_plans import CASES, ROUTINGS
    from tests.bench.spread_plans import body as of_sessions
    from tests.bench.workloads import requests

    spaces = SpaceCache()
    first = planning_of(database, requests(1, 1, seed + 1)[0], spaces)
    recommend(replace(first, clock=no_clock), spaces)  # loads libraries and compiled code
    if sessions:
        case, routing = next(islice(product(CASES.values(), ROUTINGS), number, None))
        body = of_sessions(case, routing)
    else:
        body = {**requests(number + 1, workloads, seed)[number], "time_limit_s": 300}
    planning = replace(planning_of(database, body, spaces), clock=no_clock)
    for workload in planning.workloads:
        space_of(planning, workload, spaces)
    began = time.process_time()
    found = recommend(planning, spaces)
    return time.process_time() - began, f"{found.solve.status.value} {found.usd_per_hour:.4f}"


def in_checkout(folder: Path, *arguments: str) -> str:
    """The last line that this file prints in a process of another checkout."""
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip().splitlines()[-1]


def answer_in(folder: Path, database: str, number: int, seed: int, workloads: int, sessions: bool) -> tuple[float, str]:
    """``answered_in_s`` in a process of another checkout."""
    which = ("--seed", str(seed), "--workloads", str(workloads), *(["--sessions"] if sessions else []))
    line = in_checkout(folder, ONE, str(number), *which, "--database", database)
    seconds, _, says = line.partition(" ")
    return float(seconds), says


def seeded(path: str) -> str:
    """The address of a new database with the catalog of the checkout that this process imports."""
    from tests.bench.planner import seeded_database

    return seeded_database(Path(path))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.answer_time", description=__doc__)
    parser.add_argument(
        "--against", type=Path, default=ROOT, help="an older checkout, which answers from its own catalog"
    )
    parser.add_argument("--requests", type=int, default=12)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--workloads", type=int, default=1, help="of a request (default 1)")
    parser.add_argument("--sessions", action="store_true", help="requests of sessions: at most 20, four to a case")
    parser.add_argument("--every", type=int, default=1, help="ask each so many-th request only (default 1)")
    parser.add_argument("--database", help=argparse.SUPPRESS)
    parser.add_argument(ONE, type=int, help=argparse.SUPPRESS)
    parser.add_argument(SEED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        seconds, says = answered_in_s(options.database, options.only, options.seed, options.workloads, options.sessions)
        print(seconds, says)
        return
    if options.seed_database is not None:
        print(seeded(options.seed_database))
        return
    older = options.against.resolve()
    table = Table("request", "old, s", "new, s", "ratio", "same answer")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        theirs = in_checkout(older, SEED, f"{folder}/older.sqlite")
        ours = in_checkout(ROOT, SEED, f"{folder}/newer.sqlite")
        for number in range(0, options.requests, options.every):
            old, said = answer_in(older, theirs, number, options.seed, options.workloads, options.sessions)
            new, says = answer_in(ROOT, ours, number, options.seed, options.workloads, options.sessions)
            ratios.append(new / old)
            table.add_row(
                str(number),
                f"{old:.2f}",
                f"{new:.2f}",
                f"{new / old:.2f}",
                "yes" if said == says else f"{said} → {says}",
            )
    Console().print(table)
    Console().print(f"median ratio {statistics.median(ratios):.2f}; load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
