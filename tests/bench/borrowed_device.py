"""What a device would be told if only its siblings had been measured: ``python -m tests.bench.borrowed_device`` (a minute).

Every clean run of a device that has a sibling in the newest correction set, predicted with the constants of that sibling alone, and
its interval as the service gives it: errors in per cent, and the share of runs inside.
"""

import statistics
import sys
from collections import defaultdict
from dataclasses import replace

from catalog.benchmark_rows import read_benchmark_files
from catalog.read import read_catalog
from service.cli.calibrate import METRIC_TITLES
from service.corrections.measurements import catalog_priors, measurements
from service.corrections.snapshot import correction_set, in_force
from solver.corrections.applied import configuration_correction
from solver.corrections.evidence import Measurement, predicted
from solver.step.constants import resolve_constants
from solver.step.rates import widens


def _kind(run: Measurement) -> str:
    """Weights below 8 bits apart: what widens them is lent at another rate."""
    weights = run.configuration.precision.weights
    return f"{run.model_class}, {weights}" if widens(run.configuration.device, weights) else run.model_class


def main() -> None:
    catalog = read_catalog()
    newest = catalog.corrections[-1]
    priors = catalog_priors(catalog)
    runs = measurements(catalog, read_benchmark_files(), priors)
    titles = ["device, models", "runs", *METRIC_TITLES.values()]
    lines = [titles, ["---"] * len(titles)]
    for correction in newest.corrections:
        others = [c for c in newest.corrections if c.device != correction.device]
        if not any((c.family, c.engine) == (correction.family, correction.engine) for c in others):
            continue
        blind = newest.model_copy(update={"corrections": others})
        found: dict[str, list[tuple[Measurement, dict[str, tuple[float, bool]]]]] = defaultdict(list)
        for run in runs:
            device = run.configuration.device
            if (device.id, run.configuration.engine.name) != (correction.device, correction.engine):
                continue
            llm = run.configuration.shape.id
            constants = resolve_constants(
                in_force(blind, priors),
                device=device.id,
                family=device.family,
                engine=correction.engine,
                llm=llm,
                random_weights=run.configuration.engine.random_weights,
            )
            configuration = run.configuration.with_constants(constants)
            told = predicted(replace(run, configuration=configuration), constants)
            spread = configuration_correction(correction_set(blind), configuration, run.load)
            assert spread is not None
            ratios = {m: run.measured[m] / told[m] for m in METRIC_TITLES if m in run.measured}
            within = {m: spread.spreads[m][0] <= r <= spread.spreads[m][1] for m, r in ratios.items()}
            found[_kind(run)].append((run, {m: (100.0 * (1.0 / r - 1.0), within[m]) for m, r in ratios.items()}))
        for kind, members in sorted(found.items()):
            cells = [f"{correction.device}, {kind}", str(len(members))]
            for metric in METRIC_TITLES:
                known = [figures[metric] for _, figures in members if metric in figures]
                mean = statistics.fmean(abs(error) for error, _ in known)
                inside = statistics.fmean(held for _, held in known)
                cells.append(f"{mean:.1f} {100 * inside:.0f} %")
            lines.append(cells)
    sys.stdout.write("\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n")


if __name__ == "__main__":
    main()
