"""An uploaded file, parsed once: JSON, JSON lines, YAML, CSV or plain text, whichever it is.

Importers ask it for the form they know. Nothing here trusts the file: nesting, rows and cells are bounded, numbers
must be numbers, and YAML is read by ``service.benchmarks.yaml_text``.
"""

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import yaml

from service.benchmarks.reading_error import ReadingError
from service.benchmarks.yaml_text import DEEPEST_NESTING, MOST_CHARACTERS, read_yaml

__all__ = ["DEEPEST_NESTING", "Document", "JsonObject", "ReadingError"]

MOST_CSV_BLOCKS = 10_000
MOST_CSV_ROWS = 100_000
MOST_CSV_CELLS = 1_000_000
_FIRST_LINE = re.compile(r"^[ \t]*([^\s#][^\r\n]*)", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")

JsonObject = Mapping[str, Any]


class Document:
    """The payload in every form it can take. ``value`` is the parsed JSON or YAML, None for other text."""

    def __init__(self, payload: Any) -> None:
        self.text: str | None = payload if isinstance(payload, str) else None
        self._structured = None if isinstance(payload, str) else payload

    @cached_property
    def value(self) -> Any:
        """The payload as one JSON value, or None."""
        value = self._structured if self.text is None else self._parsed_text(self.text)
        if _depth(value) > DEEPEST_NESTING:
            raise ReadingError("/payload", f"nested deeper than {DEEPEST_NESTING} levels")
        return value

    @staticmethod
    def _parsed_text(text: str) -> Any:
        stripped = text.lstrip("\ufeff \t\r\n")
        if stripped[:1] in ("{", "["):
            try:
                return json.loads(stripped)
            except (ValueError, RecursionError):
                return None
        if not looks_like_yaml(text) or len(text) > MOST_CHARACTERS:
            return None
        try:
            value = read_yaml(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        return value if isinstance(value, (dict, list)) else None

    @property
    def object(self) -> JsonObject | None:
        """The payload as one JSON object, or None."""
        return self.value if isinstance(self.value, dict) else None

    @cached_property
    def objects(self) -> list[JsonObject]:
        """The payload as a list of JSON objects: a list, JSON lines, or one object; empty when it is none of them."""
        if isinstance(self.value, dict):
            return [self.value]
        if isinstance(self.value, list):
            return self.value if self.value and all(isinstance(item, dict) for item in self.value) else []
        if self.text is None or not self.text.lstrip().startswith("{"):
            return []
        rows: list[JsonObject] = []
        for number, line in enumerate(self.text.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ReadingError(
                    "/payload", f"line {number} is not JSON ({error}): the file may be truncated"
                ) from None
            if not isinstance(row, dict):
                raise ReadingError("/payload", f"line {number} is not a JSON object")
            rows.append(row)
        return rows

    @cached_property
    def csv_blocks(self) -> list[list[dict[str, str]]]:
        """CSV text as blocks of rows: blocks are separated by empty lines, each starts with its own header."""
        if self.text is None or self.value is not None:
            return []
        blocks, rows_left, cells_left = [], MOST_CSV_ROWS, MOST_CSV_CELLS
        blocks_of_text = _BLANK_LINES.split(self.text.replace("\r\n", "\n").strip("\n"), maxsplit=MOST_CSV_BLOCKS)
        if len(blocks_of_text) > MOST_CSV_BLOCKS:
            raise ReadingError("/payload", f"has more than {MOST_CSV_BLOCKS} blocks of rows")
        for block in blocks_of_text:
            rows = []
            try:
                for row in csv.DictReader(io.StringIO(block), restkey="_rest", restval=""):
                    rows_left -= 1
                    cells_left -= len(row)
                    if rows_left < 0 or cells_left < 0:
                        raise ReadingError(
                            "/payload",
                            f"has more than {MOST_CSV_ROWS} rows or {MOST_CSV_CELLS} cells: send it in parts",
                        )
                    rows.append(row)
            except csv.Error as error:
                raise ReadingError("/payload", f"not readable as CSV: {error}") from None
            blocks.append(rows)
        return blocks


def looks_like_yaml(text: str) -> bool:
    """Whether the first line that says something is a document's start, or a key without the commas of CSV."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return False
    found = _FIRST_LINE.search(text.lstrip("\ufeff"))
    line = found.group(1).rstrip() if found else ""
    return line == "---" or (":" in line and "," not in line)


def _depth(value: Any) -> int:
    """Levels of nesting, without recursion: a hostile file must not exhaust the stack."""
    deepest, level = 0, [value]
    while level and deepest <= DEEPEST_NESTING:
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        deepest, level = deepest + 1, below
    return deepest


def number(row: JsonObject, key: str, *, scale: float = 1.0) -> float | None:
    """``row[key] · scale`` as a finite, non-negative number; None when it is absent or null.

    Raises ReadingError for a string, a boolean, NaN, an infinity or a negative value: a tool that means a number
    writes a number.
    """
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ReadingError(f"/payload/{key}", f"is {_shown(value)}, not a number")
    try:
        return _finite(float(value), key, scale)
    except OverflowError:  # a whole number of more digits than a float holds
        return _finite(math.inf, key, scale)


def number_in_text(row: Mapping[str, Any], key: str, *, scale: float = 1.0) -> float | None:
    """As ``number``, for formats whose cells are text (CSV, log files); None when the cell is absent or empty."""
    text = row.get(key)
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if not isinstance(text, str):
        return number(row, key, scale=scale)
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise ReadingError(f"/payload/{key}", f"is {_shown(text)}, not a number") from None
    return _finite(value, key, scale)


def _finite(value: float, key: str, scale: float) -> float:
    if not math.isfinite(value):
        raise ReadingError(f"/payload/{key}", f"is {value}, not a finite number")
    if value < 0:
        raise ReadingError(f"/payload/{key}", f"is {value:g}: a measured quantity cannot be negative")
    return value * scale


def whole(row: JsonObject, key: str) -> int | None:
    """``row[key]`` as a whole number (3.0 counts); None when absent. Raises ReadingError otherwise."""
    value = number(row, key)
    if value is None:
        return None
    if value != int(value):
        raise ReadingError(f"/payload/{key}", f"is {value:g}, not a whole number")
    return int(value)


def text(row: JsonObject, key: str) -> str | None:
    """``row[key]`` when it is non-empty text, else None."""
    value = row.get(key)
    return value if isinstance(value, str) and value else None


def section(row: JsonObject, *path: str) -> JsonObject:
    """The object at ``path``, or an empty one: every level of a tool's report may be missing."""
    for key in path:
        value = row.get(key)
        if not isinstance(value, dict):
            return {}
        row = value
    return row


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
