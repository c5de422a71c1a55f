"""Predictions against public runs of other people, by engine and device.

    python -m tests.bench.public_cases FILE [--url http://127.0.0.1:8000]

FILE is a CSV with a run a line: device, engine, engine_version, llm, weights, kv_cache, the four layout columns,
prompt_tokens_low/high, output_tokens_low/high, concurrency, requests, ttft_ms_mean, tpot_ms_mean. Closed loops only.
"""

import argparse
import csv
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx

AT_ONCE = 100
LAYOUT = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
METRICS = {"TPOT": "tpot_ms", "TTFT": "ttft_ms"}


def asked(row: dict[str, str]) -> dict[str, Any]:
    """The run as a body of an estimate."""
    load: dict[str, Any] = {"kind": "closed", "concurrency": int(row["concurrency"])}
    if row["requests"]:
        load["requests"] = int(row["requests"])
    return {
        "device": row["device"],
        "llm": row["llm"],
        "layout": {name: int(row[name]) for name in LAYOUT},
        "precision": {"weights": row["weights"], "kv_cache": row["kv_cache"]},
        "engine": {"name": row["engine"]} | ({"version": row["engine_version"]} if row["engine_version"] else {}),
        "traffic": {kind: lengths(row, kind) for kind in ("prompt_tokens", "output_tokens")},
        "load": load,
    }


def lengths(row: dict[str, str], kind: str) -> dict[str, Any]:
    low, high = int(row[f"{kind}_low"]), int(row[f"{kind}_high"])
    return (
        {"distribution": "fixed", "tokens": low}
        if low == high
        else {"distribution": "uniform", "low": low, "high": high}
    )


def estimates(client: httpx.Client, rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """An answer for each run, in order."""
    answers: list[dict[str, Any]] = []
    for start in range(0, len(rows), AT_ONCE):
        body = {"estimates": [asked(row) for row in rows[start : start + AT_ONCE]]}
        answers += client.post("/v1/estimates", json=body).raise_for_status().json()["estimates"]
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    arguments = parser.parse_args()
    rows = [row for row in csv.DictReader(arguments.file.open(encoding="utf-8")) if row["load"] == "closed"]
    with httpx.Client(base_url=arguments.url, timeout=300.0) as client:
        answers = estimates(client, rows)
    cells: dict[tuple[str, str], dict[str, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
    bases: dict[str, dict[str, list[tuple[bool, float]]]] = defaultdict(lambda: defaultdict(list))
    refused = 0
    for row, found in zip(rows, answers, strict=True):
        if found["outcome"] != "estimated":
            refused += 1
            continue
        for metric, field in METRICS.items():
            if row[f"{field}_mean"]:
                interval, measured = found[field]["mean"], float(row[f"{field}_mean"])
                error = interval["expected"] / measured - 1.0
                inside = interval["low"] <= measured <= interval["high"]
                cells[row["engine"], row["device"]][metric].append((error, inside))
                bases[found["basis"]][metric].append((inside, interval["high"] / interval["low"]))
    print("| engine, device | n | TPOT mean, median, bias % | inside | TTFT mean, median, bias % | inside |")
    print("|---|---|---|---|---|---|")
    for (engine, device), metrics in sorted(cells.items()):
        shown = []
        for metric in METRICS:
            errors = [error for error, _ in metrics[metric]]
            sizes = [100.0 * abs(error) for error in errors]
            shown.append(
                f"{statistics.fmean(sizes):.1f}, {statistics.median(sizes):.1f}, {100.0 * statistics.median(errors):+.1f} | "
                f"{statistics.fmean(inside for _, inside in metrics[metric]):.2f}"
            )
        print(f"| {engine}, {device} | {len(metrics['TPOT'])} | {' | '.join(shown)} |")
    print("\n| basis | n | TPOT inside | median high/low | TTFT inside | median high/low |\n|---|---|---|---|---|---|")
    for basis, known in sorted(bases.items()):
        shown = [
            f"{statistics.fmean(i for i, _ in known[m]):.2f} | {statistics.median(w for _, w in known[m]):.2f}"
            for m in METRICS
        ]
        print(f"| {basis} | {len(known['TPOT'])} | {' | '.join(shown)} |")
    print(f"\n{len(rows)} runs, {refused} refused")


if __name__ == "__main__":
    main()
