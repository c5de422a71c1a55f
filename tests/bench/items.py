"""Items, images and adapters measured on one H100 SXM under vLLM 0.24 beside what is predicted of them: medians by kind.

python -m tests.bench.items          median absolute errors in per cent, in brackets how many are at most 12
python -m tests.bench.items --runs   every run of items and images too
python -m tests.bench.items --other-host   50 runs on another host, of which none chose a constant
"""

import argparse
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from tests.bench.adapters_images import MEASURED, OTHER_HOST, compared, describe

MEASURES = ("tpot_ms", "ttft_ms", "requests_per_s")
BAR_PERCENT = 12.0
KINDS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "plain text": lambda run: "base" in run["id"] or "vl-text" in run["id"],
    "adapters, all held": lambda run: run.get("adapters", 0) > 0 and "slots8" not in run["id"],
    "adapters over 8 slots": lambda run: "slots8" in run["id"],
    "images": lambda run: run.get("images", 0) > 0,
    "items, texts": lambda run: run["output"] == 1 and "text" in run["id"],
    "items, token ids": lambda run: run["output"] == 1 and "text" not in run["id"],
}


def summary(rows: Iterable[Mapping[str, Any]]) -> str:
    """Of each measure that was taken: the median absolute error in per cent, and how many are within the bar."""
    rows = list(rows)
    parts = [f"n={len(rows):<3}"]
    for name in MEASURES:
        off = [100.0 * abs(row[name] / row["measured"][name] - 1.0) for row in rows if row["measured"].get(name)]
        if off:
            parts.append(f"{name} {median(off):5.1f} ({sum(one <= BAR_PERCENT for one in off)})")
    return "   ".join(parts)


def beside_base(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Adapters that are all held, their first tokens predicted as much later as those of the base were measured to be with as many
    clients on the same host: what is left is the adapters' own."""
    rows = list(rows)
    late_ms = {
        row["measured"]["concurrency"]: row["measured"]["ttft_ms"] - row["ttft_ms"]
        for row in rows
        if row["id"].startswith("lora-base")
    }
    held = [row for row in rows if KINDS["adapters, all held"](row["measured"])]
    return [
        {
            "ttft_ms": row["ttft_ms"] + late_ms[row["measured"]["concurrency"]],
            "measured": {"ttft_ms": row["measured"]["ttft_ms"]},
        }
        for row in held
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", action="store_true")
    parser.add_argument("--other-host", action="store_true")
    arguments = parser.parse_args()
    rows = list(compared(OTHER_HOST if arguments.other_host else MEASURED))
    if arguments.runs:
        for row in rows:
            if row["measured"]["output"] == 1 or row["measured"].get("images"):
                print(describe(row))
    for kind, belongs in KINDS.items():
        if of_kind := [row for row in rows if belongs(row["measured"])]:
            print(f"{kind:24}", summary(of_kind))
    if not arguments.other_host:
        print(f"{'adapters beside the base':24}", summary(beside_base(rows)))


if __name__ == "__main__":
    main()
