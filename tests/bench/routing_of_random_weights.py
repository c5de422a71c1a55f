"""What routing of random weights explains of Gemma 4 26B-A4B's times: ``python -m tests.bench.routing_of_random_weights``.

Its prediction took routing to be as even as trained weights' is taken to be, and its servers had random ones. One load (eight
clients) says how uneven that routing is; the other five are then predicted with it, and are its test.
"""

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors, measurement
from service.corrections.snapshot import in_force
from solver.corrections.evidence import Measurement, predicted

FILE = DEFAULT_ROOT / "kept_back" / "h100-sxm_vllm-0.24.0_gemma-4-26b-a4b_bf16_tp1_r.json"
TOLD_BY = "g26-c8"
ROUTING = "expert_evenness_16bit"
RANGE = (0.02, 20.0)
S_PER_MS = 1e-3
OPTIONS = {
    "max_sequences": "--max-num-seqs", "max_context_tokens": "--max-model-len", "max_captured_tokens": "--max-cudagraph-capture-size",
    "memory_fraction": "--gpu-memory-utilization", "gdn_prefill_backend": "--gdn-prefill-backend",
}  # fmt: skip
"""Of what files of runs in no fit say of each."""
RANDOM_WEIGHTS = ("--load-format", "dummy")
"""What every server measured here was started with."""


def measured_run(catalog: Catalog, name: str, run: dict[str, Any]) -> Measurement:
    """A run of the file as fits take runs, under the newest correction set. Files of runs in no fit keep no command line."""
    body, like = run["benchmark"], catalog.benchmarks[0]
    sizes = [text for field, option in OPTIONS.items() if field in run for text in (option, str(run[field]))]
    context = {**body["context"], "engine": {**body["context"]["engine"], "arguments": [*RANDOM_WEIGHTS, *sizes]}}
    row = like.runs[0].model_copy(update={"id": name, "benchmark": {**body, "context": context}})
    reported = like.engine_reported.model_copy(update={"max_batched_tokens": run["max_batched_tokens"]})
    file = like.model_copy(update={"runs": (row,), "engine_reported": reported})
    return measurement(catalog, in_force(catalog.corrections[-1], catalog_priors(catalog)), file, row)


def at(run: Measurement, evenness: float) -> dict[str, float]:
    return predicted(run, run.configuration.constants.replaced({ROUTING: evenness}, "measured"))


def main() -> None:
    catalog = read_catalog()
    runs = {name: measured_run(catalog, name, run) for name, run in json.loads(FILE.read_text())["runs"].items()}
    one, metric = runs[TOLD_BY], "time_per_output_token"
    evenness = brentq(lambda s: at(one, s)[metric] - one.measured[metric], *RANGE, xtol=1e-3)
    table = Table("run", "TPOT ms: even", "uneven", "measured", "off %", "TTFT ms: even", "uneven", "measured", "off %")
    for name, run in runs.items():
        even, uneven = predicted(run, run.configuration.constants), at(run, evenness)
        row = [name]
        for figure in (metric, "time_to_first_token"):
            measured = run.measured[figure]
            row += [f"{value[figure] / S_PER_MS:.4g}" for value in (even, uneven)]
            row += [f"{measured / S_PER_MS:.4g}", f"{100.0 * (uneven[figure] / measured - 1.0):+.1f}"]
        table.add_row(*row)
    Console(width=130).print(table)
    print(f"{TOLD_BY} is as measured at {ROUTING} = {evenness:.3g}")


if __name__ == "__main__":
    main()
