"""Is anything cheaper than a proven plan? ``python -m tests.bench.oracle``.

Every plan of one offer and one layout that would cost at least one per cent less is enumerated, and its replicas are simulated at
their rate over the utilisation limit, with draws that the planner has never seen and nothing of its screening. The same for the
lines of the plan itself: what share of fresh draws of 6,000 requests they hold in, and how far off the worst is.
"""

import argparse
import math
import random
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from service.recommendations.spaces import SpaceCache
from solver.candidates.screening import ScreenedClass
from solver.confirmation.rates import rate_to_hold
from solver.errors import InvalidInputError, NoPlanInTimeError, SaturatedError
from solver.outcome import Status
from solver.planning.placements import placements
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SolvedRequest, solve_request
from solver.replay.latencies import SteadyLane
from tests.bench.planner import planning_of, seeded_database
from tests.bench.random_requests import random_request

FRESH_SEEDS = (9_001, 9_002, 9_003, 9_004)
DRAW = 6_000
LONG_DRAW = 50_000
"""Just above capacity a queue grows so slowly that only a long run shows that it does."""
HOPELESS = 1.5
"""A first short run that far above a target ends the matter."""
CHEAPER = 0.99
SPARE = 0.92
"""Of its targets: a plan that holds with this much to spare is no matter of noise."""


@dataclass(frozen=True)
class Rival:
    usd_per_hour: float
    what: str
    ratio: float


def make_rare(body: dict[str, Any], rng: random.Random) -> None:
    """The same model under requests that hardly ever meet: what a machine does when idle decides."""
    (workload,) = body["workloads"]
    prompt, output = rng.choice(((8_000, 60), (12_000, 100), (3_000, 30), (16_000, 200)))
    workload["traffic"] = {
        "requests_per_s": round(10 ** rng.uniform(-3.5, -1.5), 5),
        "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "p95": 1.5 * prompt},
        "output_tokens": {"distribution": "lognormal", "mean": output, "p95": 2 * output},
    }
    workload["targets"] = {"ttft_ms": {"p95": rng.choice((1_500, 2_500, 4_000, 6_000, 10_000))}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.oracle", description=__doc__)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rare", action="store_true", help="a few requests an hour, with long prompts and a target for them alone"
    )
    arguments = parser.parse_args()
    rng, spaces, console = random.Random(arguments.seed), SpaceCache(), Console(width=120)
    proven, clear, near, infeasible, lines = 0, 0, 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for number in range(arguments.requests):
            body = random_request(rng, mixture=number % 2 == 0)
            if arguments.rare:
                make_rare(body, rng)
            planning = planning_of(url, body, spaces)
            try:
                solved_request = solve_request(planning, spaces)
            except NoPlanInTimeError:
                continue
            if solved_request.result.plan is None:
                infeasible += 1
                continue
            lines += fresh_ratios(solved_request)
            if solved_request.result.status is not Status.PROVEN_OPTIMAL:
                continue
            proven += 1
            best = cheapest_rival(planning, solved_request)
            if best is None:
                continue
            name, cost = body["workloads"][0]["llm"], solved_request.result.usd_per_hour or 0.0
            console.print(
                f"{name} at {cost:.2f}: {best.what} costs {best.usd_per_hour:.2f}, worst value {best.ratio:.3f} of its target"
            )
            clear += best.ratio <= SPARE
            near += best.ratio > SPARE
    console.print(
        f"{arguments.requests} requests, {proven} proven, {infeasible} infeasible: one offer and one layout is cheaper by more than"
        f" 1 % with 8 % to spare in {clear}, within the sampling error of a target in {near}"
    )
    ratios = sorted(ratio for one in lines for ratio in one)
    held = statistics.mean(ratio <= 1.0 for ratio in ratios)
    off = statistics.mean(ratio > 1.05 for ratio in ratios)
    console.print(
        f"{len(lines)} plan lines, {len(ratios)} fresh draws of {DRAW:,} requests: {held:.1%} hold, {off:.1%} are off by more than"
        f" 5 %, the worst by {max(ratios) - 1.0:.1%}"
    )
    return 1 if clear else 0


def fresh_ratios(solved_request: SolvedRequest) -> list[list[float]]:
    """Of every line, the worst value over its target in each fresh draw at its rate over the utilisation limit."""
    found = []
    assert solved_request.result.plan is not None
    for place in placements(solved_request.assembly, solved_request.result.plan):
        one = solved_request.assembly.screened[place.workload].only
        if place.requests_per_s > 0.0:
            rate = rate_to_hold(solved_request.assembly, place)
            found.append([ratio_of(one, place.row, rate, (seed,), DRAW) for seed in FRESH_SEEDS])
    return found


def ratio_of(one: ScreenedClass, row: int, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> float:
    """Worst percentile over its target, averaged over draws; infinite above capacity."""
    candidate = one.candidate(row)
    lane = SteadyLane(candidate.runs.configuration, candidate.runs.step_tables(), one.workload.traffic)
    try:
        found = lane.latencies(requests_per_s, seeds, requests)
    except (SaturatedError, InvalidInputError):
        return math.inf
    return max(
        found.value_s(metric, percentile) * candidate.goal.margin / limit
        for metric, limits in (
            ("time_to_first_token_s", one.workload.only.targets.time_to_first_token_s),
            ("time_per_output_token_s", one.workload.only.targets.time_per_output_token_s),
        )
        for percentile, limit in limits.items()
    )


def cheapest_rival(planning: PlanningInput, solved_request: SolvedRequest) -> Rival | None:
    """The cheapest plan of one offer and one layout that costs less and holds; None where there is none."""
    one = solved_request.assembly.screened[0].only
    cost = (solved_request.result.usd_per_hour or 0.0) * CHEAPER
    load = one.workload.requests_per_s / one.workload.utilisation_limit_fraction
    tries: dict[int, tuple[float, float, str]] = {}
    for offer in planning.offers:
        nodes = min(math.floor(cost / offer.usd_per_hour) if offer.usd_per_hour > 0.0 else 0, offer.max_nodes or 1_000)
        if nodes < 1:
            continue
        for index, platform in enumerate(one.space.platforms):
            if offer.node.id not in platform.node_ids or platform.device.partition is not None:
                continue
            for row in np.flatnonzero((one.space.platform_index == index) & one.allowed).tolist():
                spans = int(one.space.nodes_per_replica[row])
                each = offer.node.devices // int(one.space.devices_per_replica[row]) if spans == 1 else 0
                replicas = nodes * each if spans == 1 else nodes // spans
                if replicas < 1:
                    continue
                needed = load / replicas
                alike = int(one.space.twin[row])
                used = math.ceil(nodes) * offer.usd_per_hour
                if alike not in tries or needed < tries[alike][0]:
                    tries[alike] = needed, used, f"{nodes} × {offer.id} {one.space.rows[row].layout}"
    found = []
    for row, (needed, used, what) in tries.items():
        if ratio_of(one, row, needed, FRESH_SEEDS[:1], 1_000) > HOPELESS:
            continue
        ratio = ratio_of(one, row, needed, FRESH_SEEDS, DRAW)
        if ratio <= 1.0 and ratio_of(one, row, needed, FRESH_SEEDS[:2], LONG_DRAW) <= 1.0:
            found.append(Rival(used, what, ratio))
    return min(found, key=lambda rival: (rival.ratio > SPARE, rival.usd_per_hour), default=None)


if __name__ == "__main__":
    raise SystemExit(main())
