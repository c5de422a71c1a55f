"""What one replica sustains where turns are spread over more of them: ``python -m tests.bench.spread_capacities``.

By routing and number of replicas, in turns a second of one replica; and, as a comparison that no router reaches, what it would sustain
if each replica had its share of the documents and system prompts to itself.
"""

from typing import Any

from service.recommendations.spaces import SpaceCache
from solver.candidates.screening import Screened
from solver.confirmation.brackets import Brackets
from solver.recommend.recommend import screened
from solver.recommend.spread import spread_over
from tests.bench.planner import planning_of
from tests.bench.spread_plans import body, chosen, of_cases

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
    asked, spaces = of_cases("spread_capacities", __doc__).parse_args(), SpaceCache()
    print(f"request, device, routing: turns a second of one of {', '.join(str(n) for n in NUMBERS)} replicas")
    for name, case, url in chosen(asked):
        of_routing = {routing: [candidates(url, case, routing, n, spaces) for n in NUMBERS] for routing in ROUTINGS} | {
            "shared out": [candidates(url, shared_out(case, n), "sticky", 1, spaces) for n in NUMBERS]
        }
        for device in DEVICES:
            for routing, ones in of_routing.items():
                rates = [sustained(one, device) for one in ones]
                if None not in rates:
                    print(f"{name}, {device}, {routing}: {', '.join(f'{rate:.2f}' for rate in rates)}", flush=True)


if __name__ == "__main__":
    main()
