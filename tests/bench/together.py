"""Several workloads planned together against each alone: ``python -m tests.bench.together``.

Sharing nodes can only save. What the joint plan costs, what is proven of it, and the sum of the plans that each has alone.
"""

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.fleet import FleetResult
from solver.recommend.recommend import solve_request
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.together", description=__doc__)
    parser.add_argument("--requests", type=int, default=4)
    parser.add_argument("--workloads", type=int, default=5)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    spaces = SpaceCache()
    table = Table("together, USD/h", "apart, USD/h", "bound", "gap", "status")
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")

        def solved(workloads: list[object]) -> FleetResult:
            return solve_request(planning_of(url, {"workloads": workloads}, spaces), spaces).result

        for body in requests(options.requests, options.workloads, options.seed):
            found = solved(body["workloads"])
            apart = [solved([workload]).usd_per_hour or 0.0 for workload in body["workloads"]]
            table.add_row(
                f"{found.usd_per_hour or 0.0:.2f}",
                f"{sum(apart):.2f}",
                f"{found.bound or 0.0:.2f}",
                f"{found.gap_fraction or 0.0:.1%}",
                found.status.value,
            )
    Console().print(table)


if __name__ == "__main__":
    main()
