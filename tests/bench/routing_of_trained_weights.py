"""How evenly trained weights route, by published runs of them: ``python -m tests.bench.routing_of_trained_weights``.

Published runs of mixtures of experts (``catalog/serving``) are of trained weights. Each is predicted with routers of several
evennesses; where few experts are read a step is said shorter than it was measured, the more so the larger the batch. Constants of
engines on Blackwell, and some on Hopper, were told by such runs with routing taken to be near even, so that runs here cannot
tell 20 from 200; what they can is whether trained weights route as unevenly as random ones do.

Before them one server of Qwen3 30B-A3B whose experts were drawn (``tests.bench.routing_on_a_device``), as evenly as stated, and what
is said of it at that evenness.
"""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from catalog.read_serving import is_current, read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import bare_snapshot, predicted_by
from service.corrections.snapshot import ROUTING
from service.recommendations.from_rows import llm_from_row
from solver.corrections.evidence import predicted
from solver.step.blocks import distinct_experts
from tests.bench.routing_of_random_weights import measured_run

EVENNESSES = (0.05, 0.2, 0.5, 1.0, 3.0, 20.0, 200.0)
DRAWN = DEFAULT_ROOT / "kept_back" / "h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_drawn_z.json"
EVEN = 1e6
DRAWS = 4
MS = 1e3
MANY_CLIENTS = 16
"""For each copy of attention: with fewer, routing hardly tells."""


def of_mixtures(catalog: Catalog) -> list[PublicRunRow]:
    """Runs of today's releases whose batches are large enough for routing to tell."""
    return [
        run
        for run in read_public_runs()
        if llm_from_row(catalog.llms[run.llm].model_dump(mode="json")).is_moe
        and run.tpot_ms is not None
        and (run.concurrency or 0) >= MANY_CLIENTS * run.data_parallel
        and is_current(run.engine, run.engine_version, run.measured_on)
    ]


def at(catalog: Catalog, runs: Sequence[PublicRunRow], evenness: float) -> list[float | None]:
    """Measured over predicted time per token of each run."""
    plain = bare_snapshot(catalog)
    routed = replace(plain, priors=tuple(replace(p, value=evenness) if p.name in ROUTING else p for p in plain.priors))
    told = predicted_by(routed, catalog, runs)
    return [
        None if one is None or run.tpot_ms is None else run.tpot_ms / one.tpot_ms.mean.expected
        for run, one in zip(runs, told, strict=True)
    ]


def show_drawn(catalog: Catalog) -> None:
    """One server, its experts drawn by popularity of several evennesses, and what is said of it at each."""
    drawn = json.loads(DRAWN.read_text())["runs"]
    table = Table(
        "load",
        "evenness",
        "experts said to be read of 128",
        "TPOT ms, measured",
        "said",
        "off, %",
        "TTFT ms, measured",
        "said",
    )
    for name, run in sorted(drawn.items(), key=lambda one: (clients_of(one[1]), -(one[1]["evenness"] or math.inf))):
        one = measured_run(catalog, name, run)
        evenness = run["evenness"] or EVEN
        told = predicted(one, one.configuration.constants.replaced(dict.fromkeys(ROUTING, evenness), "measured"), DRAWS)
        of_tokens, first = ("time_per_output_token", "time_to_first_token")
        group = next(group for group in one.configuration.shape.feed_forward if group.experts)
        read = float(distinct_experts(group.experts, group.top_k, float(clients_of(run)), evenness))
        table.add_row(
            f"{clients_of(run)} clients", "even" if run["evenness"] is None else f"{evenness:g}", f"{read:.0f}",
            *(f"{one.measured[of_tokens] * MS:.2f}", f"{told[of_tokens] * MS:.2f}"),
            f"{100.0 * (told[of_tokens] / one.measured[of_tokens] - 1.0):+.1f}",
            *(f"{one.measured[first] * MS:.0f}", f"{told[first] * MS:.0f}"),
        )  # fmt: skip
    Console(width=130).print(table)


def clients_of(run: dict[str, Any]) -> int:
    return int(run["benchmark"]["load"]["concurrency"])


def main() -> None:
    catalog = read_catalog()
    show_drawn(catalog)
    runs = of_mixtures(catalog)
    ratios = {evenness: at(catalog, runs, evenness) for evenness in EVENNESSES}
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, run in enumerate(runs):
        groups[run.llm, f"{run.device} {run.engine}"].append(number)
        groups["all", ""].append(number)
    title = "measured over said time per token, median (mean off, %)"
    table = Table("model", "on", "runs", *(f"{evenness:g}" for evenness in EVENNESSES), title=title)
    for (llm, on), members in sorted(groups.items()):
        cells = []
        for evenness in EVENNESSES:
            known = [ratio for n in members if (ratio := ratios[evenness][n]) is not None]
            off = 100.0 * statistics.fmean(abs(1.0 / ratio - 1.0) for ratio in known) if known else float("nan")
            cells.append(f"{statistics.median(known):.2f} ({off:.0f})" if known else "–")
        table.add_row(llm, on, str(len(members)), *cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
