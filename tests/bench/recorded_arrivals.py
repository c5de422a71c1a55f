"""Open loops replayed with the arrivals and lengths of their records: ``python -m tests.bench.recorded_arrivals``.

What is left of the error once the draw of the Poisson process is known. Constants and configurations are those of the
newest correction set, so the runs are in its fit: this separates the model from the draw, it does not judge the model.
"""

import statistics
from pathlib import Path

from catalog.benchmark_rows import DEFAULT_ROOT, BenchmarkFile, BenchmarkRow, read_benchmark_files, read_request_records
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import USABLE, catalog_priors, constants_of, measurement
from solver.corrections.evidence import predicted
from solver.engine.simulate import simulate
from solver.step.constants import Constants


def requests_of(file: BenchmarkFile) -> Path:
    return DEFAULT_ROOT / "requests" / f"{file.id}_{file.campaign[-1]}.json.gz"


def newest_constants(catalog: Catalog, device: str, engine: str) -> Constants:
    """The catalog's constants with what the newest correction set fitted in their place."""
    base = constants_of(catalog, catalog_priors(catalog), device, engine)
    (fitted,) = (c for c in catalog.corrections[-1].corrections if (c.device, c.engine) == (device, engine))
    return base.replaced({n: c.value for n, c in fitted.constants.items() if c.taken}, "corrected")


def ratios(catalog: Catalog, file: BenchmarkFile, run: BenchmarkRow) -> tuple[float, float] | None:
    """TPOT over the measured one, of the nominal rate and of the recorded arrivals; None for other loads."""
    one = measurement(catalog, catalog_priors(catalog), file, run)
    if one.load.kind != "open" or one.configuration.lanes != 1 or not requests_of(file).exists():
        return None
    constants = newest_constants(catalog, one.configuration.device.id, one.configuration.engine.name)
    found = one.configuration.with_constants(constants)
    records = read_request_records(requests_of(file))[run.id]
    rows = sorted(zip(records["sent_s"], records["prompt_tokens"], records["output_tokens"], strict=True))
    trace = simulate(
        found.tables(),
        found.schedule(),
        [int(row[1] or 0) for row in rows],
        [int(row[2] or 0) for row in rows],
        arrivals_s=[float(row[0] or 0.0) for row in rows],
    )
    measured = one.measured["time_per_output_token"]
    nominal = predicted(one, constants)["time_per_output_token"]
    return nominal / measured, statistics.fmean(trace.time_per_output_token_s) / measured


def main() -> None:
    catalog = read_catalog()
    for file in read_benchmark_files():
        for run in file.runs:
            if run.quality == USABLE and (found := ratios(catalog, file, run)) is not None:
                print(f"{run.id:45} TPOT over measured: nominal rate {found[0]:.2f}, recorded arrivals {found[1]:.2f}")


if __name__ == "__main__":
    main()
