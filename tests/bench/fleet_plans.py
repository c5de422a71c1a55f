"""Fleets over time, with real prices and commitments: ``python -m tests.bench.fleet_plans [--only CASE]``.

The demand is fleet_demand.json's (its formula: ``tests.bench.fleet_demand``). An application on a fresh database answers
the request once; the on-demand cost is the same optimiser's, over the same offers. Amounts are in present value, which is
what is minimised; only the case ``own`` discounts. Processor seconds are this process's, screening and simulation
included; the time limit of the request is by the clock.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from rich.console import Console
from rich.table import Table

from service.main import create_app
from service.settings import Settings
from tests.bench.fleet_demand import made, stored
from tests.bench.planner import seeded_database

WORKLOADS: dict[str, dict[str, Any]] = {
    "chat": {
        "llm": "llama-3.1-70b",
        "traffic": {
            "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
            "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
        },
        "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 50}},
    },
    "code": {
        "llm": "qwen3-32b",
        "traffic": {
            "prompt_tokens": {"distribution": "lognormal", "mean": 2000, "p95": 6000},
            "output_tokens": {"distribution": "lognormal", "mean": 200, "p95": 600},
        },
        "targets": {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 40}},
    },
    "search": {
        "llm": "llama-3.1-8b",
        "traffic": {
            "prompt_tokens": {"distribution": "lognormal", "mean": 800, "p95": 2000},
            "output_tokens": {"distribution": "lognormal", "mean": 150, "p95": 400},
        },
        "targets": {"ttft_ms": {"p95": 800}, "tpot_ms": {"p95": 40}},
    },
}
HOPPER = {"providers": ["nebius", "market"], "devices": ["h100-sxm", "h200-sxm"]}
"""By the hour at Nebius, reserved for three years at contract prices."""
AMPERE_AND_ADA = {
    "providers": ["aws"],
    "regions": ["us-east-1"],
    "devices": ["a100-sxm-40", "a100-sxm-80", "l40s", "l4"],
}
"""By the hour or reserved for one year."""
HOPPER_AT_AWS = {
    "providers": ["aws"],
    "regions": ["us-east-1", "frankfurt"],
    "devices": ["h100-sxm", "h200-sxm", "l40s"],
}
"""By the hour or reserved for one year, beside what may be bought."""
OWN_ROOM = {
    "region": "frankfurt",
    "machines": [{"node": "hgx-h100-8"}, {"node": "hgx-h200-8"}, {"node": "pcie-l40s-8"}],
    "purchase_months": [0, 12, 24],
    "electricity": {"region": "de"},
}
"""Prices, staff, space and electricity of the catalog; its cost of capital discounts every payment."""
BAR = "gap ≤ 3 % in 60 s, ≤ 2 configurations a workload, ≤ 5 % over no rules"
CASES: dict[str, tuple[str, tuple[str, ...], dict[str, int], dict[str, Any], str]] = {
    "year": (
        "one-year terms",
        ("chat", "code", "search"),
        {"months": 12, "periods_per_month": 48},
        AMPERE_AND_ADA,
        BAR,
    ),
    "contracts": ("three-year terms", ("chat", "code", "search"), {"months": 36, "periods_per_month": 16}, HOPPER, BAR),
    "own": (
        "bought or one-year terms",
        ("chat", "code", "search"),
        {"months": 36, "periods_per_month": 16},
        HOPPER_AT_AWS,
        BAR,
    ),
    "example": (
        "examples/fleet-three-workloads.json",
        ("chat", "code", "search"),
        {"months": 12, "periods_per_month": 48},
        AMPERE_AND_ADA,
        BAR,
    ),
    "small": ("three-year terms", ("chat",), {"months": 36, "periods_per_month": 6}, HOPPER, "–"),
}
EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-three-workloads.json"
TIME_LIMIT_S = 60.0
GAP_FRACTION = 0.01
PERCENT = 100.0


def request(case: str) -> dict[str, Any]:
    """The body of ``POST /v1/fleets``."""
    if case == "example":
        body: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
        return body
    _, names, horizon, limits, _ = CASES[case]
    demand = stored()
    return {
        "workloads": [{"name": name, **WORKLOADS[name], "demand": demand[name]} for name in names],
        "horizon": horizon,
        "limits": limits,
        "time_limit_s": TIME_LIMIT_S,
        "gap_fraction": GAP_FRACTION,
        "own": [OWN_ROOM] if case == "own" else [],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet_plans", description=__doc__)
    parser.add_argument("--only", choices=CASES, help="one of the cases")
    arguments = parser.parse_args()
    if stored() != made():
        raise SystemExit("fleet_demand.json is not what its formula gives: python -m tests.bench.fleet_demand")
    table = Table(title="fleets over time: committed, on demand, and both bounded")
    for heading in (
        "what", "periods × workloads", "commitments", "present USD", "on demand", "saved", "configurations", "over no rules",
        "true gap", "seconds", "processor s", "bar",
    ):  # fmt: skip
        table.add_column(heading, overflow="fold")
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=seeded_database(Path(folder) / "bench.sqlite")))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
            for case in CASES if arguments.only is None else (arguments.only,):
                table.add_row(*measured(client, case))
    Console(width=200).print(table)
    Console().print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    return 0


def measured(client: TestClient, case: str) -> list[str]:
    what, names, horizon, _, bar = CASES[case]
    began, used = time.perf_counter(), time.process_time()
    response = client.post("/v1/fleets", json=request(case), headers={"Prefer": "wait=300"})
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    if response.status_code != 201:
        raise SystemExit(f"{case}: {response.text}")
    answer = response.json()
    totals, solve = answer["totals"], answer["solve"]
    return [
        f"{case}: {what}",
        f"{horizon['months']} months × {horizon['periods_per_month']} × {len(names)}",
        "\n".join(
            f"{c['nodes']} × {c['node']} {c['commitment']}, month {c['start_month']}" for c in answer["commitments"]
        ),
        f"{float(totals['present_usd']):,.0f}",
        f"{float(totals['on_demand_present_usd']):,.0f}",
        f"{PERCENT * totals['saved_present_fraction']:.1f} %",
        f"{answer['operation']['configurations']}, up ≥ {answer['operation']['least_hours_up']} h",
        over_no_rules(answer),
        f"{PERCENT * solve['gap_fraction']:.2f} %",
        f"{seconds:.1f}",
        f"{cpu:.1f}",
        bar,
    ]


def over_no_rules(answer: dict[str, Any]) -> str:
    """How much dearer the plan is than without rules of operation: than the best plan found so, and at most."""
    usd = float(answer["solve"]["usd"])
    said = []
    for one in answer["operation"]["freedoms"]:
        found = "?" if one["saves_fraction"] is None else f"{PERCENT * one['saves_fraction']:.2f} %"
        most = "?" if one["bound_usd"] is None else f"{PERCENT * (usd / float(one['bound_usd']) - 1.0):.2f} %"
        said.append(f"{one['rule'] or 'all rules'}: {found} (≤ {most})")
    return "\n".join(said) or "–"


if __name__ == "__main__":
    raise SystemExit(main())
