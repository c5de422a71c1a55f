"""What steps of copies of attention that share experts take, said and measured: ``python -m tests.bench.copies_in_step`` (seconds).

DeepSeek-V2-Lite on two H200 (seventeenth campaign): medians of steps by the tokens of prompts in them, beside what is said of the
fewest and the most of them, with the constants of the newest correction set; how uneven devices are by the popularity of experts,
which was fitted on one device, drawn and said; what kernels of a layer's experts took and what is said of the passes over their rows;
and what is said now of the loads of that campaign and of the eighteenth, which are in no fit. ``python -m tests.bench.exchanges`` has
the exchange.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import in_force
from solver.corrections.evidence import predicted
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.precision import Precision
from solver.step.constants import resolve_constants
from solver.step.shared_experts import fullest_by_rows
from solver.workload import EngineSettings
from tests.bench.routing_of_random_weights import measured_run
from tests.llm_shapes import shape
from tests.solver.samples import device

LLM, DEVICE = "deepseek-v2-lite", "h200-sxm"
STEPS = "steps/h200-sxm_vllm-0.24.0_w.json"
KERNELS = "devices/h200-sxm_vllm-0.24.0_routed-experts.json"
PASSES = ("activation", "adding up")
LOADS = {
    "one device": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp1_captured-4096_x.json",
    "TP 2": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp2_captured-4096_w.json",
    "two copies that share experts": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_dp2-ep2_captured-4096_w.json",
}
FIGURES = {"time_to_first_token": "TTFT", "time_per_output_token": "TPOT"}
ENGINE = EngineSettings(
    "vllm", version="0.24.0", max_batched_tokens=8192, max_sequences=512, max_captured_tokens=4096, random_weights=True
)
SERVERS = {
    "DeepSeek-V2-Lite, TP 2": Layout(tensor_parallel=2),
    "DeepSeek-V2-Lite, two copies of attention that share experts": Layout(data_parallel=2, expert_parallel=2),
}
PROMPTS = ((1, 512), (513, 1024), (1025, 2048), (2049, 4096), (4097, 8192))
BESIDE = "; the other copy: "
FREE = "no prompts"
MS, US = 1e3, 1e6


def read(file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEFAULT_ROOT / file).read_text())
    return found


def served(layout: Layout) -> Configuration:
    own, catalog = device(DEVICE), read_catalog()
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    constants = resolve_constants(priors, device=DEVICE, family=own.family, engine="vllm", llm=LLM, random_weights=True)
    return Configuration(
        shape=shape(LLM), device=own, constants=constants, layout=layout, precision=Precision("bf16", "bf16"), engine=ENGINE,
        link_domain_devices=own.link_domain_devices, network_bytes_per_s=0.0, kv_cache_tokens=3e6,
    )  # fmt: skip


def show_steps(title: str, here: Configuration, measured: Mapping[str, Any]) -> None:
    tables, shared = here.tables(), here.lockstep_copies > 0
    free = measured[FREE + BESIDE + FREE if shared else FREE]["median_ms"]
    alone = tables.decode_s[1] + tables.head_s[1] + tables.sequence_s
    print(f"{title}: a step of replies {free} ms at the median; of one reply {alone * MS:.2f} said")
    if shared:
        one = measured[f"{FREE}{BESIDE}no requests"]["median_ms"]
        layers = sum(group.layers for group in here.shape.feed_forward if group.experts)
        lacking = one - alone * MS
        print(
            f"  beside an idle copy {one} ms: {lacking:.2f} more, {lacking * MS / layers:.0f} us a layer with experts"
        )
    table = Table("tokens of prompts", "said, ms", "measured, ms", "of the other copy, ms")
    for low, high in PROMPTS:
        name = f"{low} to {high} tokens of prompts"
        own = measured[name + BESIDE + FREE if shared else name]["median_ms"]
        waits = measured[FREE + BESIDE + name]["median_ms"] if shared else ""
        said = " to ".join(f"{tables.mixed_s[tokens] * MS:.1f}" for tokens in (low, high))
        table.add_row(f"{low} to {high}", said, str(own), str(waits))
    Console(width=110).print(table)


def show_passes(here: Configuration) -> None:
    """Kernels that pass over rows of experts: the same whether a device has all experts or some."""
    group = next(group for group in here.shape.feed_forward if group.experts)
    per_row = group.top_k * (2.0 * group.matrices * group.expert_intermediate + 4.0 * here.shape.hidden)
    table = Table("rows", "experts", "passes, us", "of all on one device", "said, us")
    cases = read(KERNELS)["kernels_us"]
    alone = {
        case["rows"]: sum(case[name] for name in PASSES) for case in cases if case["experts"] == "all on one device"
    }
    for case in cases:
        took = sum(case[name] for name in PASSES)
        said = case["rows"] * per_row / here.rates().stream_bytes_per_s
        table.add_row(
            f"{case['rows']:,}", case["experts"], f"{took:.1f}", f"{took / alone[case['rows']]:.2f}", f"{said * US:.1f}"
        )  # fmt: skip
    Console(width=110).print(table)


def show_loads() -> None:
    catalog, constants = read_catalog(), served(Layout()).constants
    for title, file in LOADS.items():
        table = Table(
            "load",
            *(f"{name} ms: {what}" for name in FIGURES.values() for what in ("measured", "said", "off %")),
            title=title,
        )
        off: dict[str, list[float]] = {figure: [] for figure in FIGURES}
        for name, run in read(file)["runs"].items():
            one = measured_run(catalog, name, run)
            said, cells = predicted(one, constants), [name]
            for figure in FIGURES:
                measured = one.measured[figure]
                off[figure].append(100.0 * (said[figure] / measured - 1.0))
                cells += [f"{measured * MS:.4g}", f"{said[figure] * MS:.4g}", f"{off[figure][-1]:+.1f}"]
            table.add_row(*cells)
        Console(width=110).print(table)
        print(
            ", ".join(
                f"{FIGURES[figure]} {np.mean(np.abs(values)):.1f} % off in the mean" for figure, values in off.items()
            )
        )


def fullest_over_mean(here: Configuration, devices: int, draws: int = 400, tokens: int = 400) -> float:
    """Of devices with whole experts, where their popularity is drawn from the gamma law that distinct experts are counted with."""
    rng = np.random.default_rng(0)
    group = next(group for group in here.shape.feed_forward if group.experts)
    found = []
    for _ in range(draws):
        popularity = np.log(rng.gamma(float(here.rates().expert_evenness), size=group.experts) + 1e-300)
        chosen = np.argpartition(-(popularity + rng.gumbel(size=(tokens, group.experts))), group.top_k, axis=1)[
            :, : group.top_k
        ]
        rows = np.bincount((chosen // (group.experts // devices)).ravel(), minlength=devices)
        found.append(devices * rows.max() / rows.sum())
    return float(np.mean(found))


def main() -> None:
    measured = read(STEPS)["servers"]
    for title, layout in SERVERS.items():
        show_steps(title, served(layout), measured[title]["steps"])
    shared = served(Layout(data_parallel=2, expert_parallel=2))
    show_passes(shared)
    group = next(group for group in shared.shape.feed_forward if group.experts)
    for devices in (2, 4, 8):
        said = fullest_by_rows(group.experts, group.top_k, shared.rates().expert_evenness, float(devices))
        drawn = fullest_over_mean(shared, devices)
        print(
            f"the fullest of {devices} devices: {drawn:.2f} times the mean as drawn, {float(np.asarray(said)):.2f} said"
        )
    show_loads()


if __name__ == "__main__":
    main()
