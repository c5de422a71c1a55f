"""How evenly trained weights route, by published runs of them: ``python -m tests.bench.routing_of_trained_weights``.

Published runs of mixtures of experts (``catalog/serving``) are of trained weights. Each is predicted with routers of several
evennesses; where few experts are read a step is said shorter than it was measured, the more so the larger the batch. Constants of
engines on Blackwell, and some on Hopper, were told by such runs with routing taken to be near even, so that runs here cannot
tell 20 from 200; what they can is whether trained weights route as unevenly as random ones do.

Beside them servers with random weights whose experts were drawn (``tests.bench.routing_on_a_device``), as evenly as stated, and what
is said of them at that evenness and at what random weights of that model route like.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from catalog.read_serving import is_current, read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import bare_snapshot, predicted_by
from service.corrections.snapshot import ROUTING
from service.recommendations.from_rows import llm_from_row

EVENNESSES = (0.05, 0.2, 0.5, 1.0, 3.0, 20.0, 200.0)
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


def main() -> None:
    catalog = read_catalog()
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
