"""Published runs beside predictions by device, engine and class of model: how many, how far off, how many inside their intervals, refused.

    python -m tests.bench.published_matrix [--by-source] [--today] [--unstated]

The runs are those of ``catalog/serving``, as their sources state them, releases too. Per token: times, or output rates where the source
states no other. Errors are medians in per cent; the ratio is the median of measured over predicted times: 1 is right, above it
predictions are too fast. ``--by-source``: a line for each source and device, and below them each counted once, by its mean error, its
median ratio and its share inside. ``--today``: only runs of releases of today's generation (``catalog/serving/generations.toml``).
``--unstated``: runs are predicted as a request is that names no release, which takes one of today, and of lengths means alone where the
source states no more.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from catalog.read import Catalog, read_catalog
from catalog.read_serving import is_current, read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import predicted_runs
from service.recommendations.from_rows import llm_from_row
from service.wire.estimates import EstimatedOut

Cell = tuple[str, str, str]
Pair = tuple[PublicRunRow, EstimatedOut | None]
FIGURES = ("per token: off %", "ratio", "inside", "first token: off %", "ratio", "inside")
TITLES = ("device", "engine", "models", "runs", "refused", "basis", *FIGURES)
TITLES_BY_SOURCE = ("source", "device", "runs", "refused", *FIGURES)


class Figure(NamedTuple):
    """ratio: of measured over predicted times."""

    first: bool
    ratio: float
    inside: bool

    @property
    def off_percent(self) -> float:
        """How far the prediction lies from what was measured."""
        return 100.0 * abs(1.0 / self.ratio - 1.0)


def figures(run: PublicRunRow, told: EstimatedOut) -> Iterator[Figure]:
    tokens, rate, first = told.tpot_ms.mean, told.output_tokens_per_s, told.ttft_ms.mean
    if run.tpot_ms is not None:
        yield Figure(False, run.tpot_ms / tokens.expected, tokens.low <= run.tpot_ms <= tokens.high)
    elif run.output_tokens_per_s is not None:
        inside = rate.low <= run.output_tokens_per_s <= rate.high
        yield Figure(False, rate.expected / run.output_tokens_per_s, inside)
    if run.ttft_ms is not None:
        yield Figure(True, run.ttft_ms / first.expected, first.low <= run.ttft_ms <= first.high)


def shown(found: Sequence[Figure]) -> list[str]:
    if not found:
        return ["–", "–", "–"]
    off = statistics.median(one.off_percent for one in found)
    inside = statistics.fmean(one.inside for one in found)
    return [f"{off:.0f}", f"{statistics.median(one.ratio for one in found):.2f}", f"{inside:.2f}"]


def classes(catalog: Catalog) -> dict[str, str]:
    return {name: llm_from_row(row.model_dump(mode="json")).model_class for name, row in catalog.llms.items()}


def found_in(members: Sequence[Pair]) -> list[Figure]:
    return [figure for run, told in members if told is not None for figure in figures(run, told)]


def counts(members: Sequence[Pair]) -> tuple[str, str]:
    """Runs, and those of them that are refused."""
    return str(len(members)), str(sum(told is None for _, told in members))


def both(found: Sequence[Figure]) -> list[str]:
    """Per token, then first tokens."""
    return [text for which in (False, True) for text in shown([one for one in found if one.first is which])]


def by_class(pairs: Sequence[Pair], of_model: Mapping[str, str]) -> Iterator[Sequence[str]]:
    cells: dict[Cell, list[Pair]] = defaultdict(list)
    for run, told in pairs:
        for cell in ((run.device, run.engine, of_model[run.llm]), ("all", "", "")):
            cells[cell].append((run, told))
    yield TITLES
    for cell, members in sorted(cells.items(), key=lambda one: (one[0][0] == "all", one[0])):
        bases = ", ".join(sorted({told.basis for _, told in members if told is not None})) if cell[1] else ""
        yield (*cell, *counts(members), bases, *both(found_in(members)))


def by_source(pairs: Sequence[Pair]) -> Iterator[Sequence[str]]:
    cells: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for run, told in pairs:
        cells[run.source, run.device].append((run, told))
    yield TITLES_BY_SOURCE
    for cell, members in sorted(cells.items()):
        yield (*cell, *counts(members), *both(found_in(members)))
    found = [found_in(members) for members in cells.values()]
    yield ("each once", "", *counts(pairs), *(text for which in (False, True) for text in each_once(found, which)))


def each_once(groups: Sequence[Sequence[Figure]], first: bool) -> list[str]:
    """Medians over groups of their mean error and of their median ratio, and the mean of their shares inside."""
    own = [kept for kept in ([one for one in group if one.first is first] for group in groups) if kept]
    if not own:
        return ["–", "–", "–"]
    off = statistics.median(statistics.fmean(one.off_percent for one in group) for group in own)
    ratio = statistics.median(statistics.median(one.ratio for one in group) for group in own)
    inside = statistics.fmean(statistics.fmean(one.inside for one in group) for group in own)
    return [f"{off:.0f}", f"{ratio:.2f}", f"{inside:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by-source", action="store_true")
    parser.add_argument("--today", action="store_true")
    parser.add_argument("--unstated", action="store_true")
    asked = parser.parse_args()
    catalog = read_catalog()
    runs = [
        run
        for run in read_public_runs()
        if not asked.today or is_current(run.engine, run.engine_version, run.measured_on)
    ]
    told = predicted_runs(catalog, runs, stated=not asked.unstated, missed=True)
    pairs = list(zip(runs, told, strict=True))
    header, *lines = by_source(pairs) if asked.by_source else by_class(pairs, classes(catalog))
    table = [header, ("---",) * len(header), *lines]
    sys.stdout.write("\n".join(f"| {' | '.join(line)} |" for line in table) + "\n")


if __name__ == "__main__":
    main()
