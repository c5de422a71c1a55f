"""Is a rate too much whose first draw of a long run says so? ``python -m tests.bench.one_draw``.

Requests are answered with every verdict that a quick look leaves open taken from the whole long run, and each is held against what the
first draw alone would have said at several distances from the target. Targets are at the 95th percentile, then at the 99th.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.capacity import runs
from solver.capacity.goal import DRAW_EXCESS, Goal
from solver.capacity.runs import Runs
from solver.planning.types import no_clock
from solver.recommend.recommend import recommend
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

DISTANCES = (1.0, 1.02, 1.05, 1.1, 1.2)

Verdict = tuple[float, float]
"""Worst value over its target: of the first draw, and of the whole long run."""


@contextmanager
def verdicts() -> Iterator[list[Verdict]]:
    """Those that are reached meanwhile, with no rate called too much for its first draw."""
    found: list[Verdict] = []
    holds = Runs.holds

    def noted(self: Runs, requests_per_s: float, goal: Goal, *, simulate: bool = True) -> bool | None:
        looks = self.by_rate.get(requests_per_s)
        before = 0 if looks is None else looks.known
        verdict = holds(self, requests_per_s, goal, simulate=simulate)
        looks = self.by_rate.get(requests_per_s)
        if looks is not None and before < looks.known == 3 and looks.first is not None and looks.whole is not None:
            found.append((goal.ratio_of(looks.first), goal.ratio_of(looks.whole)))
        return verdict

    with patch.object(Runs, "holds", noted), patch.object(runs, "DRAW_EXCESS", math.inf):
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.one_draw", description=__doc__)
    parser.add_argument("--requests", type=int, default=12)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    table = Table("targets at", "verdicts", "first draw above", "of these", "hold in the long run")
    spaces = SpaceCache()
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for percentile in ("p95", "p99"):
            with verdicts() as found:
                for body in requests(options.requests, 1, options.seed):
                    for one in body["workloads"]:
                        one["targets"] = {name: {percentile: limits["p95"]} for name, limits in one["targets"].items()}
                    recommend(replace(planning_of(url, body, spaces), clock=no_clock), spaces)
            for distance in DISTANCES:
                above = [whole for first, whole in found if first > distance]
                held = sum(whole <= 1.0 for whole in above)
                table.add_row(percentile, str(len(found)), f"{distance:.2f}", str(len(above)), str(held))
            table.add_section()
    Console().print(table)
    Console().print(f"a first draw above {DRAW_EXCESS:.2f} of its target is believed")


if __name__ == "__main__":
    main()
