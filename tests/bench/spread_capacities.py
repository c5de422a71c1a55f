"""What one replica sustains where turns are spread over more of them: ``python -m tests.bench.spread_capacities``.

By routing and number of replicas, in turns a second of one replica; and, as a comparison that no router reaches, what it would sustain
if each replica had its share of the documents and system prompts to itself.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from service.recommendations.spaces import SpaceCache
from solver.candidates.screening import Screened
from solver.confirmation.brackets import Brackets
from solver.recommend.recommend import screened
from solver.recommend.spread import spread_over
from tests.bench.planner import planning_of, seeded_database
from tests.bench.spread_plans import CASES, body

ROUTINGS = ("random", "least_loaded", "prefix_aware")
NUMBERS = (1, 2, 4, 8, 16)
DEVICES = ("h100-sxm", "h200-sxm", "b200-sxm")


def candidates(url: str, case: dict[str, Any], routing: str, replicas: int, spaces: SpaceCache) -> Screened:
    """A case's candidates with its turns spread over so many replicas."""
    planning = spread_over(planning_of(url, body(case, routing), spaces), (replicas,))
    return screened(planning, planning.workloads[0], spaces)


def sustained(one: Screened, device: str) -> float | None:
    """Turns a second of the first candidate on one device of this kind; None where no such candidate serves."""
    for row in range(len(one.serves)):
        if one.serves[row] and one.alike(row) == row:
            configuration = one.space.configuration(row)
            if configuration.device.id == device and configuration.layout.devices == 1:
                return Brackets([one]).settle(0, row).holds
    return None


def shared_out(case: dict[str, Any], replicas: int) -> dict[str, Any]:
    """The case of one replica that has its share of documents and system prompts to itself."""
    return case | {name: -(-case[name] // replicas) for name in ("tenants", "documents") if name in case}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spread_capacities", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--database", help="address of a seeded database")
    asked = parser.parse_args()
    print(f"request, device, routing: turns a second of one of {', '.join(str(n) for n in NUMBERS)} replicas")
    with tempfile.TemporaryDirectory() as folder:
        url = asked.database or seeded_database(Path(folder) / "catalog.sqlite")
        spaces = SpaceCache()
        for name, case in CASES.items():
            if asked.only not in name:
                continue
            of_routing = {
                routing: [candidates(url, case, routing, n, spaces) for n in NUMBERS] for routing in ROUTINGS
            } | {"shared out": [candidates(url, shared_out(case, n), "sticky", 1, spaces) for n in NUMBERS]}
            for device in DEVICES:
                for routing, ones in of_routing.items():
                    rates = [sustained(one, device) for one in ones]
                    if None not in rates:
                        print(f"{name}, {device}, {routing}: {', '.join(f'{rate:.2f}' for rate in rates)}", flush=True)


if __name__ == "__main__":
    main()
