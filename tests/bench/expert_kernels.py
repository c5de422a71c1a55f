"""What reading and multiplying routed experts takes, by kernels alone: ``python -m tests.bench.expert_kernels`` (seconds).

Experts of one layer of several models, whole or cut in two, in 16 and in 8 bits on one H200 (eighteenth and twenty-first campaigns),
and the constants of the law of routed experts (docs/mathematics.md, "Matrix products") that are told by them: with and without the
tiles that rows of an expert fill. Scales of blocks are shown and in no fit. Then those kernels beside what
is said of them now, with the constants of the newest correction set; and kernels that were measured after all this was told.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import in_force
from solver.step.constants import Constants, resolve_constants
from solver.step.gemm import soft_maximum_s
from tests.solver.samples import device

DEVICE = "h200-sxm"
LATER = ("h200-sxm_vllm-0.24.0_routed-experts-wide.json",)
"""Wide experts, and narrow ones of which there are many: measured after the law was told (twenty-second campaign)."""
FILES = ("h200-sxm_vllm-0.24.0_routed-experts.json", "h200-sxm_vllm-0.24.0_routed-experts-8bit.json")
SHAPES = {"deepseek-v2-lite": (64, 6, 2048, 1408), "qwen3-30b-a3b": (128, 8, 2048, 768)}
"""Of the file in 16 bits: experts, picks, hidden width, width of an expert."""
CUTS = {"all on one device": 1, "cut in two": 2}
MOST_ROWS = 8192
MATRICES = 3.0
NAMES = ("expert_read_efficiency", "expert_tile_rows", "expert_half_width_16bit",
         "expert_half_width_8bit", "expert_layer_overhead_us", "quantised_expert_layer_us",
         "expert_widest_share_16bit", "expert_widest_share_8bit")  # fmt: skip
START = (0.9, 64.0, 300.0, 500.0, 20.0, 10.0, 0.9, 0.9)
HIGH = (1.0, 512.0, 6000.0, 6000.0, 80.0, 80.0, 1.0, 1.0)
WIDEST = {"expert_widest_share_16bit": 1.0, "expert_widest_share_8bit": 1.0}
UNTOLD = {"expert_tile_rows": 0.0} | WIDEST
US = 1e-6


class Kernel(NamedTuple):
    """One layer's experts on one device: width of the columns of an expert that it has, rows of tokens, experts that any picks."""

    title: str
    format: str
    top_k: int
    hidden: int
    width: int
    rows: int
    touched: float
    seconds: float


def kernels(files: tuple[str, ...] = FILES) -> list[Kernel]:
    found = []
    for file in files:
        for case in json.loads((DEFAULT_ROOT / "devices" / file).read_text())["cases"]:
            if case["rows"] > MOST_ROWS or case.get("experts") in (
                "spread over two devices",
                "spread over four devices",
            ):
                continue
            if "format" in case:
                title, form, top_k = f"{case['llm']}, {case['format']}", case["format"], case["top_k"]
                hidden, width = case["hidden"], case["width"]
            else:
                _, top_k, hidden, whole = SHAPES[case["llm"]]
                title, form, width = f"{case['llm']}, {case['experts']}, bf16", "bf16", whole // CUTS[case["experts"]]
            found.append(
                Kernel(title, form, top_k, hidden, width, case["rows"], case["touched"], case["in_graph_us"] * US)
            )
    return found


def said_s(one: Kernel, told: dict[str, float], constants: Constants) -> float:
    """The law of routed experts with its passes over rows and its kernels' own time."""
    own, wide = device(DEVICE), one.format == "bf16"
    stored, bits = (2.0, "16bit") if wide else (1.0, "8bit")
    efficiency = constants.si("gemm_efficiency_16bit" if wide else "gemm_efficiency_fp8")
    peak = own.flop_per_s["bf16" if wide else "fp8"] * efficiency
    weights = MATRICES * one.hidden * one.width
    pairs = one.rows * one.top_k
    worked = pairs + one.touched * told["expert_tile_rows"] / 2.0
    slower = 1.0 / told[f"expert_widest_share_{bits}"] + told[f"expert_half_width_{bits}"] / one.width
    compute = 2.0 * weights * worked / peak * slower
    memory = one.touched * weights * stored / (own.memory_bytes_per_s * told["expert_read_efficiency"])
    passes = pairs * (2.0 * MATRICES * one.width + 4.0 * one.hidden)
    around = told["expert_layer_overhead_us"] + (0.0 if wide else told["quantised_expert_layer_us"])
    streamed = passes / (own.memory_bytes_per_s * constants.si("stream_efficiency"))
    return around * US + float(np.asarray(soft_maximum_s(compute, memory))) + streamed


def fit(cases: list[Kernel], constants: Constants, left_out: dict[str, float]) -> dict[str, float]:
    """By least squares of logarithms; those left out are as stated."""
    names = [name for name in NAMES if name not in left_out]

    def misses(values: NDArray[np.float64]) -> list[float]:
        told = left_out | dict(zip(names, map(float, values), strict=True))
        return [float(np.log(said_s(one, told, constants) / one.seconds)) for one in cases]

    at = [NAMES.index(name) for name in names]
    solved = least_squares(misses, [START[i] for i in at], bounds=([1e-3] * len(at), [HIGH[i] for i in at]))
    return left_out | dict(zip(names, map(float, solved.x), strict=True))


def show(title: str, cases: list[Kernel], said: Callable[[Kernel], float]) -> None:
    rows = sorted({one.rows for one in cases})
    table = Table("experts", *(f"{row:,}" for row in rows), title=f"{title}: off %, by rows")
    misses = {(one.title, one.rows): 100.0 * (said(one) / one.seconds - 1.0) for one in cases}
    for name in dict.fromkeys(one.title for one in cases):
        table.add_row(name, *(f"{misses[name, row]:+.0f}" if (name, row) in misses else "" for row in rows))
    Console(width=150).print(table)
    print(f"{np.mean(np.abs(list(misses.values()))):.1f} % off in the mean of {len(misses)}")


def main() -> None:
    catalog, own = read_catalog(), device(DEVICE)
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    constants = resolve_constants(priors, device=DEVICE, family=own.family, engine="vllm")
    cases = kernels()
    fitted = [one for one in cases if one.format != "block"]
    for title, left_out in (("without tiles", UNTOLD), ("with tiles", WIDEST)):
        told = fit(fitted, constants, left_out)
        print(f"{title}: {', '.join(f'{name} {value:.3f}' for name, value in told.items() if name not in left_out)}")
        show(title, cases, partial(said_s, told=told, constants=constants))
    now = {name: constants.priors[name].value for name in NAMES}
    print(f"in force: {', '.join(f'{name} {value:.3f}' for name, value in now.items())}")
    show("in force", cases, partial(said_s, told=now, constants=constants))
    later = kernels(LATER)
    show("measured later, by the kernels above", later, partial(said_s, told=told, constants=constants))
    show("measured later, in force", later, partial(said_s, told=now, constants=constants))
    told = fit(fitted + later, constants, {})
    print(f"told by all, widest shares as well: {', '.join(f'{name} {value:.3f}' for name, value in told.items())}")
    show("told by all", fitted + later, partial(said_s, told=told, constants=constants))


if __name__ == "__main__":
    main()
