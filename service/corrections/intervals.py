"""Ranges of what intervals hold beyond those of constants, from the published runs in ``catalog/serving``: what
``catalog/constants/intervals.toml`` is made of."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from catalog.read import Catalog
from catalog.read_serving import read_levels, read_public_runs
from service.corrections.public_runs import misses
from solver.corrections.miss_levels import EVERYTHING, Level, LevelRange, range_of, ranges
from solver.corrections.misses import FIRST_TOKEN, TOKEN, PublicMiss, by_configuration

NAMES = {
    (TOKEN, True): "interval_token_miss",
    (FIRST_TOKEN, True): "interval_first_token_miss",
    (TOKEN, False): "interval_token_miss_any_release",
    (FIRST_TOKEN, False): "interval_first_token_miss_any_release",
}
"""By metric, and whether releases of earlier generations are left out. A run that states no release counts with both; ranges of all
releases are of what is predicted where none is stated."""
RELEASE_NAME = "interval_release_miss"
MEASURED = ("measured", "corrected")


@dataclass(frozen=True)
class FittedInterval:
    """One range, the row that holds it, and the runs it is made of."""

    name: str
    found: LevelRange
    runs: tuple[PublicMiss, ...]


def fitted_intervals(catalog: Catalog) -> tuple[FittedInterval, ...]:
    """Of every level, taken or not. Some forty seconds."""
    runs = read_public_runs()
    found = {stated: misses(catalog, runs, stated=stated) for stated in (True, False)}
    levels = [Level(tuple(row.families), row.engine, row.device or "*") for row in read_levels()]
    answer: list[FittedInterval] = []
    for (metric, current), name in NAMES.items():
        today = NAMES[metric, True]
        kept = [one.found.level for one in answer if one.name == today and one.found.taken]
        own = [
            m
            for m in found[current]
            if m.metric == metric and m.basis == "analytical" and not (current and m.current is False)
        ]
        answer += [
            FittedInterval(name, one, tuple(m for m in own if one.level.holds(m))) for one in ranges(own, levels, kept)
        ]
    unstated = [m for m in found[False] if m.metric == TOKEN and m.basis in MEASURED and m.current is None]
    answer.append(FittedInterval(RELEASE_NAME, range_of(EVERYTHING, unstated, by_configuration), tuple(unstated)))
    return tuple(answer)


def as_toml(fitted: Iterable[FittedInterval], day: dt.date) -> str:
    """The file of constants: a row for each range that is taken, by family where a level has several."""
    lines = [
        "# Written by `clusterwright calibrate --intervals --write`: how far measured times lie from predicted ones beyond the ranges of",
        "# constants, where no run of this project says: low and high are the range of nine of ten measured over predicted. Each source",
        "# and device counts once, in levels of one or two sources each model, format and release. The runs are in catalog/serving/.",
    ]
    for one in fitted:
        if one.found.taken:
            lines += [line for subject in _subjects(one.found.level) for line in ("", *_row(one, subject, day))]
    return "\n".join(lines) + "\n"


def _subjects(level: Level) -> Iterator[Sequence[str]]:
    engine = [f'engine = "{level.engine}"'] if level.engine != "*" else []
    if level.device != "*":
        yield [f'device = "{level.device}"', *engine]
    for family in level.families:
        yield [f'family = "{family}"', *engine]
    if level == EVERYTHING:
        yield []


def _row(one: FittedInterval, subject: Sequence[str], day: dt.date) -> list[str]:
    found = one.found
    low, high = min(found.range[0], 1.0), max(found.range[1], 1.0)
    sources = ", ".join(sorted({m.source for m in one.runs}))
    told = f"{found.runs} published runs in {found.clusters} groups ({sources}; catalog/serving/runs.csv)"
    held = f"the ranges of constants hold {100 * found.inside:.0f} %, this {100 * found.left_out_inside:.0f} % of groups left out"
    return [
        "[[constant]]",
        f'name = "{one.name}"',
        *subject,
        "value = 1.0",
        f"low = {low:.2f}",
        f"high = {high:.2f}",
        'unit = "ratio"',
        'basis = "analytical"',
        f'provenance = {{ source = "{told}", retrieved_on = {day.isoformat()}, checked = "derived", notes = "{held}" }}',
    ]
