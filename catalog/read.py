"""The catalog's files → rows.

A TOML file holds an array of tables named after its row (``[[device]]``, ``[[node]]`` …); a ``[provenance]`` table at
its head holds for every entry that does not say otherwise. Offers and price steps are CSV, one file a provider.
All errors of a catalog release are collected before any is raised.
"""

import csv
import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from catalog.benchmark_rows import BenchmarkFile, BenchmarkFilesError, read_benchmark_files
from catalog.correction_rows import CorrectionSetRow, read_correction_sets
from catalog.relations import benchmark_errors, line_errors, partition_errors, provider_errors, relation_errors
from catalog.rows import (
    ConstantRow,
    DeviceLineRow,
    DeviceRow,
    EnergyRow,
    LlmRow,
    NodeRow,
    OfferRow,
    PartitionRow,
    PriceRow,
    ProviderRow,
    Row,
    SourceRow,
)

DEFAULT_ROOT = Path(__file__).resolve().parent
"""The catalog release that ships with the package."""

_FOLDERS = (
    "devices", "device_lines", "partitions", "nodes", "providers", "offers", "prices", "energy", "constants",
    "llms", "corrections", "benchmarks",
)  # fmt: skip
_RowT = TypeVar("_RowT", bound=Row)


class CatalogError(Exception):
    """The catalog's files do not hold together. ``problems`` names every one, with file and entry."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{len(problems)} problem(s) in the catalog:\n" + "\n".join(f"  {p}" for p in problems))


@dataclass(frozen=True, slots=True)
class Catalog:
    """One release of the catalog. Devices, nodes, offers and LLMs by id, energy by region, in the files' order."""

    devices: Mapping[str, DeviceRow]
    nodes: Mapping[str, NodeRow]
    offers: Mapping[str, OfferRow]
    prices: tuple[PriceRow, ...]
    energy: Mapping[str, EnergyRow]
    constants: tuple[ConstantRow, ...]
    llms: Mapping[str, LlmRow]
    corrections: tuple[CorrectionSetRow, ...]
    benchmarks: tuple[BenchmarkFile, ...]
    """The project's own measured runs."""
    partitions: tuple[PartitionRow, ...]
    """How devices can be split."""
    device_lines: Mapping[str, DeviceLineRow]
    """The product line of each device, by the device's id."""
    providers: Mapping[str, ProviderRow]
    """Who sells, by id."""
    digest: str
    """SHA-256 over the catalog's files."""


def read_catalog(root: Path = DEFAULT_ROOT) -> Catalog:
    """Read and check a whole catalog release.

    Raises ``CatalogError`` naming every malformed file and entry, duplicate id and broken relation.
    """
    problems: list[str] = []
    devices = _keyed(_toml_rows(root, "devices", "device", DeviceRow, problems), "id", problems)
    nodes = _keyed(_toml_rows(root, "nodes", "node", NodeRow, problems), "id", problems)
    energy = _keyed(_toml_rows(root, "energy", "energy", EnergyRow, problems), "region", problems)
    llms = _keyed(_toml_rows(root, "llms", "llm", LlmRow, problems), "id", problems)
    partitions = tuple(row for _, row in _toml_rows(root, "partitions", "partition", PartitionRow, problems))
    lines = _keyed(_toml_rows(root, "device_lines", "line", DeviceLineRow, problems), "id", problems)
    providers = _keyed(_toml_rows(root, "providers", "provider", ProviderRow, problems), "id", problems)
    constants = _constant_rows(root, problems)
    offers = _keyed(_offer_rows(root, problems), "id", problems)
    prices = tuple(row for _, row in _price_rows(root, problems))
    corrections: tuple[CorrectionSetRow, ...] = ()
    try:
        corrections = read_correction_sets(root / "corrections")
    except ValueError as error:
        problems.append(f"corrections/{error}")
    benchmarks: tuple[BenchmarkFile, ...] = ()
    try:
        benchmarks = read_benchmark_files(root / "benchmarks")
    except BenchmarkFilesError as error:
        problems.extend(f"benchmarks/{problem}" for problem in error.problems)
    problems.extend(relation_errors(devices, nodes, offers, prices, constants, llms))
    problems.extend(partition_errors(devices, partitions))
    problems.extend(line_errors(devices, lines.values()))
    problems.extend(provider_errors(offers, providers))
    problems.extend(benchmark_errors(devices, llms, benchmarks))
    if problems:
        raise CatalogError(problems)
    line_of = {device: line for line in lines.values() for device in line.devices}
    return Catalog(
        devices, nodes, offers, prices, energy, constants, llms, corrections, benchmarks, partitions, line_of, providers,
        digest(root),
    )  # fmt: skip


def read_constants(root: Path = DEFAULT_ROOT) -> tuple[ConstantRow, ...]:
    """The constants of a catalog release alone, a hundredth of its files. Raises ``CatalogError`` naming what is malformed."""
    problems: list[str] = []
    rows = _constant_rows(root, problems)
    if problems:
        raise CatalogError(problems)
    return rows


def digest(root: Path = DEFAULT_ROOT) -> str:
    """SHA-256 over the names and contents of a catalog release's data files, in order of name."""
    total = hashlib.sha256()
    for path in _files(root, *_FOLDERS, suffixes=(".toml", ".csv", ".json")):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def _files(root: Path, *folders: str, suffixes: tuple[str, ...]) -> list[Path]:
    found = (path for folder in folders for path in (root / folder).glob("*") if path.suffix in suffixes)
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def _toml_rows(
    root: Path, folder: str, table: str, row_type: type[_RowT], problems: list[str]
) -> Iterator[tuple[str, _RowT]]:
    for path in _files(root, folder, suffixes=(".toml",)):
        name = path.relative_to(root).as_posix()
        content = _toml(path, name, problems)
        if unknown := content.keys() - {table, "provenance"}:
            problems.append(f"{name}: unknown tables {', '.join(sorted(unknown))}; expected [[{table}]]")
        defaults = content.get("provenance", {})
        for position, entry in enumerate(content.get(table, []), start=1):
            where = f"{name}: {entry.get('id') or entry.get('region') or entry.get('name') or f'entry {position}'}"
            if defaults or "provenance" in entry:
                entry["provenance"] = {**defaults, **entry.get("provenance", {})}
            if row := _validated(row_type, entry, where, problems):
                yield where, row


def _constant_rows(root: Path, problems: list[str]) -> tuple[ConstantRow, ...]:
    return tuple(row for _, row in _toml_rows(root, "constants", "constant", ConstantRow, problems))


def _toml(path: Path, name: str, problems: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{name}: {error}")
        return {}


def _csv_entries(path: Path, name: str, columns: tuple[str, ...], problems: list[str]) -> Iterator[tuple[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        if tuple(header) != columns:
            problems.append(f"{name}: columns {header}; expected {list(columns)}")
            return
        for cells in filter(None, reader):
            where = f"{name}:{reader.line_num}"
            if len(cells) != len(columns):
                problems.append(f"{where}: expected {len(columns)} cells")
                continue
            yield where, dict(zip(columns, cells, strict=True))


def _offer_rows(root: Path, problems: list[str]) -> Iterator[tuple[str, OfferRow]]:
    """Offer files hold the id; provider, instance, region and commitment are its four parts."""
    for path in _files(root, "offers", suffixes=(".csv",)):
        name = path.relative_to(root).as_posix()
        for where, entry in _csv_entries(path, name, ("id", "node", "max_nodes", "notes"), problems):
            parts = entry["id"].split(":")
            if len(parts) != 4 or parts[0] != path.stem:
                problems.append(f"{where}: {entry['id']}: expected {path.stem}:instance:region:commitment")
                continue
            fields = dict(zip(("provider", "instance", "region", "commitment"), parts, strict=True))
            entry["max_nodes"] = entry["max_nodes"] or None
            if row := _validated(OfferRow, {**entry, **fields}, f"{where}: {entry['id']}", problems):
                yield f"{where}: {entry['id']}", row


def _price_rows(root: Path, problems: list[str]) -> Iterator[tuple[str, PriceRow]]:
    """Price files name their source by a key of ``prices/sources.toml``. An empty price withdraws the offer."""
    columns = ("offer", "valid_from", "usd_per_hour", "confidence", "source", "retrieved_on")
    sources = _price_sources(root, problems)
    for path in _files(root, "prices", suffixes=(".csv",)):
        name = path.relative_to(root).as_posix()
        for where, entry in _csv_entries(path, name, columns, problems):
            if entry["source"] not in sources:
                problems.append(f"{where}: no source {entry['source']!r} in prices/sources.toml")
                continue
            entry["source"] = sources[entry["source"]].text
            entry["usd_per_hour"] = entry["usd_per_hour"] or None
            if row := _validated(PriceRow, entry, f"{where}: {entry['offer']}", problems):
                yield where, row


def _price_sources(root: Path, problems: list[str]) -> dict[str, SourceRow]:
    path = root / "prices" / "sources.toml"
    name = "prices/sources.toml"
    entries = _toml(path, name, problems).get("sources", {}) if path.exists() else {}
    rows = ((key, _validated(SourceRow, entry, f"{name}: {key}", problems)) for key, entry in entries.items())
    return {key: row for key, row in rows if row}


def _validated(row_type: type[_RowT], entry: Any, where: str, problems: list[str]) -> _RowT | None:
    try:
        return row_type.model_validate(entry)
    except ValidationError as error:
        for one in error.errors():
            field = ".".join(str(part) for part in one["loc"])
            problems.append(f"{where}: {field}: {one['msg']}" if field else f"{where}: {one['msg']}")
        return None


def _keyed(rows: Iterator[tuple[str, _RowT]], key: str, problems: list[str]) -> dict[str, _RowT]:
    found: dict[str, _RowT] = {}
    for where, row in rows:
        identity = getattr(row, key)
        if identity in found:
            problems.append(f"{where}: {key} {identity!r} appears twice")
        else:
            found[identity] = row
    return found
