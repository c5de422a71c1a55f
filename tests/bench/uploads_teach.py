"""What uploads of some configurations of a model teach about its others, on a service that has seen none.

    python -m tests.bench.uploads_teach FILE [--url http://127.0.0.1:8000]

FILE is that of ``tests.bench.public_cases``. Of each model on a device under an engine every second configuration (precision and layout,
in order) is uploaded; the others are estimated before and after. Give it a service of its own: what it uploads stays there.
"""

import argparse
import csv
import math
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx

from tests.bench.public_cases import LAYOUT, METRICS, asked, estimates

SETTLED_S = 5.0
"""No new correction set for so long after the last upload: everything is learnt."""
Row = dict[str, str]


def configuration(row: Row) -> tuple[str, ...]:
    return (row["weights"], row["kv_cache"], *(row[name] for name in LAYOUT))


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of every second configuration of each model on a device under an engine, and of the others."""
    models: dict[tuple[str, str, str], set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        models[row["engine"], row["device"], row["llm"]].add(configuration(row))
    given = {(*model, known) for model, all_known in models.items() for known in sorted(all_known)[::2]}
    shown = [row for row in rows if (row["engine"], row["device"], row["llm"], configuration(row)) in given]
    return shown, [row for row in rows if row not in shown]


def upload(row: Row) -> dict[str, Any]:
    """The run as a body of an upload."""
    body = asked(row)
    results = {field: {"mean": float(row[f"{field}_mean"])} for field in METRICS.values() if row[f"{field}_mean"]}
    devices = math.prod(int(row[name]) for name in LAYOUT[:3])
    context = {name: body[name] for name in ("device", "llm", "layout", "precision", "engine")}
    return {
        "context": {**context, "devices": devices, "measured_at": "2026-06-01T00:00:00Z"},
        "load": body["load"],
        "traffic": body["traffic"],
        "results": results,
    }


def learnt(client: httpx.Client) -> None:
    """Returns once uploads have ceased to make correction sets."""
    number, since = None, time.monotonic()
    while time.monotonic() - since < SETTLED_S:
        newest = client.get("/v1/accuracy").raise_for_status().json()
        if newest != number:
            number, since = newest, time.monotonic()
        time.sleep(0.5)


def within_models(rows: list[Row], answers: list[dict[str, Any]], field: str) -> tuple[float, float]:
    """Variance of the logarithms of measured over predicted within models and between them, by median of each configuration."""
    found: dict[tuple[str, str, str], dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, answer in zip(rows, answers, strict=True):
        if answer["outcome"] == "estimated" and row[f"{field}_mean"]:
            ratio = float(row[f"{field}_mean"]) / answer[field]["mean"]["expected"]
            found[row["engine"], row["device"], row["llm"]][configuration(row)].append(math.log(ratio))
    medians = [[statistics.median(values) for values in known.values()] for known in found.values()]
    inside = sum(statistics.pvariance(each) * len(each) for each in medians) / sum(len(each) - 1 for each in medians)
    return inside, statistics.fmean(statistics.fmean(each) ** 2 for each in medians)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    arguments = parser.parse_args()
    rows = [row for row in csv.DictReader(arguments.file.open(encoding="utf-8")) if row["load"] == "closed"]
    shown, held = split(rows)
    with httpx.Client(base_url=arguments.url, timeout=300.0) as client:
        known = estimates(client, rows)
        for metric, field in METRICS.items():
            within, between = within_models(rows, known, field)
            print(f"{metric}: variance within models {within:.3f}, of models {between:.3f}")
        before = estimates(client, held)
        statuses = [
            client.post("/v1/benchmarks", json=upload(row)).raise_for_status().json()["status"] for row in shown
        ]
        learnt(client)
        after = estimates(client, held)
    print(
        f"{len(shown)} runs uploaded ({statuses.count('accepted')} accepted), {len(held)} of other configurations held back\n"
    )
    told = [f"{metric}{what}" for metric in METRICS for what in (" mean, median %", ", then", " inside", ", then")]
    print("| engine, device | n | " + " | ".join(told) + " |")
    print("|" + "---|" * (2 + len(told)))
    cells: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(held):
        if before[index]["outcome"] == after[index]["outcome"] == "estimated":
            cells[row["engine"], row["device"]].append(index)
            cells["all", ""].append(index)
    for (engine, device), members in sorted(cells.items()):
        shown_cells = []
        for field in METRICS.values():
            errors, inside = [], []
            for answers in (before, after):
                pairs = [
                    (answers[i][field]["mean"], float(held[i][f"{field}_mean"]))
                    for i in members
                    if held[i][f"{field}_mean"]
                ]
                sizes = [100.0 * abs(told["expected"] / measured - 1.0) for told, measured in pairs]
                errors.append(f"{statistics.fmean(sizes):.1f}, {statistics.median(sizes):.1f}")
                inside.append(
                    f"{statistics.fmean(told['low'] <= measured <= told['high'] for told, measured in pairs):.2f}"
                )
            shown_cells += [*errors, *inside]
        print(f"| {engine}, {device} | {len(members)} | " + " | ".join(shown_cells) + " |")


if __name__ == "__main__":
    main()
