"""Is screening a bound? ``python -m tests.bench.screening``.

Random candidates of random requests, half of them mixtures of experts: what simulation finds a replica to sustain, told nothing
of screening, over what screening says it cannot exceed. A proof rests on no ratio above 1 (docs/decisions/0006). Candidates that
others stand for, and those that a plan's front end limits, say nothing of it and are left out.
"""

import argparse
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.candidates.screening import no_better_than_one_process, no_better_than_smaller
from solver.capacity.sustained_rate import is_settled
from solver.errors import InvalidInputError, UnsupportedError
from solver.recommend.recommend import screened
from tests.bench.planner import planning_of, seeded_database
from tests.bench.random_requests import random_request


@dataclass(frozen=True)
class Compared:
    """One candidate. sustained: by simulation; expected, most: of it by the closed form. requests/s."""

    kind: str
    what: str
    sustained: float
    expected: float
    most: float


def random_drafting(rng: random.Random) -> dict[str, Any]:
    return {
        "method": rng.choice(["ngram", "head"]),
        "draft_tokens": rng.choice([1, 2, 3, 4, 8]),
        "acceptance_fraction": round(rng.uniform(0.1, 0.95), 2),
        "draft_step_fraction": rng.choice([0.0, 0.02, 0.1]),
        "draft_cost_source": "drawn",
    }


def random_sessions(rng: random.Random) -> dict[str, Any]:
    """Turns over openings that many share or few, sent to one replica or spread over some."""
    return {
        "turns": rng.choice([2, 4, 8, 15]),
        "user_tokens": {"mean": (mean := rng.choice([50, 200, 600])), "p95": 3 * mean},
        "think_time_s": rng.choice([2, 10, 30, 120]),
        "system_prompt_tokens": rng.choice([0, 500, 2000, 6000]),
        "system_prompts": rng.choice([1, 1, 20, 200]),
        "document_tokens": rng.choice([0, 0, 4000]),
        "documents": rng.choice([1, 10, 100]),
        "routing": rng.choice(["random", "least_loaded", "prefix_aware"]),
        "replicas": rng.choice([1, 1, 2, 3, 6]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.screening", description=__doc__)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=4, help="of each request (default 4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--drafting", action="store_true", help="candidates that draft, of random lengths and acceptances"
    )
    parser.add_argument("--sessions", action="store_true", help="requests that are turns of random sessions")
    arguments = parser.parse_args()
    rng, spaces, found = random.Random(arguments.seed), SpaceCache(), []
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for number in range(arguments.requests):
            body = random_request(rng, mixture=number % 2 == 0)
            if arguments.drafting:
                body["workloads"][0]["drafting"] = random_drafting(rng)
            if arguments.sessions:
                asked = body["workloads"][0]["traffic"]
                body["workloads"][0]["traffic"] = {
                    "requests_per_s": asked["requests_per_s"],
                    "output_tokens": {"mean": (mean := rng.choice([50, 200, 800])), "p95": 3 * mean},
                    "sessions": random_sessions(rng),
                }
            try:
                planning = planning_of(url, body, spaces)
            except (UnsupportedError, InvalidInputError):  # longer than the model takes
                continue
            workload = screened(planning, planning.workloads[0], spaces).only
            stood_for = no_better_than_smaller([workload]) | no_better_than_one_process([workload])
            rows = [
                number
                for number, row in enumerate(workload.space.rows)
                if workload.allowed[number]
                and (row.drafting is not None) == arguments.drafting
                and not stood_for[number]
            ]
            for row in rng.sample(rows, min(arguments.candidates, len(rows))):
                candidate = workload.candidate(row)
                free = replace(candidate, most=candidate.anchor)
                passed_on = workload.space.passed_on_tokens_per_s[row] / max(1.0, workload.workload.traffic.output.mean)
                if candidate.most >= passed_on:
                    continue
                layout, precision = workload.space.rows[row].layout, workload.space.rows[row].precision
                device = workload.space.platforms[workload.space.rows[row].platform].device.id
                kind = ("mixture" if number % 2 == 0 else "dense") + (
                    ", pipeline" if layout.pipeline_parallel > 1 else ""
                )
                tokens = int(workload.space.batched_tokens[row])
                kind += "" if tokens == workload.space.settings.max_batched_tokens else f", steps of {tokens}"
                found.append(
                    Compared(
                        kind,
                        f"{body['workloads'][0]['llm']} on {device} TP{layout.tensor_parallel} PP{layout.pipeline_parallel}"
                        f" EP{layout.expert_parallel} DP{layout.data_parallel} {precision.weights}/{precision.kv_cache} {tokens}",
                        free.bracket(is_settled).holds,
                        float(workload.requests_per_s[row]),
                        candidate.most,
                    )
                )
    console = Console(width=120)
    table = Table("candidates", "number", "sustained / at most: median", "90 %", "largest", "above 1")
    for kind in sorted({one.kind for one in found}):
        ratios = sorted(one.sustained / one.most for one in found if one.kind == kind and one.most > 0.0)
        ratios = ratios or [0.0]
        table.add_row(
            kind, str(len(ratios)), f"{ratios[len(ratios) // 2]:.2f}", f"{ratios[len(ratios) * 9 // 10]:.2f}",
            f"{ratios[-1]:.2f}", str(sum(ratio > 1.0 for ratio in ratios)),
        )  # fmt: skip
    console.print(table)
    ruled_out = [one for one in found if one.most <= 0.0]
    wrong = [one for one in found if one.sustained > one.most]
    console.print(
        f"{len(ruled_out)} ruled out by screening, of which {sum(o.sustained > 0 for o in ruled_out)} sustain something"
    )
    for one in sorted(found, key=lambda o: -(o.sustained / o.most if o.most else 9.0 * (o.sustained > 0)))[:8]:
        console.print(f"{one.what}: sustains {one.sustained:.3g}, at most {one.most:.3g}, expected {one.expected:.3g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
