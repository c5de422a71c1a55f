"""The approximation of what a cache finds of sessions, against a cache of single blocks: ``python -m tests.bench.session_hits``.

In points of the share of prompts' tokens that is found, over random cases; and how long the approximation takes. What single blocks
find in a run is itself a sample: each case is run twice, with turns drawn anew, and the difference says how sure one run is.
"""

import argparse
import time

import numpy as np

from solver.replay.expected_hits import expected_hit_fraction, uses_of
from tests.solver.naive_session_cache import naive_hit_fraction, random_case
from tests.solver.test_expected_hits import CASES, TOLERANCE, TURNS, differences, tier_differences, traffic_of


def say(what: str, points: np.ndarray) -> None:
    outside = int((np.abs(points) > 100.0 * TOLERANCE).sum())
    print(
        f"{what}: mean {points.mean():+.2f}, deviation {points.std():.2f}, most {np.abs(points).max():.2f} points, "
        f"outside {100 * TOLERANCE:g} points {outside}"
    )


def again(seeds: range, turns: int) -> np.ndarray:
    """Of each case, what one run of single blocks finds less another."""
    found = []
    for seed in seeds:
        chats, blocks, size = random_case(seed)
        runs = [naive_hit_fraction(chats, blocks, size, turns, other) for other in (seed, seed + CASES)]
        found.append(runs[0] - runs[1])
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--turns", type=int, default=TURNS)
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.cases)
    began = time.process_time()
    say(
        f"{asked.cases} cases, {asked.turns:,} turns of the cache of single blocks",
        100.0 * differences(seeds, asked.turns),
    )
    say(
        "three tiers of single blocks, what each and those above it find",
        100.0 * tier_differences(seeds, asked.turns).ravel(),
    )
    say("one run of single blocks less another", 100.0 * again(seeds, asked.turns))
    print(f"processor time of all: {time.process_time() - began:.0f} s")
    times = []
    for seed in range(20):
        chats, blocks, size = random_case(seed)
        traffic = traffic_of(chats)
        uses_of(traffic, size)
        since = time.process_time()
        expected_hit_fraction(traffic, chats.rate, float(blocks * size), size)
        times.append(time.process_time() - since)
    print(f"processor time of one, its sample of turns known: median {1e3 * np.median(times):.0f} ms")


if __name__ == "__main__":
    main()
