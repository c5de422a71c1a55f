"""What holds a server of short prompts and many replies back, its front end or its launching: ``python -m tests.bench.front_ends``.

Eleven loads of 28 November 2026, in no fit, beside what is predicted of them: with the constants in force, as answered by one process; as
answered by as many processes as there were; and then with what launching a layer of experts took on that server, by its steps of 513 to
1,024 tokens, which no captured graph covers. Steps were noted inside the engine (``catalog/benchmarks/steps``), first tokens and rates
by the clients: the last column is told by the first and tested by the others.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT, BenchmarkFile
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors, measurement
from service.corrections.snapshot import in_force
from solver.corrections.evidence import Measurement, predicted
from solver.corrections.fit import DRAWS
from solver.errors import SolverError
from solver.step.constants import owned
from tests.bench.host_constants import as_file_of

STEPS = DEFAULT_ROOT / "steps" / "h100-sxm_vllm-0.24.0_t.json"
SERVERS = {
    "qwen3-30b-a3b, one API server": ("h100-q30ba3b-fp8-tp1", "qwen3-30b-a3b_fp8_tp1_t", 1),
    "qwen3-30b-a3b, four API servers": ("h100-q30ba3b-fp8-tp1", "qwen3-30b-a3b_fp8_tp1_four-servers_t", 4),
    "llama-3.1-8b, one API server": ("h100-l8b-bf16-tp1", "llama-3.1-8b_bf16_tp1_t", 1),
}
"""By server: the configuration that fits know it as, its file of runs, and how many processes answered."""
DEVICE, ENGINE = "h100-sxm", "vllm"
VISIT = 15
"""To a host that no fit knows."""
LIKE_CAMPAIGN = "2026-11-24-g"
LAUNCHED = "with prompts, 513 to 1,024 tokens"
LAUNCHING = "eager_expert_layer_us"
ROUTING = "expert_evenness_8bit"
MS_PER_S, US_PER_MS = 1e3, 1e3


def runs_of(catalog: Catalog, like: BenchmarkFile, file: str) -> Iterator[tuple[str, Measurement]]:
    """Each run of a file, of a configuration that other runs are of, under the newest correction set, with how unevenly random weights
    of that model route."""
    constants = in_force(catalog.corrections[-1], catalog_priors(catalog))
    own = owned(ROUTING, str(like.runs[0].benchmark["context"]["llm"]))
    fits = next(one for one in catalog.corrections[-1].corrections if (one.device, one.engine) == (DEVICE, ENGINE))
    routing = {ROUTING: fits.constants[own].value} if own in fits.constants else {}
    read: dict[str, Any] = json.loads((DEFAULT_ROOT / "kept_back" / f"h100-sxm_vllm-0.24.0_{file}.json").read_text())
    for name, run in read["runs"].items():
        one = as_file_of(like, name, run["max_batched_tokens"], run["max_context_tokens"], VISIT, run["benchmark"])
        run_at = measurement(catalog, constants, one, one.runs[0])
        uneven = run_at.configuration.constants.replaced(routing, "measured")
        yield name, replace(run_at, configuration=run_at.configuration.with_constants(uneven))


def said(run: Measurement, processes: int, launching_us: float | None) -> str:
    """First token, time a token, tokens/s."""
    constants = run.configuration.constants
    if launching_us is not None:
        constants = constants.replaced({LAUNCHING: launching_us}, "measured")
    engine = replace(run.configuration.engine, api_servers=processes)
    try:
        return shown(predicted(replace(run, configuration=replace(run.configuration, engine=engine)), constants, DRAWS))
    except SolverError as error:
        return str(error)


def shown(figures: Any) -> str:
    first, each = figures["time_to_first_token"], figures["time_per_output_token"]
    return f"{first * MS_PER_S:,.0f} ms, {each * MS_PER_S:.1f} ms, {figures['output_rate']:,.0f}/s"


def main() -> None:
    catalog = read_catalog()
    like = {file.group: file for file in catalog.benchmarks if file.campaign == LIKE_CAMPAIGN}
    noted = json.loads(STEPS.read_text())["servers"]
    console = Console(width=150)
    for server, (group, file, processes) in SERVERS.items():
        steps = noted[server]["steps"]
        table = Table("load", "measured", "said of one process", "of as many as there were", "and launching as noted")
        launching_us = None
        for name, run in runs_of(catalog, like[group], file):
            if run.model_class == "moe":
                layers = run.configuration.shape.layers
                launching_us = steps[LAUNCHED]["median_ms"] * US_PER_MS / layers
            table.add_row(
                name, shown(run.measured), said(run, 1, None), said(run, processes, None),
                "" if launching_us is None else said(run, processes, launching_us),
            )  # fmt: skip
        console.print(f"{server}: first token, time a token, tokens/s")
        console.print(table)
        for what, step in steps.items():
            console.print(f"{what}: {step['steps']:,} steps, {step['median_ms']} ms at the median")
        if launching_us is not None:
            console.print(f"launching a layer of experts, by its steps: {launching_us:,.0f} us")
        for process, loads in noted[server]["front_end"].items():
            for name, one in loads.items():
                console.print(
                    f"{process}, {name}: {one['tokens'] / one['messages']:.0f} tokens a step, {one['processor_us_per_token']} us of its "
                    f"processor a token, {one['merged_fraction']:.1%} sent with the token before"
                )


if __name__ == "__main__":
    main()
