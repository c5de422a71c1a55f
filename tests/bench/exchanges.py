"""What gathering tokens for shared experts, and scattering results, was measured to take, and the law that is fitted to it:
``python -m tests.bench.exchanges`` (seconds).

Among two and four H200, as the engine calls them (``catalog/benchmarks/devices/h200-sxm_exchanges_x.json``): five constants by least
squares of logarithms, the link's rate being what serving runs told (``link_efficiency`` of the newest correction set). Beside it what
launching the calls takes the host where copies have different numbers of tokens.
"""

import json
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.layout import Layout
from solver.step.rates import Rates
from solver.step.shared_experts import NCCL_CALLS, collective_s
from tests.bench.copies_in_step import served

FILE = DEFAULT_ROOT / "devices" / "h200-sxm_exchanges_x.json"
GATHER, REDUCE = "all_gather of tokens, weights and experts", "reduce_scatter"
UNEVEN = (
    "all_gatherv of tokens, weights and experts, one token of the others",
    "reduce_scatterv, one token of the others",
)
ROW_BYTES = 4096.0
FITTED = ("exchange_latency_s", "exchange_hop_s", "exchange_start_s", "exchange_quick_share", "exchange_own_share")
START = np.array([6.0, 1.2, 12.0, 0.4, 0.5])
UNITS = np.array([1e-6, 1e-6, 1e-6, 1.0, 1.0])
US = 1e6


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FILE.read_text())["collectives"]
    return found


def rates_of(devices: int) -> Rates:
    return served(Layout(data_parallel=devices, expert_parallel=devices)).rates()


def said_us(rates: Rates, row: dict[str, Any]) -> float:
    tokens = float(row["tokens"])
    uneven = row["collective"] in UNEVEN
    gathered = tokens if uneven else tokens * row["devices"]
    return float(np.asarray(collective_s(rates, ROW_BYTES, tokens, gathered))) * US


def fitted(even: list[dict[str, Any]]) -> np.ndarray:
    own = {n: rates_of(n) for n in {row["devices"] for row in even}}

    def off(values: np.ndarray) -> list[float]:
        moved = dict(zip(FITTED, (values * UNITS).tolist(), strict=True))
        return [float(np.log(said_us(replace(own[row["devices"]], **moved), row) / row["in_graph_us"])) for row in even]

    return np.asarray(least_squares(off, START, loss="soft_l1").x)


def main() -> None:
    measured = rows()
    even = [row for row in measured if row["collective"] in (GATHER, REDUCE)]
    found = fitted(even)
    print("fitted: " + ", ".join(f"{name} {value:.3g}" for name, value in zip(FITTED, found, strict=True)))
    for devices in (2, 4):
        rates = rates_of(devices)
        by = {(row["collective"], row["tokens"]): row for row in measured if row["devices"] == devices}
        table = Table("tokens", "said, us", "gathered", "scattered", "one copy's: said", "gathered", "scattered")
        for tokens in sorted({tokens for _, tokens in by}):
            cells = [f"{said_us(rates, by[GATHER, tokens]):.1f}"]
            cells += [f"{by[name, tokens]['in_graph_us']:.1f}" for name in (GATHER, REDUCE)]
            if (UNEVEN[0], tokens) in by:
                cells += [f"{said_us(rates, by[UNEVEN[0], tokens]):.1f}"]
                cells += [f"{by[name, tokens]['in_graph_us']:.1f}" for name in UNEVEN]
            table.add_row(f"{tokens:,}", *cells)
        Console(width=110).print(f"{devices} devices", table)
        calls = [sum(by[name, tokens]["host_us"] for name in UNEVEN) for tokens in (256, 512, 1024, 2048)]
        median = statistics.median(calls)
        print(f"  launched where copies differ: {median:.0f} us, {median / (NCCL_CALLS * devices):.1f} a call")
    off = [abs(said_us(rates_of(row["devices"]), row) / row["in_graph_us"] - 1.0) for row in even]
    print(f"{len(even)} gathers and reductions: {100.0 * float(np.mean(off)):.0f} % off in the mean")


if __name__ == "__main__":
    main()
