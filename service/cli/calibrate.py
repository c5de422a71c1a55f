"""``clusterwright calibrate`` and ``accuracy``: from measured runs to a correction set, and what it is worth."""

import argparse
import datetime as dt
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import read_benchmark_files
from catalog.correction_rows import DEFAULT_ROOT, AccuracyRow, CorrectionSetRow, read_correction_sets
from catalog.read import read_catalog
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_rows, standard_output
from service.settings import Settings

if TYPE_CHECKING:
    from solver.corrections.miss_levels import LevelRange

EXPLAINED = "error in % on what the fit had not seen (by physics alone), share inside the 90 % interval"
METRIC_TITLES = {
    "time_per_output_token": "TPOT mean",
    "time_per_output_token.p99": "TPOT p99",
    "output_rate": "output tokens/s",
    "time_to_first_token": "TTFT mean",
    "time_to_first_token.p99": "TTFT p99",
    "end_to_end": "E2E mean",
    "power": "power",
}


def calibrate_command(arguments: argparse.Namespace, _settings: Settings) -> int:
    """Fit and print; with --write, keep the set as the next number. With --intervals the ranges that intervals rest on instead."""
    if arguments.intervals:
        return calibrate_intervals(write=arguments.write)
    from service.corrections.calibrate import calibrate

    known = read_correction_sets()
    number = known[-1].number + 1 if known else 1
    console = Console(stderr=True)
    with console.status("fitting the performance model to the measured runs (minutes)"):
        row = calibrate(
            read_catalog(), read_benchmark_files(), number, dt.datetime.now(dt.UTC).date(), arguments.rounds,
            known[-1] if known else None,
        )  # fmt: skip
    if arguments.write:
        path = DEFAULT_ROOT / f"{number:04d}.json"
        path.write_text(row.model_dump_json(indent=1) + "\n", encoding="utf-8")
        console.print(f"kept as {path}")
    print_accuracy(row, markdown=False)
    print_constants(row)
    return ExitCode.ok


def calibrate_intervals(*, write: bool) -> int:
    """Ranges of misses from published runs, each judged on groups left out; with --write, into the catalog's constants."""
    from catalog.read import DEFAULT_ROOT as CATALOG
    from service.corrections.intervals import as_toml, fitted_intervals

    console = Console(stderr=True)
    with console.status("predicting published runs (some twenty seconds)"):
        found = fitted_intervals(read_catalog())
    print_rows(
        INTERVALS_EXPLAINED, INTERVAL_TITLES, [interval_line(one.name, one.found) for one in found], standard_output()
    )
    if write:
        path = CATALOG / "constants" / "intervals.toml"
        path.write_text(as_toml(found, dt.datetime.now(dt.UTC).date()), encoding="utf-8")
        console.print(f"kept as {path}")
    return ExitCode.ok


INTERVALS_EXPLAINED = "measured over predicted beyond the ranges of constants, by what public runs say"
INTERVAL_TITLES = (
    "constant",
    "of",
    "groups",
    "runs",
    "inside without",
    "low",
    "high",
    "left out inside",
    "score",
    "score of the rest",
    "",
)


def interval_line(name: str, found: "LevelRange") -> list[str]:
    level = found.level
    of = (
        " ".join(filter(None, (level.device.strip("*"), "+".join(level.families), level.engine.strip("*"))))
        or "everything"
    )
    scores = ["", ""] if math.isnan(found.score) else [f"{found.score:.2f}", f"{found.wider:.2f}"]
    return [
        name, of, str(found.clusters), str(found.runs), f"{100 * found.inside:.0f} %", f"{found.range[0]:.2f}", f"{found.range[1]:.2f}",
        f"{100 * found.left_out_inside:.0f} %", *scores, "" if found.taken else "not taken",
    ]  # fmt: skip


def accuracy_command(arguments: argparse.Namespace, _settings: Settings) -> int:
    """The newest set that ships with the catalog."""
    known = read_correction_sets()
    if not known:
        raise CommandError("no correction set yet; run `clusterwright calibrate --write`", ExitCode.bad_input)
    print_accuracy(known[-1], markdown=arguments.markdown)
    if arguments.constants:
        print_constants(known[-1])
    return ExitCode.ok


def print_constants(row: CorrectionSetRow) -> None:
    console = standard_output()
    for correction in row.corrections:
        table = Table(title=f"constants of {correction.device} under {correction.engine}, set {row.number}")
        for title in ("constant", "before", "fitted", "standard error", ""):
            table.add_column(title, justify="right" if title != "constant" else "left")
        for name, constant in correction.constants.items():
            table.add_row(
                name, f"{constant.prior:g}", f"{constant.value:.4g}", f"{100 * constant.standard_error_fraction:.0f} %",
                "" if constant.taken else "not taken",
            )  # fmt: skip
        console.print(table)


def print_accuracy(row: CorrectionSetRow, *, markdown: bool) -> None:
    """Errors on configurations left out, beside what the physics alone gives, and coverage."""
    for correction in row.corrections:
        names = list(dict.fromkeys(a.group for a in correction.accuracy))
        lines = [_line(name, [a for a in correction.accuracy if a.group == name]) for name in names]
        titles = ["runs of", "n", *METRIC_TITLES.values()]
        if markdown:
            rows = [titles, ["---"] * len(titles), *lines]
            table = "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
            sys.stdout.write(f"### {correction.device} under {correction.engine}\n\n{table}\n\n")
            continue
        title = f"{correction.device} under {correction.engine}: {EXPLAINED}"
        console = standard_output()
        if not console.is_terminal:  # a pipe gets rows only, which say nothing without this
            sys.stderr.write(title + "\n")
        print_rows(title, titles, lines, console)


def _line(name: str, rows: Sequence[AccuracyRow]) -> list[str]:
    by_metric = {a.metric: a for a in rows}
    cells = [name, str(max(a.runs for a in rows))]
    for metric in METRIC_TITLES:
        found = by_metric.get(metric)
        if found is None:
            cells.append("")
            continue
        covered = "" if found.coverage_fraction is None else f" {100 * found.coverage_fraction:.0f} %"
        cells.append(f"{found.left_out_mape_percent:.1f} ({found.physics_mape_percent:.1f}){covered}")
    return cells
