"""What kernels of recurrent layers were measured to take, what constants say of them, and what is said of servers since:
``python -m tests.bench.recurrent_kernels``.

Kernels alone (``catalog/benchmarks/devices``) tell how fast a gated delta rule scans a prompt, and how much longer launching such a
layer takes than launching a state space's. The eighteen loads of servers that are printed then are in no fit: each was predicted before it
was run, by constants that knew state spaces alone, and is predicted now as a server of the kernel that it was started with.
"""

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from solver.corrections.evidence import Measurement, predicted
from solver.engine.profiles import FLASHINFER, TRITON
from solver.llm_shape import AttentionGroup
from solver.step.recurrent_terms import scan_flops
from tests.bench.predicted_before import RUNS, predictions
from tests.bench.routing_of_random_weights import measured_run

KERNELS = DEFAULT_ROOT / "devices" / "h200-sxm_vllm-0.24.0_recurrent-layers.json"
HEADS = {"qwen3.5-27b": 48, "qwen3.5-35b-a3b": 32}
STATE_SPACE = "mamba2"
LEAST_TOKENS = 930
"""From here on a scan is longer than what starts its kernels."""
SCAN_KERNELS = ("chunk_", "merge_", "recompute_")
SCAN_PART = "fla_chunk_gated_delta_rule"
FLASHINFER_S_PER_TOKEN = 0.371e-3 / 8192
"""FlashInfer's kernel of 0.6.12 on an H100, 8 heads of 128, 8,192 tokens of one sequence: https://github.com/flashinfer-ai/flashinfer/pull/3477
(column "main", 1 June 2026), read on 28 November 2026. 4,096 and 2,048 tokens took a half and a quarter: each head of a sequence is one
multiprocessor's, chunk after chunk."""
FLASHINFER_CALLS = 5
"""Of PyTorch around its one kernel: exponentials, two results and a workspace made, positions widened."""
SERVERS = {
    "Qwen3.5 27B, prompts scanned by Triton": TRITON,
    "Qwen3.5 27B, prompts scanned by FlashInfer": FLASHINFER,
    "Qwen3.5 35B-A3B, fp8, by Triton": TRITON,
}
FIGURES = {"time_to_first_token": "ttft_ms", "time_per_output_token": "tpot_ms"}
US_PER_S, MS_PER_S, FLOP_PER_TFLOP = 1e6, 1e3, 1e12


def measured() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(KERNELS.read_text())
    return read


def prefills(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [case for case in found["cases"] if case["phase"] == "prefill"]


def heads(case: Mapping[str, Any]) -> int:
    return HEADS[case["layer"]]


def flops(case: Mapping[str, Any]) -> float:
    group = AttentionGroup("linear", 1, heads=heads(case), key_heads=16, head_dim=128, v_head_dim=128)
    return float(case["tokens"] * scan_flops(group, 1.0))


def launch_us(found: Mapping[str, Any], kernel: str) -> float:
    """Host time to enqueue a gated delta rule: the least that was seen of each case, the median of cases."""
    plain = found["host"]
    own = FLASHINFER_CALLS * plain["torch_add_us"] + plain["triton_launch_us"]
    taken = []
    for case in prefills(found):
        if case["kind"] != STATE_SPACE:
            scan = case["host_parts_us"][SCAN_PART] / case["host_us"] * case["host_least_us"]
            taken.append(case["host_least_us"] + (own - scan if kernel == FLASHINFER else 0.0))
    return float(statistics.median(taken))


def launch_ratio(found: Mapping[str, Any], kernel: str) -> float:
    """What launching a gated delta rule takes over what launching a state space takes, on the same host within two minutes."""
    of_state_space = [case["host_least_us"] for case in prefills(found) if case["kind"] == STATE_SPACE]
    return float(launch_us(found, kernel) / statistics.median(of_state_space))


def device_s(case: Mapping[str, Any], kernel: str, multiprocessors: int) -> float:
    """Seconds of one layer's operation: as measured, or with FlashInfer's scan, as published, in the place of Triton's."""
    triton: float = case["device_us"] / US_PER_S
    if kernel == TRITON:
        return triton
    scan_us = sum(us for name, (us, _) in case["kernels_us"].items() if name.startswith(SCAN_KERNELS))
    rounds = math.ceil(heads(case) * case["prefills"] / multiprocessors)
    return float(triton - scan_us / US_PER_S + rounds * case["tokens"] / case["prefills"] * FLASHINFER_S_PER_TOKEN)


def long_enough(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cases of gated delta rules whose scan is longer than what starts its kernels."""
    return [case for case in prefills(found) if case["kind"] != STATE_SPACE and case["tokens"] >= LEAST_TOKENS]


def flop_per_s(catalog: Catalog, found: Mapping[str, Any]) -> float:
    tflop_per_s = catalog.devices[found["device"]].dense_bf16_tflop_per_s
    assert tflop_per_s is not None
    return tflop_per_s * FLOP_PER_TFLOP


def scan_law(found: Mapping[str, Any], kernel: str) -> tuple[float, float, float]:
    """(start in s, FLOP/s, largest relative error) of a layer's operation: least squares of relative errors."""
    cases = long_enough(found)
    seconds = np.array([device_s(case, kernel, found["multiprocessors"]) for case in cases])
    work = np.array([flops(case) for case in cases])
    start, slope = np.linalg.lstsq(np.stack([1.0 / seconds, work / seconds], axis=1), np.ones(len(cases)), rcond=None)[
        0
    ]
    return float(start), float(1.0 / slope), float(np.abs((start + slope * work) / seconds - 1.0).max())


def derived(catalog: Catalog, kernel: str) -> dict[str, float]:
    """Constants of one kernel, as the catalog's rows cite them."""
    found = measured()
    start_s, rate, _ = scan_law(found, kernel)
    return {
        f"delta_launch_ratio_{kernel}": launch_ratio(found, kernel),
        f"delta_scan_start_us_{kernel}": start_s * US_PER_S,
        f"delta_scan_efficiency_{kernel}": rate / flop_per_s(catalog, found),
    }


def show_kernels(catalog: Catalog) -> None:
    found = measured()
    start_s, rate, _ = scan_law(found, TRITON)
    table = Table(
        "layer",
        "prompts",
        "tokens",
        "host us: least",
        "median",
        "of it the scan",
        "device us",
        "of it the scan",
        "by the law",
    )
    for case in prefills(found):
        delta = case["kind"] != STATE_SPACE
        scan_us = sum(us for name, (us, _) in case["kernels_us"].items() if name.startswith(SCAN_KERNELS))
        table.add_row(
            case["layer"], str(case["prefills"]), f"{case['tokens']:,}", f"{case['host_least_us']:.0f}", f"{case['host_us']:.0f}",
            f"{case['host_parts_us'][SCAN_PART]:.0f}" if delta else "", f"{case['device_us']:.0f}", f"{scan_us:.0f}" if delta else "",
            f"{(start_s + flops(case) / rate) * US_PER_S:.0f}" if delta else "",
        )  # fmt: skip
    Console(width=130).print(table)
    for kernel in (TRITON, FLASHINFER):
        constants = ", ".join(f"{name} {value:.3g}" for name, value in derived(catalog, kernel).items())
        print(f"{constants}; the scan's law within {scan_law(found, kernel)[2]:.0%}")


def said_of(
    catalog: Catalog, name: str, run: dict[str, Any], kernel: str | None
) -> tuple[Measurement, dict[str, float]]:
    """A run, and what is said of it of a server that scans with a kernel; None: as vLLM chooses there."""
    one = measured_run(catalog, name, run)
    engine = replace(one.configuration.engine, scan_kernel=kernel)
    one = replace(one, configuration=replace(one.configuration, engine=engine))
    return one, predicted(one, one.configuration.constants)


def runs_of(title: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEFAULT_ROOT / RUNS[title]).read_text())["runs"]
    return found


def show_servers(catalog: Catalog) -> None:
    """Errors in per cent of what was said before the run, and of what is said now of the kernel that the server had."""
    before = predictions()
    columns = ("run", *(f"{name} ms: {what}" for name in ("TTFT", "TPOT") for what in ("measured", "before", "now")))
    for title, kernel in SERVERS.items():
        table = Table(*columns, title=title)
        off: dict[tuple[str, int], list[float]] = {(figure, what): [] for figure in FIGURES for what in range(2)}
        for name, run in runs_of(title).items():
            one, now = said_of(catalog, name, run, kernel)
            row = [name]
            for figure, field in FIGURES.items():
                seconds = one.measured[figure]
                said = [before[run["predicted_as"]][field]["mean"]["expected"] / MS_PER_S, now[figure]]
                errors = [100.0 * (value / seconds - 1.0) for value in said]
                row += [f"{seconds * MS_PER_S:.4g}", *(f"{error:+.1f} %" for error in errors)]
                for what, error in enumerate(errors):
                    off[figure, what].append(abs(error))
            table.add_row(*row)
        table.add_section()
        means = [["", *(f"{statistics.mean(off[figure, what]):.1f} %" for what in range(2))] for figure in FIGURES]
        table.add_row("mean", *means[0], *means[1])
        Console(width=130).print(table)


def kernels_apart(catalog: Catalog) -> dict[str, list[float]]:
    """What is said of a server with Triton's kernels over what is said with FlashInfer's, by figure, of each load of both models."""
    found: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for title, kernel in SERVERS.items():
        if kernel == TRITON:
            for name, run in runs_of(title).items():
                slow, fast = (said_of(catalog, name, run, one)[1] for one in (TRITON, FLASHINFER))
                for figure, ratios in found.items():
                    ratios.append(slow[figure] / fast[figure])
    return found


def show_apart(catalog: Catalog) -> None:
    for figure, ratios in kernels_apart(catalog).items():
        print(
            f"{figure}: with Triton's kernels {min(ratios):.2f} to {max(ratios):.2f} times what with FlashInfer's, of twelve loads"
        )


def main() -> None:
    catalog = read_catalog()
    show_kernels(catalog)
    show_servers(catalog)
    show_apart(catalog)


if __name__ == "__main__":
    main()
