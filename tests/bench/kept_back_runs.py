"""What the newest correction set says of runs that are in no fit, by its constants alone: ``python -m tests.bench.kept_back_runs``
(a minute). No factor of a configuration that was measured is in it. Experts of mixtures were drawn where the file's name says so;
else random weights chose them, of models whose routing with such weights no fit tells, unlike what is said.
"""

import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import in_force
from solver.corrections.evidence import predicted
from solver.step.constants import resolve_constants
from tests.bench.routing_of_random_weights import measured_run

FIGURES = {"time_per_output_token": "TPOT", "time_to_first_token": "TTFT"}
DRAWN = ("even", "drawn")
"""How names of files end whose experts were drawn, before the campaign's letters."""
NOT_TOLD = "no-async-scheduling"
"""In names of files of servers started with an option that no estimate is told of: what is said is of servers without it."""


def misses(catalog: Catalog, path: Path) -> dict[str, list[float]]:
    """Of each figure by how many per cent each run of a file is said too high."""
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    off: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for name, run in json.loads(path.read_text())["runs"].items():
        one = measured_run(catalog, name, run)
        here = one.configuration
        constants = resolve_constants(
            priors, device=here.device.id, family=here.device.family, engine=here.engine.name, llm=here.shape.id,
            random_weights=not path.stem.rpartition("_")[0].endswith(DRAWN),
        )  # fmt: skip
        said = predicted(one, constants)
        for figure, values in off.items():
            values.append(100.0 * (said[figure] / one.measured[figure] - 1.0))
    return off


def main() -> None:
    catalog = read_catalog()
    columns = (f"{name}: {what}" for name in FIGURES.values() for what in ("off, %", "said too high, %"))
    table = Table("runs", "loads", *columns, title=f"correction set {catalog.corrections[-1].number}")
    for path in sorted((DEFAULT_ROOT / "kept_back").glob("*.json")):
        off = misses(catalog, path)
        cells = [f"{value:+.1f}" if signed else f"{value:.1f}" for values in off.values()
                 for signed, value in ((False, np.mean(np.abs(values))), (True, np.mean(values)))]  # fmt: skip
        table.add_row(path.stem.replace("_vllm-0.24.0", ""), str(len(off["time_to_first_token"])), *cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
