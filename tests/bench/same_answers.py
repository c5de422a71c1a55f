"""Are answers the same as those of an older checkout? ``python -m tests.bench.same_answers --against FOLDER``.

For changes that must not change an answer: requests of every kind the planner takes (one workload, several, traffic classes, prefill
and decode apart, sessions, losses, limits, other objectives, too little for everyone, too much for anyone) are answered by both
checkouts from the same tables, with no clock, and every field that is sent is compared, but those named by ``--but`` (say
``simulations``, which a quicker search makes fewer). ``--store FILE`` keeps answers, ``--with FILE`` compares with what was kept.
"""

import argparse
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
Body = dict[str, Any]
FEW = ["h100-sxm", "h200-sxm", "l40s", "a100-sxm-80"]
SEED = 31
EXPLAINED = 3
"""Every so many-th request is explained in full: what binds, what would be freed. Others say the plan and one alternative."""


def bodies(seed: int) -> list[tuple[str, Body]]:
    """(kind, request): the same for the same seed, each kind by itself."""
    # Imported here: in an older checkout this file runs as a script.
    from tests.bench.random_requests import random_request
    from tests.bench.spread_plans import CASES, ROUTINGS
    from tests.bench.spread_plans import body as of_sessions
    from tests.bench.workloads import requests

    found: list[tuple[str, Body]] = []

    def add(kind: str, count: int, made: Any) -> None:
        rng = random.Random(f"{seed} {kind}")
        found.extend((kind, made(rng)) for _ in range(count))

    def several(rng: random.Random, workloads: int = 2) -> Body:
        return requests(1, workloads, rng.randrange(10**6))[0] | {"limits": {"devices": FEW}, "alternatives": 1}

    def changed(
        rng: random.Random, of_workload: Body | None = None, of_limits: Body | None = None, **of_all: Any
    ) -> Body:
        body = random_request(rng, mixture=False, rate=round(rng.uniform(3.0, 40.0), 2))
        body["workloads"][0] |= copy.deepcopy(of_workload or {})
        body["limits"] |= of_limits or {}
        return body | of_all

    def classes(rng: random.Random, count: int, *, both: bool = False) -> Body:
        made = requests(1, count, rng.randrange(10**6))[0]["workloads"]
        parts = [one["traffic"] | {"name": one["name"], "targets": one["targets"]} for one in made]
        mixed = {"name": "mixed", "llm": made[0]["llm"], "context_tokens": 32_768, "traffic_classes": parts}
        plain = requests(1, 1, rng.randrange(10**6))[0]["workloads"] if both else []
        return {"workloads": [mixed, *plain], "limits": {"devices": FEW}, "alternatives": 1}

    add("plain", 20, random_request)
    add("mixture of experts", 4, lambda rng: random_request(rng, mixture=True))
    add("rare", 4, lambda rng: random_request(rng, rate=round(10 ** rng.uniform(-3.0, -1.0), 5)))
    add("two workloads", 6, several)
    add("three workloads", 2, lambda rng: several(rng, 3))
    add("one class", 3, lambda rng: classes(rng, 1))
    add("two classes", 5, lambda rng: classes(rng, 2))
    add("three classes", 2, lambda rng: classes(rng, 3))
    add("classes beside a plain workload", 2, lambda rng: classes(rng, 2, both=True))
    add("pools admitted", 3, lambda rng: changed(rng, {"roles": ["aggregated", "disaggregated"]}, {"devices": FEW}))
    add("pools only", 2, lambda rng: changed(rng, {"roles": ["disaggregated"]}, {"devices": FEW}))
    add("loss of a provider", 2, lambda rng: changed(rng, None, {"fault_tolerance": {"providers": 1}}))
    add("classes and losses", 1, lambda rng: _with_losses(classes(rng, 2)))
    add("spare nodes", 2, lambda rng: changed(rng, None, {"spare_nodes": 1}))
    add("throughput", 2, lambda rng: changed(rng, None, {"max_usd_per_hour": "40"}, objective="throughput"))
    add("least power", 2, lambda rng: changed(rng, objective="power"))
    add("confidence", 2, lambda rng: _confident(changed(rng)))
    add("budget too small", 2, lambda rng: changed(rng, None, {"max_usd_per_hour": "0.5"}))
    add("shed", 2, lambda rng: changed(rng, None, {"max_usd_per_hour": "3"}, on_shortage="shed"))
    add("target nobody meets", 2, lambda rng: changed(rng, {"targets": {"tpot_ms": {"p95": 0.9}}}))
    add("class target nobody meets", 1, lambda rng: _impossible(classes(rng, 2)))
    add("two nodes of an offer", 2, lambda rng: changed(rng, None, {"max_nodes_per_offer": 2}))
    add("any format", 2, lambda rng: changed(rng, {"precision": {}}, {"devices": FEW}))
    for case in CASES.values():
        found.extend((f"sessions, {routing}", of_sessions(case, routing)) for routing in ROUTINGS)
    return found


def _with_losses(body: Body) -> Body:
    body["limits"] |= {"fault_tolerance": {"providers": 1}}
    return body


def _confident(body: Body) -> Body:
    body["workloads"][0]["targets"]["confidence_percent"] = 80
    return body


def _impossible(body: Body) -> Body:
    body["workloads"][0]["traffic_classes"][1]["targets"] = {"tpot_ms": {"p95": 0.9}}
    return body


def answered(database: str, seed: int, only: str, first: int, step: int) -> list[dict[str, Any]]:
    """What the checkout that this process imports answers, with processor seconds."""
    from dataclasses import replace

    from service.recommendations.present_line import Ask
    from service.recommendations.present_result import present_result
    from service.recommendations.spaces import SpaceCache
    from solver.errors import SolverError
    from solver.planning.types import no_clock
    from solver.recommend.recommend import explained, solve_request
    from tests.bench.planner import planning_of

    spaces, found = SpaceCache(), []
    chosen = [(n, kind, body) for n, (kind, body) in enumerate(bodies(seed)) if only in kind]
    for number, kind, body in chosen[first::step]:
        asked = {**body, "time_limit_s": 300}
        began = time.process_time()
        try:
            planning = replace(planning_of(database, asked, spaces), clock=no_clock)
            if number % EXPLAINED:
                planning = replace(planning, explain=False, alternatives=min(1, planning.alternatives))
            solved_request = solve_request(planning, spaces)
            answer = explained(solved_request, spaces)
            says = present_result(solved_request.planning, answer, 0.0, cast(Ask, lambda _: None)).model_dump(
                mode="json"
            )
        except SolverError as error:
            says = {"error": f"{type(error).__name__}: {error}"}
        found.append({"number": number, "kind": kind, "s": time.process_time() - began, "says": says})
    return found


def in_checkout(folder: Path, options: argparse.Namespace, database: str) -> list[dict[str, Any]]:
    """The same in a process of a checkout."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, str(Path(__file__).resolve()), "--answer", file.name, "--database", database]
        command += ["--seed", str(options.seed), "--only", options.only, "--first", str(options.first)]
        command += ["--step", str(options.step)]
        subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, check=True)
        answers: list[dict[str, Any]] = json.loads(Path(file.name).read_text(encoding="utf-8"))
        return answers


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Where two answers differ, and in what.

    >>> differences({"a": [1, 2]}, {"a": [1, 3]})
    ['a/1: 2 → 3']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        return [line for key in keys for line in differences(old.get(key), new.get(key), f"{place}/{key}".lstrip("/"))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for n, (a, b) in pairs for line in differences(a, b, f"{place}/{n}")]
    return [] if old == new else [f"{place}: {_short(old)} → {_short(new)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.same_answers", description=__doc__)
    parser.add_argument("--against", type=Path, help="an older checkout, with the same tables in its database")
    parser.add_argument("--store", type=Path, help="keep this checkout's answers")
    parser.add_argument("--with", dest="kept", type=Path, help="compare with answers kept")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="every so many-th request")
    parser.add_argument("--but", default="", help="names of fields that may differ, with commas between them")
    parser.add_argument("--database", help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer is not None:
        found = answered(options.database, options.seed, options.only, options.first, options.step)
        options.answer.write_text(json.dumps(found), encoding="utf-8")
        return 0
    from tests.bench.planner import seeded_database

    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        new = in_checkout(ROOT, options, url)
        if options.store is not None:
            options.store.write_text(json.dumps(new), encoding="utf-8")
            return 0
        if options.kept is not None:
            every = {one["number"]: one for one in json.loads(options.kept.read_text(encoding="utf-8"))}
            old = [every[one["number"]] for one in new]
        else:
            old = in_checkout((options.against or ROOT).resolve(), options, url)
    return report(old, new, options.but.split(","))


def report(old: list[dict[str, Any]], new: list[dict[str, Any]], may_differ: list[str]) -> int:
    """Print what differs, by kind of request; 1 where anything does but the fields that may."""
    console, table = Console(width=160), Table("kind", "requests", "identical", "old, s", "new, s")
    tally: dict[str, list[float]] = {}
    for before, after in zip(old, new, strict=True):
        lines = differences(before["says"], after["says"])
        lines = [line for line in lines if line.partition(": ")[0].rpartition("/")[2] not in may_differ]
        one = tally.setdefault(after["kind"], [0, 0, 0.0, 0.0])
        one[0], one[1], one[2], one[3] = one[0] + 1, one[1] + (not lines), one[2] + before["s"], one[3] + after["s"]
        if lines:
            console.print(f"[bold]{after['number']} {after['kind']}[/bold]: {len(lines)} fields")
            for line in lines[:12]:
                console.print(f"  {line}", markup=False)
    for kind, (count, same, before_s, after_s) in tally.items():
        table.add_row(kind, str(count), str(same), f"{before_s:.1f}", f"{after_s:.1f}")
    console.print(table)
    count, same = sum(int(one[0]) for one in tally.values()), sum(int(one[1]) for one in tally.values())
    console.print(f"{same} of {count} identical; load average {os.getloadavg()[0]:.1f} at the end")
    return 0 if same == count else 1


if __name__ == "__main__":
    raise SystemExit(main())
