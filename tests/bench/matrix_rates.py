"""Matrix rates of devices nobody here measured, from products that others timed, and whether published runs bear them out.

    python -m tests.bench.matrix_rates [--write]

An engine's ``gemm_efficiency_16bit`` is the median of a device's figures in ``catalog/published/matrix_rates.toml`` over its dense
datasheet rate, times the share of bare products that an engine reaches (``probe_share_gemm_16bit``, from a device where both were
measured), as for a probe of one's own (``solver.step.probes``). A device that has published serving runs (``catalog/serving``) keeps its
row only where these are predicted no worse with it: the mean errors of times per token, of output rates and of first tokens, each
source once, with releases as stated and without, may together not rise by more than ``SLACK`` of a point, nor the first two each, nor
any one source's by more than ``ONE_SOURCE`` points. The rows are not fitted to those runs: the runs only strike out. ``--write`` makes
``catalog/constants/matrix_rates.toml``.
"""

import argparse
import datetime as dt
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from catalog.published_rates import MatrixRateRow, read_matrix_rates
from catalog.read import Catalog, read_catalog
from catalog.read_serving import read_public_runs
from catalog.rows import ConstantRow, Provenance
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import predicted_runs
from service.wire.estimates import EstimatedOut

PATH = Path(__file__).parents[2] / "catalog" / "constants" / "matrix_rates.toml"
NAME, SHARE = "gemm_efficiency_16bit", "probe_share_gemm_16bit"
SLACK, ONE_SOURCE = 0.5, 10.0
MOST_PERCENT = 300.0
METRICS = ("time per token", "output rate", "first token")
Errors = dict[tuple[int, str], float]
"""Mean error in per cent by place of the metric and source, with releases as stated and without."""


def rises(before: Errors, after: Errors) -> list[float]:
    """Of each metric's error, each source once; 0 where no run states it.

    >>> rises({(0, "a"): 10.0, (0, "b"): 30.0, (2, "a"): 5.0}, {(0, "a"): 14.0, (0, "b"): 28.0, (2, "a"): 5.0})
    [1.0, 0.0, 0.0]
    """
    return [mean(after, place) - mean(before, place) for place in range(len(METRICS))]


def mean(found: Errors, place: int) -> float:
    own = [error for (metric, _), error in found.items() if metric == place]
    return statistics.fmean(own) if own else 0.0


class Judged(NamedTuple):
    """A row with the errors of its device's runs without and with it; empty of a device that has none."""

    row: ConstantRow
    before: Errors
    after: Errors

    @property
    def kept(self) -> bool:
        if not self.before:
            return True
        found = rises(self.before, self.after)
        worst = max(self.after[key] - error for key, error in self.before.items())
        return sum(found) <= SLACK and max(found[:2]) <= SLACK and worst <= ONE_SOURCE


def constant(catalog: Catalog, rate: MatrixRateRow, text: str, day: dt.date) -> ConstantRow:
    """The row of one device: share of the datasheet by bare products, times the share of those that an engine reaches."""
    device = catalog.devices[rate.device]
    peak = device.dense_bf16_tflop_per_s or device.dense_fp16_tflop_per_s
    if peak is None:
        raise ValueError(f"{rate.device} has no dense 16-bit rate")
    reached = next(row for row in catalog.constants if row.name == SHARE)
    bare = statistics.median(rate.tflop_per_s) / peak
    value, low, high = (min(round(bare * one, 3), 1.0) for one in (reached.value, reached.low, reached.high))
    return ConstantRow(
        name=NAME, device=rate.device, value=value, low=low, high=high, unit="fraction", basis="analytical",
        provenance=Provenance(
            source=text, retrieved_on=day, checked="derived",
            notes=f"median {statistics.median(rate.tflop_per_s):g} of {peak:g} TFLOP/s, times {SHARE} {reached.value:g}",
        ),
    )  # fmt: skip


def off_percent(run: PublicRunRow, told: EstimatedOut) -> Iterator[tuple[int, float]]:
    """Place of the metric, and how far its prediction lies from what the run states."""
    pairs = (
        (run.tpot_ms, told.tpot_ms.mean.expected),
        (run.output_tokens_per_s, told.output_tokens_per_s.expected),
        (run.ttft_ms, told.ttft_ms.mean.expected),
    )
    for place, (measured, predicted) in enumerate(pairs):
        if measured is not None:
            yield place, min(100.0 * abs(predicted / measured - 1.0), MOST_PERCENT)


def errors(catalog: Catalog, runs: Sequence[PublicRunRow]) -> dict[str, Errors]:
    """By device."""
    cells: dict[str, dict[tuple[int, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for stated in (True, False):
        for run, told in zip(runs, predicted_runs(catalog, runs, stated=stated), strict=True):
            for place, off in () if told is None else off_percent(run, told):
                cells[run.device][place, run.source].append(off)
    return {device: {key: statistics.fmean(own) for key, own in found.items()} for device, found in cells.items()}


def judged(catalog: Catalog) -> list[Judged]:
    stated = read_matrix_rates()
    bare = replace(
        catalog, constants=tuple(row for row in catalog.constants if not (row.name == NAME and row.device != "*"))
    )
    rows = [
        constant(catalog, rate, stated.sources[rate.source].text, stated.sources[rate.source].retrieved_on)
        for rate in stated.rate
    ]
    devices = {row.device for row in rows}
    runs = [run for run in read_public_runs() if run.device in devices]
    before, after = errors(bare, runs), errors(replace(bare, constants=(*bare.constants, *rows)), runs)
    return [Judged(row, before.get(row.device, {}), after.get(row.device, {})) for row in rows]


def as_toml(rows: Sequence[ConstantRow]) -> str:
    lines = [
        "# Written by `python -m tests.bench.matrix_rates --write`: what an engine reaches of the matrix rate of devices nobody here",
        "# measured, from products that others timed (catalog/published/matrix_rates.toml). Devices whose published runs do not bear it",
        "# out have none.",
    ]
    for row in rows:
        source = row.provenance
        lines += [
            "",
            "[[constant]]",
            f'name = "{row.name}"',
            f'device = "{row.device}"',
            f"value = {row.value}",
            f"low = {row.low}",
            f"high = {row.high}",
            f'unit = "{row.unit}"',
            f'basis = "{row.basis}"',
            f'provenance = {{ source = "{source.source}", retrieved_on = {source.retrieved_on.isoformat()}, checked = "derived", '
            f'notes = "{source.notes}" }}',
        ]
    return "\n".join(lines) + "\n"


def shown(one: Judged) -> list[str]:
    if not one.before:
        return ["–"] * len(METRICS)
    return [f"{mean(one.before, place):.1f} → {mean(one.after, place):.1f}" for place in range(len(METRICS))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    found = judged(read_catalog())
    titles = ("device", NAME, *(f"{metric}: off %" for metric in METRICS), "")
    lines = [titles, ("---",) * len(titles)]
    for one in found:
        verdict = "no runs" if not one.before else "kept" if one.kept else "struck out"
        lines.append((one.row.device, f"{one.row.value:g}", *shown(one), verdict))
    sys.stdout.write("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    if write:
        PATH.write_text(as_toml([one.row for one in found if one.kept]), encoding="utf-8")


if __name__ == "__main__":
    main()
