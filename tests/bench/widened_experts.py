"""How 4-bit experts are widened on an H200, by five loads of gpt-oss 120B: ``python -m tests.bench.widened_experts``.

Hopper has no matrix unit for 4 bits: a kernel widens experts as it reads them, which takes its multiprocessors and not the memory. Two
constants hold that, of reading and of products. Both are told by loads of one server whose experts were drawn evenly; each load is
then predicted with what the others tell. One of the five was stalled by a kernel compiled in it: its first tokens are left aside.
Last, loads of the sibling with 32 experts, gpt-oss 20B, by what those of the 120B tell; two that were stalled throughout are left out.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from catalog.benchmark_rows import DEFAULT_ROOT, read_benchmark_files
from catalog.read import read_catalog
from service.corrections.measurements import USABLE, catalog_priors, measurement
from service.corrections.snapshot import in_force
from solver.corrections.evidence import WEIGHTS, Measurement, predicted
from tests.bench.launching import constants_of
from tests.bench.routing_of_random_weights import measured_run

FILE = DEFAULT_ROOT / "kept_back" / "h200-sxm_vllm-0.24.0_gpt-oss-120b_mxfp4_tp1_even_z.json"
SIBLING = "h200-sxm_vllm-0.24.0_gpt-oss-20b_mxfp4_tp1_even"
NAMES = ("widened_expert_read_share", "widened_expert_share")
UNTOLD = (1.0, 1.0)
FIGURES = {"time_per_output_token": "TPOT", "time_to_first_token": "TTFT"}
DRAWS = 2
MS = 1e3
Known = tuple[str, Measurement, tuple[str, ...]]
"""Of a load its name, the run, and which of its figures count."""


def loads() -> list[Known]:
    catalog, found = read_catalog(), []
    for name, run in json.loads(FILE.read_text())["runs"].items():
        one: Any = measured_run(catalog, name, run)
        one = replace(one, configuration=one.configuration.with_constants(constants_of(catalog, one)))
        found.append((name, one, tuple(FIGURES) if not run["stalled_s"] else ("time_per_output_token",)))
    return found


def of_the_sibling() -> list[tuple[str, Measurement]]:
    catalog = read_catalog()
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    (file,) = (one for one in read_benchmark_files() if one.id == SIBLING)
    runs = [(run.id, measurement(catalog, priors, file, run)) for run in file.runs if run.quality == USABLE]
    return [
        (name, replace(one, configuration=one.configuration.with_constants(constants_of(catalog, one))))
        for name, one in runs
    ]


def said(one: Measurement, values: Sequence[float]) -> dict[str, float]:
    shares = dict(zip(NAMES, values, strict=True))
    return predicted(one, one.configuration.constants.replaced(shares, "measured"), DRAWS)


def told(known: Sequence[Known]) -> tuple[float, ...]:
    """What loads tell of both, by the squares of errors as fits weigh them."""

    def misses(logs: NDArray[np.float64]) -> list[float]:
        found = []
        for _, one, figures in known:
            now = said(one, [float(value) for value in np.exp(logs)])
            found += [np.log(now[figure] / one.measured[figure]) / WEIGHTS[figure] for figure in figures]
        return found

    bounds = (np.log([0.1, 0.1]), np.log([1.2, 1.2]))
    found = least_squares(misses, np.log([0.7, 0.7]), bounds=bounds, diff_step=0.02).x
    return tuple(float(value) for value in np.exp(found))


def main() -> None:
    known = loads()
    everything = told(known)
    print("told by all: " + ", ".join(f"{name} {value:.3f}" for name, value in zip(NAMES, everything, strict=True)))
    columns = (
        f"{figure}: {what}"
        for figure in FIGURES.values()
        for what in ("measured, ms", "untold, %", "all, %", "others, %")
    )
    table = Table("load", *columns, "told by the others")
    for number, (name, one, figures) in enumerate(known):
        others = told([load for n, load in enumerate(known) if n != number])
        ways, row = [said(one, values) for values in (UNTOLD, everything, others)], [name]
        for figure in FIGURES:
            row.append(f"{one.measured[figure] * MS:.4g}" + ("" if figure in figures else " (stalled)"))
            row += [f"{100.0 * (way[figure] / one.measured[figure] - 1.0):+.1f}" for way in ways]
        table.add_row(*row, ", ".join(f"{value:.2f}" for value in others))
    Console(width=150).print(table)
    sibling = Table(
        "gpt-oss 20B", *(f"{figure}: {what}" for figure in FIGURES.values() for what in ("untold, %", "by the 120B, %"))
    )
    misses = []
    for name, one in of_the_sibling():
        ways = [said(one, values) for values in (UNTOLD, everything)]
        off = [100.0 * (way[figure] / one.measured[figure] - 1.0) for figure in FIGURES for way in ways]
        misses.append(off)
        sibling.add_row(name, *(f"{value:+.1f}" for value in off))
    sibling.add_row("mean", *(f"{value:.1f}" for value in np.abs(misses).mean(axis=0)))
    Console(width=150).print(sibling)


if __name__ == "__main__":
    main()
