"""What is simulated for an answer, and what that takes: ``python -m tests.bench.simulated``.

By kind of look at a rate: simulations, requests in them, and processor seconds, beside those of whole answers. Search spaces and step
tables are known before; nothing is cut short by a clock.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.capacity.runs import Runs
from solver.planning.types import no_clock
from solver.recommend.recommend import recommend
from solver.replay.draw_sizes import DRAW_SEEDS, FURTHER_SEEDS, QUICK_SEED
from solver.replay.latencies import Latencies
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

LOOKS = {
    (QUICK_SEED,): "quick look", DRAW_SEEDS[:1]: "first draw", DRAW_SEEDS[1:]: "the other draws", FURTHER_SEEDS: "further draws",
}  # fmt: skip
WARM = 5
"""Requests that fill spaces and step tables first."""


@contextmanager
def counted() -> Iterator[dict[str, Counter[str]]]:
    """By kind of look made meanwhile: simulations, requests, and processor time in nanoseconds."""
    found = {name: Counter[str]() for name in LOOKS.values()}
    simulated = Runs._simulated

    def noted(self: Runs, requests_per_s: float, seeds: tuple[int, ...], count: int) -> Latencies | None:
        began = time.process_time_ns()
        latencies = simulated(self, requests_per_s, seeds, count)
        found[LOOKS[seeds]].update(
            simulations=len(seeds), requests=len(seeds) * count, ns=time.process_time_ns() - began
        )
        return latencies

    with patch.object(Runs, "_simulated", noted):
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulated", description=__doc__)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    spaces, whole_s = SpaceCache(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        bodies = requests(WARM + options.requests, 1, options.seed)
        for body in bodies[:WARM]:
            recommend(replace(planning_of(url, body, spaces), clock=no_clock), spaces)
        with counted() as found:
            for body in bodies[WARM:]:
                planning = replace(planning_of(url, body, spaces), clock=no_clock)
                began = time.process_time()
                recommend(planning, spaces)
                whole_s += time.process_time() - began
    found["all"] = sum(found.values(), Counter())
    table = Table("of one answer", "simulations", "requests", "processor s", "of the answer")
    for name, of in found.items():
        spent_s = of["ns"] * 1e-9
        each = (of["simulations"] / options.requests, of["requests"] / options.requests, spent_s / options.requests)
        table.add_row(name, f"{each[0]:.0f}", f"{each[1]:,.0f}", f"{each[2]:.2f}", f"{spent_s / whole_s:.0%}")
    Console().print(table)
    Console().print(
        f"a whole answer takes {whole_s / options.requests:.2f} processor seconds; means of {options.requests}"
    )


if __name__ == "__main__":
    main()
