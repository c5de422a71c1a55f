"""Evaluates the formulas of a workbook: the few functions that a comparison's workbook uses, as a spreadsheet defines them."""

import math
import re
import zipfile
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_TOKEN = re.compile(
    r"(?:(?P<sheet>'[^']+'|[A-Za-z]+)!)?\$?(?P<column>[A-Z]{1,2})\$?(?P<row>\d+)"
    r"(?::\$?(?P<to_column>[A-Z]{1,2})\$?(?P<to_row>\d+))?(?![A-Za-z(\d])"
)


def _number(column: str) -> int:
    number = 0
    for letter in column:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


class Workbook:
    """Cells by sheet; ``value`` computes a cell from its formula, never from the value that was stored beside it."""

    def __init__(self, content: bytes) -> None:
        book = zipfile.ZipFile(BytesIO(content))
        index = ElementTree.fromstring(book.read("xl/workbook.xml"))
        strings = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        texts = ["".join(t.text or "" for t in one.iter(f"{_SPACE}t")) for one in strings.findall(f"{_SPACE}si")]
        self.sheets: dict[str, dict[tuple[int, int], Any]] = {}
        self.formulas = 0
        self.stored: dict[tuple[str, int, int], float] = {}
        """What stands beside each formula for readers that do not compute."""
        for number, sheet in enumerate(index.iter(f"{_SPACE}sheet"), start=1):
            cells: dict[tuple[int, int], Any] = {}
            for cell in ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml")).iter(f"{_SPACE}c"):
                found = re.fullmatch(r"([A-Z]+)(\d+)", cell.attrib["r"])
                assert found is not None
                place = (_number(found[1]), int(found[2]))
                formula, value = cell.find(f"{_SPACE}f"), cell.find(f"{_SPACE}v")
                if formula is not None:
                    cells[place] = "=" + (formula.text or "")
                    self.formulas += 1
                    shown = (value.text if value is not None else None) or "0"
                    self.stored[sheet.attrib["name"], *place] = (
                        math.inf
                        if cell.attrib.get("t") == "e"
                        else float(shown)  # an error is no number near any other
                    )
                elif value is not None:
                    text = value.text or ""
                    cells[place] = ("text", texts[int(text)]) if cell.attrib.get("t") == "s" else float(text)
            self.sheets[sheet.attrib["name"]] = cells
        self._done: dict[tuple[str, int, int], float] = {}

    def text(self, sheet: str, column: int, row: int) -> str | None:
        found = self.sheets[sheet].get((column, row))
        return found[1] if isinstance(found, tuple) else None

    def shown(self, sheet: str, column: int, row: int) -> float | None:
        """The number a reader sees without computing: stored beside a formula, or typed; None where there is none."""
        if (sheet, column, row) in self.stored:
            return self.stored[sheet, column, row]
        cell = self.sheets[sheet].get((column, row))
        return cell if isinstance(cell, float) else None

    def value(self, sheet: str, column: int, row: int) -> float:
        """Empty cells count as 0, as in a sum."""
        key = (sheet, column, row)
        if key not in self._done:
            cell = self.sheets[sheet].get((column, row), 0.0)
            self._done[key] = self._computed(sheet, cell[1:]) if isinstance(cell, str) else float(cell)
        return self._done[key]

    def _computed(self, sheet: str, formula: str) -> float:
        def reference(found: re.Match[str]) -> str:
            where = (found["sheet"] or sheet).strip("'")
            first, last = _number(found["column"]), _number(found["to_column"] or found["column"])
            top, bottom = int(found["row"]), int(found["to_row"] or found["row"])
            if found["to_column"] is None:
                return f"cell({where!r},{first},{top})"
            return f"span({where!r},{first},{last},{top},{bottom})"

        python = _TOKEN.sub(reference, formula).replace("^", "**").replace("IF(", "choose(")
        python = re.sub(r"(?<![=<>])=(?!=)", "==", python)
        names = {
            "cell": self.value,
            "span": lambda where, first, last, top, bottom: [
                self.value(where, column, row) for row in range(top, bottom + 1) for column in range(first, last + 1)
            ],
            "SUM": lambda *values: math.fsum(x for v in values for x in (v if isinstance(v, list) else [v])),
            "SUMPRODUCT": lambda *spans: math.fsum(math.prod(row) for row in zip(*spans, strict=True)),
            "MAX": max,
            "MIN": min,
            "ROUNDUP": lambda x, _digits: float(math.ceil(abs(x))) * (1 if x >= 0 else -1),
            "choose": lambda condition, yes, no: yes if condition else no,
        }
        return float(eval(python, {"__builtins__": {}}, names))
