"""Does what an answer says hold when it is asked again? ``python -m tests.bench.claims``.

Sweeps over the rate, each target, the offers and the nodes of random requests: no step that makes a request harder may make the plan
cheaper. Every binding limit and relaxation is applied and solved again.
"""

import argparse
import copy
import itertools
import random
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from service.recommendations.limit_names import relaxed_value, target_name
from service.recommendations.spaces import SpaceCache
from solver.errors import NoPlanInTimeError
from solver.limit import Limit, LimitKind, TargetLimit
from solver.outcome import Outcome
from solver.planning.types import Recommendation
from solver.recommend.recommend import recommend
from tests.bench.planner import planning_of, seeded_database
from tests.bench.random_requests import random_request

FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
NOISE = 1e-4


@dataclass
class Tally:
    """What was compared, and what was found wrong."""

    compared: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def count(self, what: str, wrong: str | None) -> None:
        self.compared[what] = self.compared.get(what, 0) + 1
        if wrong is not None:
            self.wrong.append(f"{what}: {wrong}")


class Planner:
    """Answers bodies of requests."""

    def __init__(self, url: str) -> None:
        self._url, self._spaces = url, SpaceCache()

    def __call__(self, body: dict[str, Any], *, price_only: bool = False) -> Recommendation | None:
        """None where time ended. price_only: without what a plan's limits cost, which takes longer than the plan."""
        planning = planning_of(self._url, body, self._spaces)
        if price_only:
            planning = replace(planning, explain=False, alternatives=0)
        try:
            return recommend(planning, self._spaces)
        except NoPlanInTimeError:
            return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.claims", description=__doc__)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, tally, console = random.Random(arguments.seed), Tally(), Console(width=120)
    with tempfile.TemporaryDirectory() as folder:
        plan = Planner(seeded_database(Path(folder) / "bench.sqlite"))
        for number in range(arguments.requests):
            body = random_request(rng, mixture=number % 2 == 0)
            answer = plan(body)
            if answer is not None and answer.entries:
                sweeps(body, plan, tally, rng)
                binding(body, answer, plan, tally)
            relaxations(body, plan, tally)
    console.print(", ".join(f"{count:,} {what}" for what, count in tally.compared.items()))
    console.print(f"{len(tally.wrong)} wrong")
    for one in tally.wrong[:40]:
        console.print(one)
    return 1 if tally.wrong else 0


def price(answer: Recommendation | None) -> float | None:
    """None: not known. Infinite: no plan."""
    if answer is None:
        return None
    return answer.usd_per_hour if answer.entries else float("inf")


def sweeps(body: dict[str, Any], plan: Planner, tally: Tally, rng: random.Random) -> None:
    """Rate up, targets down, offers fewer, nodes fewer: never cheaper."""
    name = body["workloads"][0]["llm"]
    for what, easier_first in (
        ("rate", [changed(body, ("traffic", "requests_per_s"), f) for f in FACTORS]),
        ("TTFT", [changed(body, ("targets", "ttft_ms", "p95"), f) for f in reversed(FACTORS)]),
        ("TPOT", [changed(body, ("targets", "tpot_ms", "p95"), f) for f in reversed(FACTORS)]),
        ("nodes", [limited(body, "max_nodes_per_offer", n) for n in (1_000, 16, 8, 4, 2, 1)]),
        ("devices", fewer_devices(body, rng)),
    ):
        costs = [(price(answer), answer) for answer in (plan(one, price_only=True) for one in easier_first)]
        for (before, first), (after, second) in itertools.pairwise(costs):
            if before is None or after is None or first is None or second is None:
                continue
            gap = NOISE + (first.solve.gap_fraction or 0.0) + (second.solve.gap_fraction or 0.0)
            worse = f"{name}: {before} becomes {after}" if after < before * (1.0 - gap) else None
            tally.count(f"pairs of {what}", worse)


def fewer_devices(body: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    devices = body["limits"].get("devices") or [
        "h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm-80", "l40s", "mi300x", "rtx-5090", "l4",
    ]  # fmt: skip
    kept = rng.sample(devices, len(devices))
    return [limited(body, "devices", kept[: len(kept) - n]) for n in range(len(kept))]


def changed(body: dict[str, Any], path: tuple[str, ...], factor: float) -> dict[str, Any]:
    found = copy.deepcopy(body)
    inner = found["workloads"][0]
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] *= factor
    return found


def limited(body: dict[str, Any], limit: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(body)
    found["limits"][limit] = value
    return found


def binding(body: dict[str, Any], answer: Recommendation, plan: Planner, tally: Tally) -> None:
    """Each limit that is said to cost money, relaxed."""
    for one in answer.binding:
        if one.limit.target is None and one.limit.kind is not LimitKind.UTILISATION:
            continue
        relaxed = eased(body, one.limit, one.relaxing_to)
        found = price(plan(relaxed, price_only=True))
        saves = None if found is None else answer.usd_per_hour - found
        wrong = saves is None or abs(saves - one.gains) > 0.01 * answer.usd_per_hour
        tally.count("binding", f"{one.limit} to {one.relaxing_to}: said {one.gains}, saves {saves}" if wrong else None)


def relaxations(body: dict[str, Any], plan: Planner, tally: Tally) -> None:
    """An impossible target, budget and rate: each way out, taken."""
    tight = copy.deepcopy(body)
    tight["workloads"][0]["targets"]["tpot_ms"]["p95"] = 0.4
    poor = limited(body, "max_usd_per_hour", "0.20")
    poor["workloads"][0]["traffic"]["requests_per_s"] = 25.0
    crowded = limited(body, "max_nodes_per_offer", 1)
    crowded["workloads"][0]["traffic"]["requests_per_s"] = 20_000.0
    for bad in (tight, poor, crowded):
        answer = plan(bad)
        if answer is None or answer.solve.outcome is not Outcome.INFEASIBLE:
            continue
        share = answer.largest_servable_multiple
        if share is not None and 1e-3 < share < 1.0:
            less = changed(bad, ("traffic", "requests_per_s"), share * 0.995)
            tally.count(
                "shares", None if price(plan(less, price_only=True)) not in (None, float("inf")) else str(share)
            )
        for one in answer.relaxations:
            if one.limit.kind not in (LimitKind.TARGET, LimitKind.BUDGET, LimitKind.RATE):
                continue
            found = price(plan(eased(bad, one.limit, one.to_value), price_only=True))
            wrong = found in (None, float("inf")) or (
                one.usd_per_hour is not None and found is not None and abs(found - one.usd_per_hour) > 0.02 * found
            )
            tally.count(
                "relaxations", f"{one.limit} to {one.to_value}: {one.usd_per_hour} → {found}" if wrong else None
            )


def eased(body: dict[str, Any], limit: Limit, value: float | None) -> dict[str, Any]:
    """The request with one limit as an answer says to state it."""
    said = relaxed_value(limit, value)
    found = copy.deepcopy(body)
    workload = found["workloads"][0]
    match limit:
        case Limit(LimitKind.TARGET, target=TargetLimit() as target):
            _, metric, percentile = target_name(target).split(".")
            workload["targets"][metric][percentile] = said
        case Limit(LimitKind.BUDGET):
            found["limits"]["max_usd_per_hour"] = f"{said:.6f}"
        case Limit(LimitKind.RATE):
            workload["traffic"]["requests_per_s"] = said
        case Limit(LimitKind.UTILISATION):
            workload["utilisation_limit_fraction"] = said
        case other:
            raise AssertionError(other)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
