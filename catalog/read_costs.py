"""Reads ``catalog/costs``: every error is collected before any is raised."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from catalog.cost_rows import CostFigureRow, CurrencyRows, OperatorRow

COSTS_FOLDER = Path(__file__).parent / "costs"
OPERATORS_FILE = "operators.toml"
CURRENCIES_FILE = "currencies.toml"
ANY_SUBJECT = "*"


class CostCatalogError(Exception):
    """The files break their rules. ``errors`` lists all of them as ``file, entry: what is wrong``."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class CostCatalog:
    """All cost inputs of one catalog release."""

    figures: Mapping[tuple[str, str], CostFigureRow]
    """By name and subject."""
    operators: Mapping[str, OperatorRow]
    currencies: frozenset[str]
    digest: str

    def find(self, name: str, subject: str = ANY_SUBJECT) -> CostFigureRow | None:
        """The row of exactly this subject, or None. No row stands in for another subject's."""
        return self.figures.get((name, subject))

    def subjects(self, name: str) -> list[str]:
        """Whose figures of this name there are, sorted."""
        return sorted(subject for row_name, subject in self.figures if row_name == name)


def read_costs(folder: Path = COSTS_FOLDER) -> CostCatalog:
    """Every cost row of ``folder``. Raises CostCatalogError naming each fault."""
    errors: list[str] = []
    digest = hashlib.sha256()
    figures: dict[tuple[str, str], CostFigureRow] = {}
    operators: dict[str, OperatorRow] = {}
    currencies: frozenset[str] = frozenset()
    for path in sorted(folder.glob("*.toml")):
        text = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + text + b"\0")
        try:
            document = tomllib.loads(text.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            errors.append(f"{path.name}: {error}")
            continue
        if path.name == OPERATORS_FILE:
            for operator in _operators(path.name, document, errors):
                operators[operator.id] = operator
        elif path.name == CURRENCIES_FILE:
            currencies = _currencies(path.name, document, errors)
        else:
            for row in _figures(path.name, document, errors):
                key = (row.name, row.subject)
                if key in figures:
                    errors.append(f"{path.name}, {row.name} of {row.subject}: stated twice")
                figures[key] = row
    if errors:
        raise CostCatalogError(errors)
    return CostCatalog(figures, operators, currencies, digest.hexdigest())


def _figures(file: str, document: dict[str, Any], errors: list[str]) -> list[CostFigureRow]:
    rows = []
    errors += [f"{file}: unknown table {extra}" for extra in sorted(document.keys() - {"figure"})]
    for number, entry in enumerate(document.get("figure", []), start=1):
        try:
            rows.append(CostFigureRow.model_validate(entry))
        except ValidationError as error:
            errors += _messages(file, f"figure {number} ({entry.get('name')} of {entry.get('subject')})", error)
    return rows


def _operators(file: str, document: dict[str, Any], errors: list[str]) -> list[OperatorRow]:
    rows = []
    for number, entry in enumerate(document.get("operator", []), start=1):
        try:
            rows.append(OperatorRow.model_validate(entry))
        except ValidationError as error:
            errors += _messages(file, f"operator {number}", error)
    return rows


def _currencies(file: str, document: dict[str, Any], errors: list[str]) -> frozenset[str]:
    try:
        return frozenset(CurrencyRows.model_validate(document).codes)
    except ValidationError as error:
        errors += _messages(file, "codes", error)
        return frozenset()


def _messages(file: str, entry: str, error: ValidationError) -> list[str]:
    return [f"{file}, {entry}, {'.'.join(map(str, e['loc'])) or 'row'}: {e['msg']}" for e in error.errors()]
