"""Processor time of whole answers, here and in an older checkout: ``python -m tests.bench.answer_time --against FOLDER``.

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
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
ONE = "--only"


def answered_in_s(database: str, number: int, seed: int) -> tuple[float, str]:
    """(processor seconds of one answer, what it says) in the checkout that this process imports."""
    from dataclasses import replace

    from service.recommendations.spaces import SpaceCache
    from solver.planning.types import no_clock
    from solver.recommend.recommend import recommend, space_of
    from tests.bench.planner import planning_of
    from tests.bench.workloads import requests

    spaces = SpaceCache()
    recommend(planning_of(database, requests(1, 1, seed + 1)[0], spaces), spaces)  # loads libraries and compiled code
    body = {**requests(number + 1, 1, seed)[number], "time_limit_s": 300}
    planning = replace(planning_of(database, body, spaces), clock=no_clock)
    space_of(planning, planning.workloads[0], spaces)
    began = time.process_time()
    found = recommend(planning, spaces)
    return time.process_time() - began, f"{found.solve.status.value} {found.usd_per_hour:.4f}"


def in_checkout(folder: Path, database: str, number: int, seed: int) -> tuple[float, str]:
    """The same in a process of another checkout."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        ONE,
        str(number),
        "--seed",
        str(seed),
        "--database",
        database,
    ]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    seconds, _, says = ran.stdout.strip().splitlines()[-1].partition(" ")
    return float(seconds), says


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.answer_time", description=__doc__)
    parser.add_argument(
        "--against", type=Path, default=ROOT, help="an older checkout, with the same tables in its database"
    )
    parser.add_argument("--requests", type=int, default=12)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--database", help=argparse.SUPPRESS)
    parser.add_argument(ONE, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        seconds, says = answered_in_s(options.database, options.only, options.seed)
        print(seconds, says)
        return
    from tests.bench.planner import seeded_database

    table = Table("request", "old, s", "new, s", "ratio", "same answer")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for number in range(options.requests):
            old, said = in_checkout(options.against.resolve(), url, number, options.seed)
            new, says = in_checkout(ROOT, url, number, options.seed)
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
