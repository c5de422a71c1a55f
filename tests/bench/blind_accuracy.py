"""Left-out errors with priors that no serving run has touched: ``python -m tests.bench.blind_accuracy`` (minutes).

The catalog's Hopper and vLLM rows were fitted to some of the runs that accuracy is measured on; here they are taken out.
"""

import datetime as dt
from dataclasses import replace

from catalog.benchmark_rows import read_benchmark_files
from catalog.read import read_catalog
from service.cli.calibrate import print_accuracy
from service.corrections.calibrate import calibrate

FITTED_HERE = ("fitted on this project's serving runs", "correction set 1")


def main() -> None:
    catalog = read_catalog()
    untouched = tuple(c for c in catalog.constants if not any(words in c.provenance.source for words in FITTED_HERE))
    row = calibrate(
        replace(catalog, constants=untouched), read_benchmark_files(), number=1, made_on=dt.date(2026, 11, 21)
    )
    print_accuracy(row, markdown=True)


if __name__ == "__main__":
    main()
