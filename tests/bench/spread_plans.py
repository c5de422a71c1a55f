"""Plans whose sessions are spread over as many replicas as the plan has: ``python -m tests.bench.spread_plans``.

Of each request: is its plan proven, with how many replicas, for how many numbers of replicas was it solved, and how much processor
time did that take beside the same request with sessions that stay where they began. ``--whole`` asks for answers as users get them,
with what limits them and alternatives, and says how often replicas were simulated: a quick look, or a draw of a long run. ``--large``
asks for two fleets of many replicas within 30 s of the clock, as the service does.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from service.recommendations.spaces import SpaceCache
from solver.engine.compile import compile_simulation
from solver.errors import NoPlanInTimeError
from solver.planning.types import Recommendation, no_clock
from solver.recommend.recommend import recommend, space_of
from solver.replay.draw_sizes import QUICK_REQUESTS
from solver.replay.latencies import Latencies, SteadyLane
from tests.bench.planner import planning_of, seeded_database

ROUTINGS = ("sticky", "random", "least_loaded", "prefix_aware")
CASES: dict[str, dict[str, Any]] = {
    "chat, 70B, 20/s": {"llm": "llama-3.1-70b", "rate": 20, "turns": 6, "user": 150, "system": 1500, "output": 300},
    "chat, 8B, 100/s": {"llm": "llama-3.1-8b", "rate": 100, "turns": 6, "user": 150, "system": 1500, "output": 300},
    "agents, 8B, 40/s": {"llm": "llama-3.1-8b", "rate": 40, "turns": 12, "user": 600, "system": 2000, "output": 200},
    "tenants, 32B, 30/s": {
        "llm": "qwen3-32b", "rate": 30, "turns": 3, "user": 300, "system": 4000, "tenants": 50, "output": 200,
    },
    "documents, 8B, 20/s": {
        "llm": "llama-3.1-8b", "rate": 20, "turns": 3, "user": 100, "system": 500, "document": 8000, "documents": 100,
        "output": 150,
    },
}  # fmt: skip
LARGE: dict[str, tuple[str, float]] = {
    "chat, 70B, 300/s": ("chat, 70B, 20/s", 300.0),
    "chat, 8B, 1,500/s": ("chat, 8B, 100/s", 1_500.0),
}
"""Cases whose turns come at a rate that takes dozens of replicas: which case, requests per second."""
LARGE_LIMIT_S = 30.0
TARGETS_MS = {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}}


def body(case: dict[str, Any], routing: str) -> dict[str, Any]:
    """The request of a case."""
    sessions = {
        "turns": case["turns"], "user_tokens": case["user"], "think_time_s": 30, "system_prompt_tokens": case["system"],
        "system_prompts": case.get("tenants", 1), "document_tokens": case.get("document", 0),
        "documents": case.get("documents", 1), "routing": routing,
    }  # fmt: skip
    traffic = {"requests_per_s": case["rate"], "sessions": sessions, "output_tokens": case["output"]}
    workload = {"name": "w", "llm": case["llm"], "traffic": traffic, "targets": TARGETS_MS}
    return {"workloads": [workload], "time_limit_s": 300}


def answered(url: str, case: dict[str, Any], routing: str, spaces: SpaceCache) -> tuple[Recommendation, float, int]:
    """(answer, processor seconds, numbers of replicas solved for)."""
    stages: list[str] = []
    asked = planning_of(url, body(case, routing), spaces)
    planning = replace(asked, clock=no_clock, explain=False, alternatives=0, lower_formats={})
    began = time.process_time()
    found = recommend(planning, spaces, lambda progress: stages.append(progress.stage))
    return found, time.process_time() - began, stages.count("screening")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """What replicas are simulated for meanwhile: quick looks, and draws of long runs."""
    found, simulated = Counter[str](), SteadyLane.latencies

    def latencies(lane: SteadyLane, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> Latencies:
        found["looks" if requests == QUICK_REQUESTS else "draws"] += len(seeds)
        return simulated(lane, requests_per_s, seeds, requests)

    with patch.object(SteadyLane, "latencies", latencies):
        yield found


def whole_answer(url: str, case: dict[str, Any], routing: str, spaces: SpaceCache) -> tuple[Recommendation, float]:
    """(answer, processor seconds) of a request as a user asks it. Its search space is known before; no clock cuts it short."""
    planning = replace(planning_of(url, body(case, routing), spaces), clock=no_clock)
    for workload in planning.workloads:
        space_of(planning, workload, spaces)
    began = time.process_time()
    found = recommend(planning, spaces)
    return found, time.process_time() - began


def print_whole_answers(asked: argparse.Namespace, spaces: SpaceCache) -> None:
    """One line a request."""
    compile_simulation()
    print("request, routing: status; USD/h; quick looks, draws; processor s")
    for name, case, url in chosen(asked):
        for routing in asked.routing.split(","):
            with counted() as simulated:
                found, seconds = whole_answer(url, case, routing, spaces)
            print(
                f"{name}, {routing}: {found.solve.status.value}; {found.usd_per_hour:.2f}; {simulated['looks']:,}, "
                f"{simulated['draws']:,}; {seconds:.1f}",
                flush=True,
            )


def in_short(found: Recommendation) -> str:
    """Status, gap; price an hour; replicas, and over how many turns are routed."""
    gap = "no bound" if found.solve.gap_fraction is None else f"{found.solve.gap_fraction:.1%}"
    over = {entry.estimate.routed_over for entry in found.entries if entry.estimate is not None}
    replicas = sum(entry.replicas for entry in found.entries)
    routed = ", ".join(str(n) for n in over)
    return f"{found.solve.status.value}, {gap}; {found.usd_per_hour:.2f}; {replicas}, {routed}"


def print_large(url: str, spaces: SpaceCache) -> None:
    """One line a request: what is known within its time, and after how many seconds of the clock there is an answer."""
    compile_simulation()
    print("request: status, gap; USD/h; replicas, routed over; questions without an answer; s")
    for name, (case, rate) in LARGE.items():
        asked = {**body({**CASES[case], "rate": rate}, "prefix_aware"), "time_limit_s": LARGE_LIMIT_S}
        planning = planning_of(url, asked, spaces)
        for workload in planning.workloads:
            space_of(planning, workload, spaces)
        began = time.monotonic()
        try:
            found = recommend(planning, spaces)
        except NoPlanInTimeError as error:
            print(f"{name}: {error}; {time.monotonic() - began:.1f}", flush=True)
            continue
        seconds = time.monotonic() - began
        print(f"{name}: {in_short(found)}; {len(found.unsettled)}; {seconds:.1f}", flush=True)


def of_cases(name: str, description: str | None) -> argparse.ArgumentParser:
    """Options of a command about the cases."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench.{name}", description=description)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--database", help="address of a seeded database")
    return parser


def chosen(asked: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The cases asked for, each with its name and the address of a seeded database."""
    with tempfile.TemporaryDirectory() as folder:
        url = asked.database or seeded_database(Path(folder) / "catalog.sqlite")
        for name, case in CASES.items():
            if asked.only in name:
                yield name, case, url


def main() -> None:
    parser = of_cases("spread_plans", __doc__)
    parser.add_argument("--routing", default=",".join(ROUTINGS))
    parser.add_argument("--whole", action="store_true", help="answers as users get them, and simulations counted")
    parser.add_argument("--large", action="store_true", help="two fleets of many replicas, within a time")
    asked, spaces = parser.parse_args(), SpaceCache()
    if asked.large:
        with tempfile.TemporaryDirectory() as folder:
            print_large(asked.database or seeded_database(Path(folder) / "catalog.sqlite"), spaces)
        return
    if asked.whole:
        print_whole_answers(asked, spaces)
        return
    print("request, routing: status, gap; USD/h; replicas, routed over; numbers of replicas solved for; processor s")
    for name, case, url in chosen(asked):
        for routing in asked.routing.split(","):
            found, seconds, solved = answered(url, case, routing, spaces)
            print(f"{name}, {routing}: {in_short(found)}; {solved}; {seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
