"""What steps of copies of attention that share experts take, said and measured: ``python -m tests.bench.copies_in_step`` (seconds).

DeepSeek-V2-Lite on two H200 (seventeenth campaign): medians of steps by the tokens of prompts in them, beside what is said of the
fewest and the most of them, with the constants of the newest correction set; what the exchange with the experts is said to take, and
NCCL took; and how uneven the popularity of experts, which was fitted on one device, would leave two.
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
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.precision import Precision
from solver.step import terms
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.samples import device

LLM, DEVICE = "deepseek-v2-lite", "h200-sxm"
STEPS = "steps/h200-sxm_vllm-0.24.0_w.json"
EXCHANGES = "devices/h200-sxm_exchanges_w.json"
ENGINE = EngineSettings("vllm", version="0.24.0", max_batched_tokens=8192, max_sequences=512, max_captured_tokens=4096)
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
    constants = resolve_constants(priors, device=DEVICE, family=own.family, engine="vllm", llm=LLM)
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


def show_exchange(here: Configuration) -> None:
    """Of one layer: to the experts and back, which are said to take as long."""
    rates = here.rates()
    layers = sum(group.layers for group in here.shape.feed_forward if group.experts)
    found = {(row["collective"], row["tokens"]): row for row in read(EXCHANGES)["collectives"]}
    table = Table("tokens a copy", "each way said, us", "gathered, us", "reduced, us", "launched one by one, us")
    for tokens in (1, 32, 128, 1024, 4096, 8192):
        each = float(np.asarray(terms.all_to_all_s(here.shape, rates, float(tokens)))) / (2.0 * layers)
        there = found["all_gather of tokens, weights and experts, 16 bits", tokens]
        back = found["reduce_scatter", tokens]
        one_by_one = f"{there['one_by_one_us']:.0f}, {back['one_by_one_us']:.0f}"
        table.add_row(
            f"{tokens:,}", f"{each * US:.1f}", f"{there['in_graph_us']:.1f}", f"{back['in_graph_us']:.1f}", one_by_one
        )
    Console(width=110).print(table)


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
    show_exchange(shared)
    print(
        f"the fuller of two devices: {fullest_over_mean(shared, 2):.2f} times the mean by the popularity of experts, 1 said"
    )


if __name__ == "__main__":
    main()
