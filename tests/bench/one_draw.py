"""What may one draw of a long run decide? ``python -m tests.bench.one_draw``.

Is a rate too much whose first draw says so?
Requests are answered with every verdict that a quick look leaves open taken from the whole long run, and each is held against what the
first draw alone would have said at several distances from the target. Targets are at the 95th percentile, then at the 99th.

Does a rate hold whose first draw says so easily? Some candidates are replayed around what a crowd of requests completes, and held
against the lowest target at which a quick look and the first draw would be believed: by how much of the seats that draw has in
flight, how many percentiles of the whole long run are above that target, or have none since a draw is above capacity.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.capacity import runs
from solver.capacity.goal import DRAW_EASE, DRAW_EXCESS, QUICK_EASE, SPARSE_FRACTION, Goal
from solver.capacity.runs import Runs
from solver.errors import SaturatedError
from solver.planning.types import no_clock
from solver.recommend.recommend import recommend
from solver.replay.crowds import CROWDED_FRACTION
from solver.replay.draw_sizes import DRAW_SEEDS, QUICK_REQUESTS, QUICK_SEED
from solver.replay.long_run import Metric, draw_requests
from solver.replay.one_stream import capacity_requests_per_s
from solver.workload import Percentile
from tests.bench.beliefs import candidates
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

AROUND_CAPACITY = (0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0, 1.01, 1.03, 1.05, 1.1)
IN_FLIGHT = (0.0, 0.1, SPARSE_FRACTION, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, CROWDED_FRACTION)
METRICS: tuple[Metric, ...] = ("time_to_first_token_s", "time_per_output_token_s", "end_to_end_s")
EACH: tuple[Percentile, ...] = ("p50", "p95", "p99")
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


def eased(runs: Runs) -> Iterator[tuple[float, float]]:
    """Around capacity: requests in flight over seats in the first draw, and each percentile of the long run over the lowest target
    that would be believed to hold for it."""
    lane, requests = runs.tables.lane(runs), draw_requests(runs.configuration)
    capacity = capacity_requests_per_s(runs.configuration, runs.step_tables(), runs.traffic)
    for rate in (capacity * factor for factor in AROUND_CAPACITY):
        try:
            quick = lane.latencies(rate, (QUICK_SEED,), QUICK_REQUESTS)
            first = lane.latencies(rate, DRAW_SEEDS[:1], requests)
        except SaturatedError:
            continue
        whole = runs.long_run(rate)
        for metric, percentile in product(METRICS, EACH):
            believed = max(
                first.value_s(metric, percentile) / DRAW_EASE, quick.value_s(metric, percentile) / QUICK_EASE
            )
            yield first.in_flight_fraction, math.inf if whole is None else whole.value_s(metric, percentile) / believed


def print_eased(console: Console, found: list[tuple[float, float]]) -> None:
    """By requests in flight."""
    table = Table(
        "first draw's requests in flight over seats",
        "percentiles",
        "above the target in the long run",
        "above capacity",
    )
    for lowest, below in pairwise(IN_FLIGHT):
        those = [ratio for share, ratio in found if lowest <= share < below]
        above = [ratio for ratio in those if 1.0 < ratio < math.inf]
        worst = f", by up to {max(above) - 1.0:.0%}" if above else ""
        table.add_row(
            f"{lowest:.1f} to {below:.1f}", str(len(those)), f"{len(above)}{worst}", str(those.count(math.inf))
        )
    console.print(table)
    console.print(
        f"a first draw with at most {SPARSE_FRACTION:.1f} of the seats in flight is believed that a rate holds"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.one_draw", description=__doc__)
    parser.add_argument("--requests", type=int, default=12)
    parser.add_argument("--candidates", type=int, default=12, help="of each request, for the second table")
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
        those = candidates(url, "p95", options.requests, options.seed, options.candidates)
        around = [ease for of in those if of.runs.traffic.sessions is None for ease in eased(of.runs)]
    Console().print(table)
    Console().print(f"a first draw above {DRAW_EXCESS:.2f} of its target is believed")
    print_eased(Console(), around)


if __name__ == "__main__":
    main()
