"""``clusterwright training fit``: constants of training from published runs, and what they are worth."""

import argparse
import datetime as dt
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console

from catalog.read import read_catalog
from catalog.read_training import FITTED_FILE, TRAINING_FOLDER, read_training
from catalog.rows import ConstantRow
from service.cli.exit_codes import ExitCode
from service.settings import Settings
from service.training.evaluation import (
    Anchored,
    ErrorLine,
    LeftOut,
    anchored_pairs,
    anchored_spread,
    by_model,
    by_source,
    error_lines,
    left_out,
    measured_spread,
    values_of,
)
from service.training.fitting import Key, fitted_model, published_runs, shapes_of
from service.training.inputs import ANCHORED, SPREAD_HIGH, SPREAD_LOW, model_of, place

KINDS = ("dense", "mixture", "adapters")
NINETY_PERCENT_DEVIATIONS = 1.645


def training_fit_command(arguments: argparse.Namespace, _settings: Settings) -> int:
    """Fit, leave sources and models out, print; with --write keep the constants."""
    console = Console(stderr=True)
    with console.status("fitting the training model to published runs (minutes)"):
        catalog = read_training()
        assumed_catalog = catalog.assumed()
        model = model_of(assumed_catalog)
        assumed = values_of(model)
        shapes = shapes_of(read_catalog())
        fitted, values = fitted_model(model, shapes, catalog.runs, assumed)
        runs, refused = published_runs(fitted, shapes, catalog.runs)
        found = left_out(fitted, runs, assumed, by_source, "source") + left_out(
            fitted, runs, assumed, by_model, "model"
        )
        peaks = left_out(fitted, runs, assumed, by_source, "source", of_memory=True)
    pairs = anchored_pairs(runs)
    spreads = {kind: measured_spread(found, kind) for kind in KINDS} | {ANCHORED: anchored_spread(pairs)}
    if arguments.write:
        path = TRAINING_FOLDER / FITTED_FILE
        path.write_text(fitted_text(assumed_catalog.constants, values, spreads), encoding="utf-8")
        console.print(f"kept as {path}")
    print_errors(found, peaks, spreads)
    print_anchored(pairs)
    for name, why in refused:
        sys.stdout.write(f"refused: {name}: {why}\n")
    return ExitCode.ok


def print_errors(
    found: Sequence[LeftOut], peaks: Sequence[LeftOut], spreads: Mapping[str, tuple[float, float]]
) -> None:
    """Tables for docs/accuracy.md."""
    for label, title in (("source", "each source left out"), ("model", "each model of a stack left out")):
        own = [one for one in found if one.by == label]
        _table(f"tokens/s a device, {title}", error_lines(own, lambda one: one.run.kind, spreads))
        if label == "source":
            _table("the same by source", error_lines(own, lambda one: one.run.row.source, spreads))
    _table("peak memory, each source left out", error_lines(peaks, lambda one: one.run.row.source, {}))


def print_anchored(pairs: Sequence[Anchored]) -> None:
    """What one measured run on fewer devices leaves of the error."""
    sys.stdout.write("\none run measured on fewer devices\n\n| | pairs | median % | p90 % |\n|---|---|---|---|\n")
    for title, few, many in (("all", sys.maxsize, 0), ("from at most 512 to at least 2,048 devices", 512, 2048)):
        off = [abs(1.0 / p.ratio - 1.0) for p in pairs if p.anchor.row.devices <= few and p.run.row.devices >= many]
        if off:
            median, ninetieth = (100.0 * float(np.quantile(off, q)) for q in (0.5, 0.9))
            sys.stdout.write(f"| {title} | {len(off)} | {median:.1f} | {ninetieth:.1f} |\n")


def _table(title: str, lines: Sequence[ErrorLine]) -> None:
    write = sys.stdout.write
    write(
        f"\n{title}\n\n| runs of | n | median % | mean % | p90 % | bias % | constant MFU, median % | in the interval |\n"
    )
    write("|---|---|---|---|---|---|---|---|\n")
    for one in lines:
        naive = "" if one.constant_mfu_median is None else f"{one.constant_mfu_median:.1f}"
        covered = "" if one.covered is None else f"{100 * one.covered:.0f} %"
        errors = " | ".join(f"{value:.1f}" for value in (one.median, one.mean, one.ninetieth))
        write(f"| {one.group} | {one.runs} | {errors} | {one.bias:+.1f} | {naive} | {covered} |\n")


def fitted_text(
    assumed: Sequence[ConstantRow],
    values: Mapping[Key, tuple[float, float]],
    spreads: Mapping[str, tuple[float, float]],
) -> str:
    """The file of fitted constants, in the order of those they start from."""
    today = dt.datetime.now(dt.UTC).date()
    lines = [
        "# Written by `clusterwright training fit --write`: what the runs in runs.csv make of the constants in assumed.toml.",
        "",
        "[provenance]",
        'source = "fitted to the runs in runs.csv, whose sources are in sources.toml"',
        f"retrieved_on = {today}",
        'checked = "derived"',
    ]
    for row in assumed:
        spread = _spread(row.name, spreads)
        if spread is not None:
            lines += _entry(row, spread, spread * 0.9, spread * 1.1)
            continue
        value, deviation = values.get((row.name, place(row), row.engine), (None, 0.0))
        if value is not None:
            reach = 2.718281828 ** (NINETY_PERCENT_DEVIATIONS * deviation)
            lines += _entry(row, value, value / reach, value * reach)
    return "\n".join(lines) + "\n"


def _spread(name: str, spreads: Mapping[str, tuple[float, float]]) -> float | None:
    for kind, (low, high) in spreads.items():
        if name == f"{SPREAD_LOW}_{kind}":
            return min(low, 1.0)
        if name == f"{SPREAD_HIGH}_{kind}":
            return max(high, 1.0)
    return None


def _entry(row: ConstantRow, value: float, low: float, high: float) -> list[str]:
    known = (("family", row.family), ("device", row.device), ("engine", row.engine))
    about = [f'{key} = "{text}"' for key, text in known if text != "*"]
    return [
        "", "[[constant]]", f'name = "{row.name}"', *about, f"value = {value:.5g}", f"low = {low:.5g}",
        f"high = {high:.5g}", f'unit = "{row.unit}"', 'basis = "corrected"',
    ]  # fmt: skip
