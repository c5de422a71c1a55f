"""The approximation of what a cache finds of sessions, against a cache of single blocks: ``python -m tests.bench.session_hits``.

In points of the share of prompts' tokens that is found, over random cases; and how long the approximation takes.
"""

import argparse
import time

import numpy as np

from solver.replay.expected_hits import expected_hit_fraction, uses_of
from tests.solver.naive_session_cache import random_case
from tests.solver.test_expected_hits import CASES, LONG_RUN_TURNS, NEAR, TOLERANCE, TURNS, differences, traffic_of


def say(what: str, points: np.ndarray) -> None:
    outside = int((np.abs(points) > 100.0 * TOLERANCE).sum())
    print(
        f"{what}: mean {points.mean():+.2f}, deviation {points.std():.2f}, most {np.abs(points).max():.2f} points, "
        f"outside {100 * TOLERANCE:g} points {outside}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", action="store_true", help=f"{LONG_RUN_TURNS:,} turns of every case, near or not")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.cases)
    first, found = (100.0 * one for one in differences(seeds, every=asked.every))
    again = asked.cases if asked.every else int((np.abs(first) > 100.0 * NEAR).sum())
    say(f"{asked.cases} cases, {TURNS:,} turns of the cache of single blocks", first)
    where = "of every case" if asked.every else f"where that differs by more than {100 * NEAR:g} points"
    say(f"with {LONG_RUN_TURNS:,} turns {where} ({again} cases)", found)
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
