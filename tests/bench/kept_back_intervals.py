"""How often intervals hold runs that are in no fit: ``python -m tests.bench.kept_back_intervals --url URL`` (half a minute).

Of a running, seeded service: of every run of ``catalog/benchmarks/kept_back`` its estimate, factors of its configuration and all, and
whether 90 % intervals of means hold what was measured. Experts are taken to be routed as trained weights do where they were drawn, and as
random ones otherwise. Left out are servers that were given more memory for their cache than an engine takes unless told or were started
with an option that no estimate is told of, loads whose experts were drawn less evenly than trained routers are taken to draw them, and
loads in which the engine stood still to compile. A kernel for gated delta rules that a server was told is told the estimate.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from tests.bench.kept_back_runs import DRAWN, NOT_TOLD

FIGURES = {"ttft_ms": "first token", "tpot_ms": "a token"}
TIMEOUT_S = 120.0
LEAST_EVENNESS = 0.5
"""Of trained routers: the low end of the catalog's ``expert_evenness_…``."""
Held = tuple[bool, float]
"""Whether an interval holds what was measured, and how many times its low end its high end is."""


def case(run: dict[str, Any], random_weights: bool) -> dict[str, Any]:
    """The request for the estimate of one run."""
    measured = run["benchmark"]
    context, load = measured["context"], measured["load"]
    settings = ("max_batched_tokens", "max_sequences", "max_context_tokens", "max_captured_tokens")
    engine = {"name": context["engine"]["name"], "version": context["engine"]["version"]}
    engine |= {name: run[name] for name in settings if name in run}
    return {
        "llm": context["llm"], "device": context["device"], "layout": context["layout"], "precision": context["precision"],
        "engine": engine | {"load_format": "dummy" if random_weights else "auto", "scan_kernel": run.get("gdn_prefill_backend")},
        "traffic": {kind: measured["traffic"][kind] for kind in ("prompt_tokens", "output_tokens")},
        "load": {k: load[k] for k in ("kind", "requests", "concurrency", "requests_per_s") if k in load},
    }  # fmt: skip


def is_counted(run: dict[str, Any]) -> bool:
    """Whether a run's experts were drawn evenly enough, and its engine never stood still."""
    return (run.get("evenness") or LEAST_EVENNESS) >= LEAST_EVENNESS and not run.get("stalled_s")


def held(path: Path, url: str) -> list[tuple[str, dict[str, Held]]]:
    """(basis, by figure) of each run of a file that was estimated."""
    read = json.loads(path.read_text(encoding="utf-8"))["runs"].values()
    runs = [run for run in read if is_counted(run)]
    random_weights = not path.stem.rpartition("_")[0].endswith(DRAWN)
    body = {"estimates": [case(run, random_weights) for run in runs]}
    answer = httpx.post(f"{url}/v1/estimates", json=body, timeout=TIMEOUT_S)
    answer.raise_for_status()
    found = []
    for run, said in zip(runs, answer.json()["estimates"], strict=True):
        if said["outcome"] != "estimated":
            continue
        of: dict[str, Held] = {}
        for figure in FIGURES:
            low, high = (said[figure]["mean"][end] for end in ("low", "high"))
            of[figure] = low <= run["benchmark"]["results"][figure]["mean"] <= high, high / low
        found.append((said["basis"], of))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    url = parser.parse_args().url.rstrip("/")
    titles = (f"{name}: {what}" for name in FIGURES.values() for what in ("inside", "high/low"))
    table = Table("runs", "basis", "loads", *titles)
    by_basis: dict[tuple[str, str], list[dict[str, Held]]] = defaultdict(list)
    for path in sorted((DEFAULT_ROOT / "kept_back").glob("*.json")):
        if NOT_TOLD in path.stem:
            continue
        of_file: dict[str, list[dict[str, Held]]] = defaultdict(list)
        for basis, one in held(path, url):
            of_file[basis].append(one)
            by_basis[path.stem.partition("_")[0], basis].append(one)
        for basis, each in of_file.items():
            table.add_row(path.stem.replace("_vllm-0.24.0", ""), basis, *cells(each))
    for (device, basis), each in sorted(by_basis.items()):
        table.add_row(f"all of {device}", basis, *cells(each))
    Console(width=150).print(table)


def cells(each: list[dict[str, Held]]) -> list[str]:
    shown = [str(len(each))]
    for figure in FIGURES:
        shown += [
            f"{np.mean([one[figure][0] for one in each]):.2f}",
            f"{np.median([one[figure][1] for one in each]):.2f}",
        ]
    return shown


if __name__ == "__main__":
    main()
