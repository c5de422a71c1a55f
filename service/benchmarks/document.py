"""An uploaded file, parsed once: JSON, JSON lines, YAML, CSV or plain text, whichever it is.

Importers ask it for the form they know. Nothing here trusts the file: YAML aliases are refused (a few hundred bytes
of them can expand to gigabytes), nesting and size are bounded, numbers must be numbers.
"""

import csv
import io
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import yaml

MOST_YAML_CHARACTERS = 2_000_000
"""Bound on YAML text: its parser is two orders of magnitude slower than JSON's."""
DEEPEST_NESTING = 60

JsonObject = Mapping[str, Any]


class ReadingError(Exception):
    """The file cannot be read as a benchmark result. ``pointer`` is a JSON pointer into the payload."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.message = message


class _PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml may be absent
    """YAML without aliases and without dates: time stamps stay text."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _load_yaml(text: str) -> Any:
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=_PlainLoader)):
        raise ReadingError("/payload", "YAML aliases are not accepted")
    return yaml.load(text, Loader=_PlainLoader)


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
        first_line = next((line for line in stripped.splitlines() if line and not line.startswith("#")), "")
        looks_like_yaml = first_line == "---" or (":" in first_line and "," not in first_line)
        if not looks_like_yaml or len(text) > MOST_YAML_CHARACTERS:
            return None
        try:
            value = _load_yaml(text)
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
        blocks = []
        for block in self.text.replace("\r\n", "\n").split("\n\n"):
            if not block.strip():
                continue
            try:
                rows = list(csv.DictReader(io.StringIO(block.strip("\n")), restkey="_rest", restval=""))
            except csv.Error as error:
                raise ReadingError("/payload", f"not readable as CSV: {error}") from None
            blocks.append(rows)
        return blocks


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
    return _finite(float(value), key, scale)


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
