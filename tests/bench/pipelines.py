"""Pipelines of two stages, measured and said: ``python -m tests.bench.pipelines`` (half a minute).

Llama 3.1 8B, whose stages work at once, told how much longer prompts take beside another batch, and what such a batch adds to a step: what
is in force was told before set 12 was whole, and what is told with all else as the newest set has it is printed beside. Llama 3.1 70B and
Qwen3 30B-A3B, whose stages wait, were measured later (docs/decisions/0111-stages-that-wait.md). All by constants alone.
"""

import json
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT, read_benchmark_files
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors, constants_of, measurements
from service.corrections.snapshot import in_force
from solver.corrections.evidence import Measurement, predicted
from solver.corrections.fit import fit_constants
from solver.step.constants import Constants, resolve_constants
from tests.bench.routing_of_random_weights import measured_run

DEVICE, ENGINE, ROUNDS = "h200-sxm", "vllm", 5
TOLD = ("pipeline_step_overhead_us", "pipeline_slowed_fraction")
BEGUN_AT = {"pipeline_step_overhead_us": 400.0, "pipeline_slowed_fraction": 0.1}
LATER = (
    "h200-sxm_vllm-0.24.0_llama-3.1-70b_fp8_pp2_zc.json",
    "h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_pp2_even_zc.json",
)
FIGURES = {"time_per_output_token": "a token", "time_to_first_token": "to the first"}


def measured(catalog: Catalog) -> tuple[list[Measurement], list[Measurement]]:
    """Those that told, and those measured later."""
    runs = measurements(catalog, read_benchmark_files(), catalog_priors(catalog))
    told = [one for one in runs if one.configuration.layout.pipeline_parallel > 1]
    files = [json.loads((DEFAULT_ROOT / "kept_back" / name).read_text(encoding="utf-8")) for name in LATER]
    return told, [measured_run(catalog, name, run) for found in files for name, run in found["runs"].items()]


def told_by(catalog: Catalog, runs: Sequence[Measurement]) -> dict[str, float]:
    """The two constants, all others as the newest correction set has them."""
    base = constants_of(catalog, catalog_priors(catalog), DEVICE, ENGINE)
    (row,) = (one for one in catalog.corrections[-1].corrections if (one.device, one.engine) == (DEVICE, ENGINE))
    known = {name: one.value for name, one in row.constants.items() if one.taken and name in base.priors}
    base = base.replaced({name: value for name, value in known.items() if name not in TOLD}, "corrected")
    return {name: one.value for name, one in fit_constants(runs, base, TOLD, ROUNDS, BEGUN_AT).fitted.items()}


def constants_for(catalog: Catalog, one: Measurement) -> Constants:
    here = one.configuration
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    return resolve_constants(
        priors, device=here.device.id, family=here.device.family, engine=here.engine.name, llm=here.shape.id
    )


def show(catalog: Catalog, title: str, runs: Sequence[Measurement]) -> None:
    table = Table("load", *(f"{name}: {what}" for name in FIGURES.values() for what in ("ms", "said, %")), title=title)
    off: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for one in runs:
        said, cells = predicted(one, constants_for(catalog, one)), [one.id]
        for figure, values in off.items():
            values.append(100.0 * (said[figure] / one.measured[figure] - 1.0))
            cells += [f"{1e3 * one.measured[figure]:.1f}", f"{values[-1]:+.1f}"]
        table.add_row(*cells)
    Console(width=120).print(table)
    means = (f"{np.mean(np.abs(values)):.1f} % {FIGURES[figure]}" for figure, values in off.items())
    print(f"off in the mean of {len(runs)}: {', '.join(means)}")


def main() -> None:
    catalog = read_catalog()
    told, later = measured(catalog)
    found = told_by(catalog, told)
    print("told by pipelines whose stages work at once: ", ", ".join(f"{name} {found[name]:.4g}" for name in TOLD))
    in_force = constants_for(catalog, told[0]).priors
    print("in force: ", ", ".join(f"{name} {in_force[name].value:.4g}" for name in TOLD))
    show(catalog, "told by", told)
    for llm in dict.fromkeys(one.configuration.shape.id for one in later):
        show(catalog, f"later: {llm}", [one for one in later if one.configuration.shape.id == llm])


if __name__ == "__main__":
    main()
