"""May a rate be believed to hold for its quick look? ``python -m tests.bench.beliefs``.

Of some candidates that requests turn on, the sustained rate is bisected with every rung decided by itself, and held against the one
that is found with beliefs. By how far a rung was above the low end, and by what its quick look says of the target: how many hold. Then
every sixteenth rung around the rate they sustain: how far below one that holds there still is one that does not.
"""

import argparse
import random
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.capacity.goal import QUICK_LIKELY
from solver.capacity.runs import rung, rung_at_least
from solver.capacity.sustained_rate import FAR, RUNGS, CandidateReplica, is_settled
from solver.planning.types import no_clock
from solver.recommend.recommend import explained, solve_request
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

BOUNDS = (0.4, 0.6, QUICK_LIKELY, 0.9, 1.0)
AROUND = range(-320, 257, 16)

Verdicts = defaultdict[tuple[int, str], Counter[bool]]


def candidates(url: str, percentile: str, count: int, seed: int, each: int) -> list[CandidateReplica]:
    """Some of those that were simulated for each of ``count`` requests with targets at a percentile."""
    spaces, rng, found = SpaceCache(), random.Random(seed), []
    for body in requests(count, 1, seed):
        for one in body["workloads"]:
            one["targets"] = {name: {percentile: limits["p95"]} for name, limits in one["targets"].items()}
        solved = solve_request(replace(planning_of(url, body, spaces), clock=no_clock), spaces)
        explained(solved, spaces)
        of = [
            one for each in solved.assembly.screened for one in solved.confirmations.facts.of(each).candidates.values()
        ]
        found += rng.sample(of, min(each, len(of)))
    return found


def bisected(of: CandidateReplica, verdicts: Verdicts) -> float:
    """The sustained rate with no rung believed; the verdicts on the way are counted."""
    high = rung_at_least(of.anchor) + 1
    low = lowest = high - RUNGS
    if not of.runs.holds_idle(rung(low), of.goal):
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if rung(middle) > of.most:
            high = middle
            continue
        verdict = bool(of.runs.holds(rung(middle), of.goal))
        quick = of.runs.by_rate[rung(middle)].quick
        if quick is not None and middle - low >= 2 * FAR:
            ratio = of.goal.ratio_of(quick)
            up_to = next((f"≤ {bound}" for bound in BOUNDS if ratio <= bound), "above")
            verdicts[min(middle - low, 1024), up_to][verdict] += 1
        low, high = (middle, high) if verdict else (low, middle)
    return rung(low) if low > lowest else 0.0


def width(of: CandidateReplica, requests_per_s: float) -> int:
    """Rungs from the lowest that does not hold to the highest that does, around the sustained rate."""
    edge = rung_at_least(requests_per_s)
    verdicts = {step: of.runs.holds(rung(edge + step), of.goal) for step in AROUND}
    fails, kept = [s for s, held in verdicts.items() if not held], [s for s, held in verdicts.items() if held]
    return max(0, max(kept) - min(fails)) if fails and kept else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.beliefs", description=__doc__)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=12, help="of each request")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    verdicts: Verdicts = defaultdict(Counter)
    widths: Counter[int] = Counter()
    same = count = 0
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for percentile in ("p95", "p99"):
            for of in candidates(url, percentile, options.requests, options.seed, options.candidates):
                end = bisected(of, verdicts)
                same, count = same + (of.bracket(is_settled).holds == end), count + 1
                if end > 0.0:
                    widths[width(of, end)] += 1
    table = Table("rungs above the low end", "quick look over target", "hold", "do not")
    for (gap, ratio), of_these in sorted(verdicts.items()):
        table.add_row(f"{gap}{' or more' if gap == 1024 else ''}", ratio, str(of_these[True]), str(of_these[False]))
    Console().print(table)
    each = ", ".join(f"{rungs}: {candidates}" for rungs, candidates in sorted(widths.items()))
    Console().print(
        f"{same} of {count} candidates sustain the same with beliefs (up to {QUICK_LIKELY:.1f} of a target)"
    )
    Console().print(f"rungs from the lowest that fails to the highest that holds, {FAR} taken to be safe: {each}")


if __name__ == "__main__":
    main()
