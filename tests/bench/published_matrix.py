"""Published runs beside predictions by device, engine and class of model: how many, how far off, how many inside their intervals, refused.

    python -m tests.bench.published_matrix

The runs are those of ``catalog/serving``, as their sources state them, releases too. Per token: times, or output rates where the source
states no other. Errors are medians in per cent; the ratio is the median of measured over predicted times: 1 is right, above it
predictions are too fast.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from catalog.read import Catalog, read_catalog
from catalog.read_serving import read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import predicted_runs
from service.recommendations.from_rows import llm_from_row
from service.wire.estimates import EstimatedOut

Cell = tuple[str, str, str]
TITLES = (
    "device",
    "engine",
    "models",
    "runs",
    "refused",
    "basis",
    "per token: off %",
    "ratio",
    "inside",
    "first token: off %",
    "ratio",
    "inside",
)


class Figure(NamedTuple):
    """ratio: of measured over predicted times."""

    first: bool
    ratio: float
    inside: bool


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
    off = statistics.median(100.0 * abs(1.0 / one.ratio - 1.0) for one in found)
    inside = statistics.fmean(one.inside for one in found)
    return [f"{off:.0f}", f"{statistics.median(one.ratio for one in found):.2f}", f"{inside:.2f}"]


def classes(catalog: Catalog) -> dict[str, str]:
    return {name: llm_from_row(row.model_dump(mode="json")).model_class for name, row in catalog.llms.items()}


def main() -> None:
    catalog, runs = read_catalog(), read_public_runs()
    of_model = classes(catalog)
    cells: dict[Cell, list[tuple[PublicRunRow, EstimatedOut | None]]] = defaultdict(list)
    for pair in zip(runs, predicted_runs(catalog, runs, missed=True), strict=True):
        run = pair[0]
        for cell in ((run.device, run.engine, of_model[run.llm]), ("all", "", "")):
            cells[cell].append(pair)
    lines = [TITLES, ("---",) * len(TITLES)]
    for cell, members in sorted(cells.items(), key=lambda one: (one[0][0] == "all", one[0])):
        known = [(run, told) for run, told in members if told is not None]
        found = [figure for run, told in known for figure in figures(run, told)]
        bases = ", ".join(sorted({told.basis for _, told in known})) if cell[1] else ""
        per_token, first = ([one for one in found if one.first is which] for which in (False, True))
        counts = (str(len(members)), str(len(members) - len(known)))
        lines.append((*cell, *counts, bases, *shown(per_token), *shown(first)))
    sys.stdout.write("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
