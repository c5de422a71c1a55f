"""What launching takes on processors that others slow down, and what a step's kernels take: ``python -m tests.bench.processors`` (seconds).

Servers on two hosts with H200 whose steps were noted inside the engine (twenty-fifth campaign,
``catalog/benchmarks/steps/h200-sxm_vllm-0.24.0_ze.json``): how fast each processor of an idle host is; how long launching a step with
prompts keeps the engine's loop, by how fast the processor was just before; what first tokens were with the loop on a processor of its
own, beside a loop of ours, and anywhere; how much longer captured steps of gated delta rules are launched where others decode; and
the kernels of one step of 8,192 tokens beside what is said of it with the constants of the newest correction set.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from solver.deployment.configuration import Configuration
from solver.step import terms
from solver.step.recurrent_terms import recurrent_layers, scan_s
from tests.bench.routing_of_random_weights import measured_run

FILE = DEFAULT_ROOT / "steps" / "h200-sxm_vllm-0.24.0_ze.json"
SWIFT, SLOW = 1.25, 1.6
"""Times the least that the fixed loop took on a processor of the server: at most, and at least."""
COMPILING_MS = 400.0
"""Launching that took longer compiled kernels."""
CLASSES = {
    "64 to 512 tokens": (64, 512),
    "513 to 4,096": (513, 4096),
    "4,097 to 8,191": (4097, 8191),
    "8,192": (8192, 8192),
}
GROUPS: Mapping[str, tuple[str, ...]] = {
    "experts": ("fused_moe_kernel",),
    "dense products": ("cutlass_3x_gemm", "nvjet"),
    "attention": ("FlashAttn", "prepare_varlen"),
    "scan": ("chunk", "recompute_w", "causal_conv1d", "merge_16x16", "post_conv"),
}
"""Kernels by a part of their names; all others pass over values."""
US_PER_MS = 1e3
Step = Mapping[str, float]


def steps(file: Mapping[str, Any], processes: Sequence[Sequence[Sequence[float]]]) -> list[Step]:
    """Steps with prompts of all processes that launch, without those that compiled."""
    found = [dict(zip(file["columns"], step, strict=True)) for process in processes for step in process]
    return [step for step in found if step["launching_ms"] < COMPILING_MS]


def all_steps(file: Mapping[str, Any], server: Mapping[str, Any]) -> list[Step]:
    return [step for processes in server["loads"].values() for step in steps(file, processes)]


def show_idle(each_us: Sequence[float]) -> None:
    least = min(each_us)
    slowed = sum(us > SLOW * least for us in each_us)
    print(f"processors of an idle host: 1,000 turns of a loop take {least:.1f} us on the swiftest, {np.median(each_us):.1f} on the median, "
          f"{max(each_us):.1f} on the slowest; {slowed} of {len(each_us)} take {SLOW} times the least or longer")  # fmt: skip


def show_speeds(file: Mapping[str, Any], title: str, server: Mapping[str, Any]) -> None:
    every = all_steps(file, server)
    least = float(np.percentile([step["loop_us"] for step in every], 2))
    table = Table("step", *(f"{who}: {what}" for who in ("swift", "slow") for what in ("steps", "launching, ms", "on the device, ms")),
                  title=title)  # fmt: skip
    for name, (low, high) in CLASSES.items():
        cells: list[str] = []
        held = [step for step in every if low <= step["tokens"] <= high]
        swift = [step for step in held if step["loop_us"] <= SWIFT * least]
        slow = [step for step in held if step["loop_us"] >= SLOW * least]
        for those in (swift, slow):
            cells.append(str(len(those)))
            cells += [
                f"{np.median([step[what] for step in those]):.1f}" if those else ""
                for what in ("launching_ms", "device_ms")
            ]
        table.add_row(name, *cells)
    Console(width=140).print(table)


def show_placed(file: Mapping[str, Any], title: str, server: Mapping[str, Any]) -> None:
    table = Table("load, the loop", "loop us, median", "launching ms, median", "first token, ms", "a token, ms", title=title)  # fmt: skip
    for load, results in server["results"].items():
        those = steps(file, server["loads"][load])
        medians = (f"{np.median([step[what] for step in those]):.1f}" for what in ("loop_us", "launching_ms"))
        table.add_row(load, *medians, f"{results['ttft_ms']:.1f}", f"{results['tpot_ms']:.2f}")
    Console(width=120).print(table)


def launched_alone_and_beside_ms(
    file: Mapping[str, Any], server: Mapping[str, Any], captured: int
) -> Iterator[tuple[str, float, float]]:
    """By load, how long a captured step of prompts is launched alone, and where others decode in it."""
    for load, processes in server["loads"].items():
        held = [step for step in steps(file, processes) if 256 < step["tokens"] <= captured]
        alone = [step["launching_ms"] for step in held if step["requests"] == step["prompts"]]
        beside = [step["launching_ms"] for step in held if step["requests"] > step["prompts"]]
        yield load, float(np.median(alone)), float(np.median(beside))


def group_of(kernel: str) -> str:
    return next((group for group, parts in GROUPS.items() if any(part in kernel for part in parts)), "passes")


def configuration(catalog: Catalog, server: Mapping[str, Any]) -> Configuration:
    """As the server was started."""
    file = json.loads((DEFAULT_ROOT / "kept_back" / server["kept_back"]).read_text())
    name, run = next(iter(file["runs"].items()))
    return measured_run(catalog, name, run).configuration


def show_kernels(title: str, one: Configuration, held: Mapping[str, Any]) -> None:
    """One step's kernels beside its terms."""
    shape, rates = one.shape, one.rates()
    tokens, prompt_tokens = float(held["tokens"]), float(held["prompt_tokens"])
    measured: dict[str, float] = {}
    for kernel, _, ms in held["kernels"]:
        measured[group_of(kernel)] = measured.get(group_of(kernel), 0.0) + ms
    said = {name: number(seconds) for name, seconds in terms.token_terms(shape, rates, tokens).streams.items()}
    pairs = prompt_tokens * prompt_tokens / held["prompts"] / 2.0
    by_group = {
        "experts": said["experts"],
        "dense products": said["gemm"],
        "attention": sum(number(seconds) for _, seconds, _ in terms.prefill_pair_s(shape, rates)) * pairs,
        "scan": number(scan_s(shape, rates, prompt_tokens)),
        "passes": said["element_wise"] + said["quantise"] + said["layer_overhead"],
    }
    table = Table("kernels", "measured, ms", "said, ms", title=f"{title}: one step of {held['tokens']:,} tokens")
    for group, seconds in by_group.items():
        table.add_row(group, f"{measured.get(group, 0.0):.1f}", f"{seconds * 1e3:.1f}")
    table.add_row("all", f"{sum(measured.values()):.1f}", f"{sum(by_group.values()) * 1e3:.1f}")
    Console(width=90).print(table)


def number(value: Any) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def main() -> None:
    catalog, file = read_catalog(), json.loads(FILE.read_text())
    show_idle(file["idle"])
    for title, server in file["servers"].items():
        show_speeds(file, title, server)
        if "results" in server:
            show_placed(file, title, server)
        if "kept_back" not in server:
            continue
        one = configuration(catalog, server)
        if "kernels" in server:
            show_kernels(title, one, server["kernels"])
        layers, captured = recurrent_layers(one.shape)[1], one.engine.max_captured_tokens
        if layers and captured:
            found = list(launched_alone_and_beside_ms(file, server, captured))
            more_us = [(beside - alone) / layers * US_PER_MS for _, alone, beside in found]
            for (load, alone, beside), us in zip(found, more_us, strict=True):
                print(
                    f"{load}: captured steps are launched in {alone:.1f} ms alone, {beside:.1f} beside replies, {us:.0f} us a layer longer"
                )
            print(f"median of the loads: {np.median(more_us):.0f} us")


if __name__ == "__main__":
    main()
