"""Reads ``catalog/grids``: which grid feeds a provider's region, and what its electricity has emitted.

Every error is collected before any is raised.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from catalog.rows import NotNegative, Provenance, Row, Slug

GRIDS_FOLDER = Path(__file__).parent / "grids"
_RowT = TypeVar("_RowT", bound=Row)


class GridRow(Row):
    """Carbon intensity of one grid as a year's average, where the electricity is consumed."""

    id: Slug
    name: str
    kg_co2e_per_kwh: NotNegative
    year: Annotated[int, Field(ge=2000, le=2100)]
    provenance: Provenance


class RegionRow(Row):
    """Where a provider's region stands. ``power_usage_effectiveness``: the operator's own figure, where it gives one."""

    provider: Slug
    region: str
    place: str
    grid: Slug
    power_usage_effectiveness: Annotated[float, Field(ge=1, le=5)] | None = None
    provenance: Provenance


class GridCatalogError(Exception):
    """The files break their rules. ``errors`` lists all of them as ``file, entry: what is wrong``."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class GridCatalog:
    """grids: by id. regions: by provider and region."""

    grids: Mapping[str, GridRow]
    regions: Mapping[tuple[str, str], RegionRow]

    def find(self, provider: str, region: str) -> tuple[RegionRow, GridRow] | None:
        """The region and its grid, or None where nothing sourced says which grid that is."""
        row = self.regions.get((provider, region))
        return None if row is None else (row, self.grids[row.grid])


def read_grids(folder: Path = GRIDS_FOLDER) -> GridCatalog:
    """Raises GridCatalogError naming each fault."""
    errors: list[str] = []
    grids: dict[str, GridRow] = {}
    stated = _rows(folder / "grids.toml", "grid", GridRow, errors)
    errors += [f"grids.toml, {row.id}: stated twice" for row in stated if grids.setdefault(row.id, row) is not row]
    regions: dict[tuple[str, str], RegionRow] = {}
    for row in _rows(folder / "regions.toml", "region", RegionRow, errors):
        if regions.setdefault((row.provider, row.region), row) is not row:
            errors.append(f"regions.toml, {row.provider} {row.region}: stated twice")
        if row.grid not in grids:
            errors.append(f"regions.toml, {row.provider} {row.region}: no grid {row.grid!r} in grids.toml")
    if errors:
        raise GridCatalogError(errors)
    return GridCatalog(grids, regions)


def _rows(path: Path, table: str, row_type: type[_RowT], errors: list[str]) -> list[_RowT]:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        errors.append(f"{path.name}: {error}")
        return []
    errors += [f"{path.name}: unknown table {extra}" for extra in sorted(document.keys() - {table, "provenance"})]
    head = document.get("provenance", {})
    rows = []
    for position, entry in enumerate(document.get(table, []), start=1):
        try:
            rows.append(row_type.model_validate({**entry, "provenance": {**head, **entry.get("provenance", {})}}))
        except ValidationError as wrong:
            where = f"{path.name}, {entry.get('id') or entry.get('region') or f'entry {position}'}"
            errors += [f"{where}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in wrong.errors()]
    return rows
