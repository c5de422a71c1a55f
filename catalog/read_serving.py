"""Reads ``catalog/serving``: serving runs that others published, their sources, and generations of engines."""

import csv
import re
import tomllib
from functools import cache
from pathlib import Path

from catalog.serving_rows import GenerationRow, LevelRow, PublicRunRow, PublicSourceRow

FOLDER = Path(__file__).with_name("serving")


@cache
def read_generations() -> dict[str, GenerationRow]:
    """By engine. An engine without a row has one generation."""
    rows = tomllib.loads((FOLDER / "generations.toml").read_text(encoding="utf-8"))["generation"]
    return {row.engine: row for row in map(GenerationRow.model_validate, rows)}


def read_levels() -> tuple[LevelRow, ...]:
    rows = tomllib.loads((FOLDER / "levels.toml").read_text(encoding="utf-8"))["level"]
    return tuple(map(LevelRow.model_validate, rows))


def read_public_sources() -> dict[str, PublicSourceRow]:
    entries = tomllib.loads((FOLDER / "sources.toml").read_text(encoding="utf-8"))["sources"]
    return {key: PublicSourceRow.model_validate(entry) for key, entry in entries.items()}


def read_public_runs() -> tuple[PublicRunRow, ...]:
    """In the order of the file. Raises pydantic.ValidationError for a line that is no run, KeyError for a source that is not there."""
    sources = read_public_sources()
    with (FOLDER / "runs.csv").open(newline="", encoding="utf-8") as file:
        runs = tuple(
            PublicRunRow.model_validate({k: v for k, v in row.items() if v != ""}) for row in csv.DictReader(file)
        )
    return tuple(run.model_copy(update={"only_means": sources[run.source].only_means}) for run in runs)


def release_numbers(version: str) -> tuple[int, int, int] | None:
    """The first three numbers of a release, those it does not state as zero; None where it does not begin with two with a point between
    them. A candidate or a patch of a release counts as that release.

    >>> release_numbers("v0.6.3.post1"), release_numbers("1.0rc2"), release_numbers("20251124"), release_numbers("")
    ((0, 6, 3), (1, 0, 0), None, None)
    """
    numbers = re.match(r"\s*v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", version)
    if numbers is None:
        return None
    first, second, third = (int(one or 0) for one in numbers.groups())
    return first, second, third


def is_current(engine: str, version: str | None, measured_on: str | None = None) -> bool | None:
    """Is a release of today's generation? By its number, else by the day of the run; None where neither tells.

    >>> is_current("vllm", "0.7.3"), is_current("vllm", "0.24.0"), is_current("vllm", "nightly"), is_current("vllm", None, "2025-10")
    (False, True, None, True)
    >>> is_current("mlx-lm", None)
    True
    """
    row = read_generations().get(engine)
    if row is None:
        return True
    numbers = release_numbers(version or "")
    if numbers is not None:
        return numbers >= tuple(int(n) for n in row.since_version.split("."))
    if version is None and measured_on is not None:
        return measured_on >= row.since.isoformat()[: len(measured_on)]
    return None
