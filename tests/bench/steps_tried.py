"""What is lost by not trying every size of a step: ``python -m tests.bench.steps_tried``.

Random candidates of random requests, each with steps of every size that plans try: what simulation finds a replica to sustain within
the targets, with the best of those sizes that are tried, with the largest alone, and with the best of all.
"""

import argparse
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from service.recommendations.spaces import SpaceCache
from solver.candidates.screening import ScreenedClass, no_better_than_smaller
from solver.capacity.sustained_rate import is_settled
from solver.errors import UnsupportedError
from solver.recommend.recommend import screened
from tests.bench.planner import planning_of, seeded_database
from tests.bench.random_requests import random_request


def sizes(workload: ScreenedClass) -> list[list[int]]:
    """Rows that are the same but for their steps, the largest steps first, where there are several and screening rules none out."""
    space, together = workload.space, dict[int, list[int]]()
    for row in np.argsort(-space.batched_tokens, kind="stable").tolist():
        if workload.allowed[row]:
            together.setdefault(int(space.but_for_settings[row]), []).append(row)
    return [rows for rows in together.values() if len(rows) > 1]


def sustained(workload: ScreenedClass, row: int) -> float:
    """Requests per second, told nothing of screening."""
    candidate = workload.candidate(row)
    return replace(candidate, most=candidate.anchor).bracket(is_settled).holds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.steps_tried", description=__doc__)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--candidates", type=int, default=4, help="of each request (default 4)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, spaces = random.Random(arguments.seed), SpaceCache()
    lost: list[tuple[float, float]] = []
    tried = candidates = 0
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for number in range(arguments.requests):
            body = random_request(rng, mixture=number % 2 == 0)
            try:
                planning = planning_of(url, body, spaces)
            except UnsupportedError:  # longer than the model takes
                continue
            workload = screened(planning, planning.workloads[0], spaces).only
            dropped = no_better_than_smaller([workload])
            every = sizes(workload)
            for rows in rng.sample(every, min(arguments.candidates, len(every))):
                holds = [sustained(workload, row) for row in rows]
                best = max(holds)
                if best <= 0.0:
                    continue
                kept = [rate for rate, row in zip(holds, rows, strict=True) if not dropped[row]]
                tried, candidates = tried + len(kept), candidates + len(rows)
                lost.append((1.0 - max(kept) / best, 1.0 - holds[0] / best))
    kept_losses, alone_losses = np.array(lost).T
    print(
        f"{len(lost)} replicas, {tried / candidates:.2f} of their sizes tried: {kept_losses.mean():.2%} of what they sustain is lost in "
        f"the mean, {kept_losses.max():.0%} at most; with the largest steps alone {alone_losses.mean():.0%} and {alone_losses.max():.0%}"
    )


if __name__ == "__main__":
    main()
