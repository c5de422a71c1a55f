"""Reads ``catalog/training``: software stacks, constants of the training model, and the published runs they are fitted to.

Every error is collected before any is raised.
"""

import csv
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from catalog.rows import ConstantRow, Row
from catalog.training_rows import TrainingRunRow, TrainingSourceRow, TrainingStackRow

TRAINING_FOLDER = Path(__file__).parent / "training"
FITTED_FILE = "fitted.toml"
"""Written by ``clusterwright training fit --write``; every other constant is entered by hand."""
_RowT = TypeVar("_RowT", bound=Row)


class TrainingCatalogError(Exception):
    """The files break their rules. ``errors`` lists all of them as ``file, entry: what is wrong``."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class TrainingCatalog:
    """stacks, sources: by id. A constant's ``engine`` names a stack. digest: SHA-256 over the files that answers rest on."""

    stacks: Mapping[str, TrainingStackRow]
    constants: tuple[ConstantRow, ...]
    """Fitted ones in the place of those they start from."""
    entered: tuple[ConstantRow, ...]
    """As they were entered, before any fit."""
    runs: tuple[TrainingRunRow, ...]
    sources: Mapping[str, TrainingSourceRow]
    digest: str

    def assumed(self) -> "TrainingCatalog":
        """The catalog without the fit."""
        return replace(self, constants=self.entered)

    def stack_named(self, name: str) -> TrainingStackRow | None:
        """The stack whose spelling is the longest that ``name`` begins with; None: nobody knows it."""
        plain = name.strip().lower()
        found = [(len(spelt), row) for row in self.stacks.values() for spelt in row.names if plain.startswith(spelt)]
        return max(found, key=lambda pair: pair[0], default=(0, None))[1]

    def lineage(self, stack: TrainingStackRow) -> tuple[str, ...]:
        """The stack's id, then those of what it is part of."""
        names = [stack.id]
        while (parent := self.stacks[names[-1]].part_of) is not None:
            names.append(parent)
        return tuple(names)

    def default_stack(self, method: str, family: str) -> TrainingStackRow | None:
        """The stack for a method on devices of a family, where none is named: one that is about the family, else any."""
        fitting = [s for s in self.stacks.values() if method in s.trains and (not s.families or family in s.families)]
        return max(fitting, key=lambda s: bool(s.families), default=None)


@cache
def read_training(folder: Path = TRAINING_FOLDER) -> TrainingCatalog:
    """Read and check the files. Raises TrainingCatalogError with everything that is wrong."""
    problems: list[str] = []
    stacks = {row.id: row for row in _tables(folder / "stacks.toml", "stack", TrainingStackRow, problems)}
    constants: list[ConstantRow] = []
    for path in sorted(folder.glob("*.toml")):
        if path.name not in ("stacks.toml", "sources.toml", FITTED_FILE):
            constants += _tables(path, "constant", ConstantRow, problems)
    fitted = {_key(row): row for row in _tables(folder / FITTED_FILE, "constant", ConstantRow, problems)}
    problems += [f"{FITTED_FILE}: {key} is not entered" for key in fitted.keys() - {_key(row) for row in constants}]
    entries = tomllib.loads((folder / "sources.toml").read_text(encoding="utf-8"))["sources"]
    sources = {
        key: row for key, entry in entries.items() if (row := _validated(TrainingSourceRow, entry, key, problems))
    }
    runs = _runs(folder / "runs.csv", problems)
    for stack in stacks.values():
        if stack.part_of is not None and stack.part_of not in stacks:
            problems.append(f"stacks.toml, {stack.id}: no stack {stack.part_of}")
    problems += [f"{c.name}: no stack {c.engine}" for c in constants if c.engine != "*" and c.engine not in stacks]
    problems += [f"runs.csv, {run.id}: no source {run.source}" for run in runs if run.source not in sources]
    seen: set[tuple[str, str, str]] = set()
    for one in constants:
        key = _key(one)
        if key in seen:
            problems.append(f"{one.name}: given twice for family {one.family} and stack {one.engine}")
        seen.add(key)
    if problems:
        raise TrainingCatalogError(problems)
    used = tuple(fitted.get(_key(row), row) for row in constants)
    return TrainingCatalog(stacks, used, tuple(constants), runs, sources, _digest(folder))


def _key(row: ConstantRow) -> tuple[str, str, str]:
    return row.name, row.family if row.device == "*" else row.device, row.engine


def _tables(path: Path, table: str, row_type: type[_RowT], problems: list[str]) -> list[_RowT]:
    content = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    defaults = content.get("provenance", {})
    rows = []
    for number, entry in enumerate(content.get(table, []), start=1):
        if defaults or "provenance" in entry:
            entry["provenance"] = {**defaults, **entry.get("provenance", {})}
        where = f"{path.name}, {entry.get('id') or entry.get('name') or number}"
        if row := _validated(row_type, entry, where, problems):
            rows.append(row)
    return rows


def _runs(path: Path, problems: list[str]) -> tuple[TrainingRunRow, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        cells = [{k: v for k, v in row.items() if v != ""} for row in csv.DictReader(file)]
    rows = (_validated(TrainingRunRow, row, f"{path.name}, {row.get('id')}", problems) for row in cells)
    return tuple(row for row in rows if row is not None)


def _validated(row_type: type[_RowT], entry: Any, where: str, problems: list[str]) -> _RowT | None:
    try:
        return row_type.model_validate(entry)
    except ValidationError as error:
        problems.extend(f"{where}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        return None


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.toml")):
        total.update(f"{path.name}\0".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return total.hexdigest()
