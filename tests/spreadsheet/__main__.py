"""Computes the workbooks of many comparisons in LibreOffice Calc and compares every cell with a formula to the cent.

    python -m tests.spreadsheet [NUMBER ...]     cases of tests/service/test_tco_recomputed.py; all of them unless numbered

Nothing is stored beside the formulas that Calc is given, so that every number is its own. Lines, totals, cumulative costs and net
present values are compared with the service's answer, every cell with the evaluator of tests/service/sheet_formulas.py too. Then a
controller's change: an input is typed anew, and Calc must say what the service says of a request with that input.

Ends with 1 where a cell differs, with 2 where there is no LibreOffice: nothing was compared then.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from tests.bench.cost_service import cost_service
from tests.service.sheet_formulas import Workbook
from tests.service.test_tco_recomputed import CHANGES, URL, body_of
from tests.spreadsheet.calc import SOFFICE, computed, retyped

CENT = 0.005
RELATIVE = 1e-9
"""Between two computations of one formula, some of which hold no dollars, such as discount factors."""
FIRST_ROW = 4
MOST_ROWS, MOST_COLUMNS = 400, 70
MOST_SHOWN = 40
DEARER = 0.18
"""USD per kWh that the controller types."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=int, help="cases, counted from 0")
    numbers = parser.parse_args().numbers or list(range(len(CHANGES)))
    if SOFFICE is None:
        print("NOT COMPARED: no LibreOffice (apt-get install libreoffice-calc, or name its soffice in SOFFICE)")
        return 2
    with cost_service() as (client, _), tempfile.TemporaryDirectory() as folder:
        answers = {f"case {number}": _asked(client, CHANGES[number]) for number in numbers}
        workbooks = {name: client.get(a["link"], params={"format": "xlsx"}).content for name, a in answers.items()}
        changed = _asked(client, {"electricity": {"usd_per_kwh": str(DEARER)}})
        same = client.get(_asked(client, {})["link"], params={"format": "xlsx"}).content
        typed = retyped(same, "inputs", Workbook(same), "electricity_usd_per_kwh", DEARER)
        found = computed({**workbooks, "retyped": typed}, Path(folder))
    compared = [
        (f"{name}, {where}", *pair)
        for name, answer in answers.items()
        for where, *pair in (
            *_figures(answer, Workbook(found[name])),
            *_formulas(Workbook(workbooks[name]), Workbook(found[name])),
        )
    ]
    compared += [(f"retyped, {where}", *pair) for where, *pair in _figures(changed, Workbook(found["retyped"]))]
    gaps = [math.inf if shown is None else abs(shown - expected) for _, expected, shown, _ in compared]
    wrong = [
        f"{where}: {shown} instead of {expected}"
        for (where, expected, shown, allowed), gap in zip(compared, gaps, strict=True)
        if not gap <= allowed
    ]
    print(
        f"{len(found)} workbooks, {len(compared)} comparisons of computed cells, {len(wrong)} differ; "
        f"the largest difference is {max(gaps, default=0.0):.2g}"
    )
    print("\n".join(wrong[:MOST_SHOWN]))
    return 1 if wrong or not compared else 0


def _asked(client: TestClient, change: dict[str, Any]) -> dict[str, Any]:
    made = client.post(URL, json=body_of(change))
    assert made.status_code == 201, made.text
    answer: dict[str, Any] = made.json()
    return answer


def _figures(answer: dict[str, Any], book: Workbook) -> Iterator[tuple[str, float, float | None, float]]:
    """Where a figure of the answer stands in the workbook, what it is, what Calc shows there, and how far they may be apart."""
    labels = {book.text("summary", 1, row): row for row in range(1, MOST_ROWS)}
    for position, alternative in enumerate(answer["alternatives"], start=1):
        name, sheet = alternative["name"], f"calc {position}.1"
        titles = {book.text(sheet, column, 3): column for column in range(1, MOST_COLUMNS)}
        flows = {line["line"]: line["usd_by_month"] for line in alternative["lines"]}
        flows["total"] = alternative["usd_by_month"]
        for line, usd_by_month in flows.items():
            for month, usd in enumerate(usd_by_month):
                shown = book.shown(sheet, titles[line], FIRST_ROW + month)
                yield f"{line} of {name} in month {month}", float(usd), 0.0 if shown is None else shown, CENT
        so_far = 0.0
        for month, usd in enumerate(alternative["usd_by_month"]):
            so_far += float(usd)
            yield f"cumulative {name} in month {month}", so_far, book.shown("cumulative", position + 1, 2 + month), CENT
        for label in ("total_usd", "npv_usd"):
            shown = book.shown("summary", position + 1, labels[label])
            yield f"{label} of {name}", float(alternative[label]), shown, CENT


def _formulas(ours: Workbook, theirs: Workbook) -> Iterator[tuple[str, float, float | None, float]]:
    """Every cell with a formula: what the evaluator of the tests makes of it, and what Calc does."""
    for sheet, column, row in ours.stored:
        expected = ours.value(sheet, column, row)
        yield f"{sheet}!{column},{row}", expected, theirs.shown(sheet, column, row), RELATIVE * max(1.0, abs(expected))


if __name__ == "__main__":
    sys.exit(main())
