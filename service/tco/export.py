"""The same comparison as CSV or as an XLSX workbook."""

import csv
import io
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from service.tco.export_table import (
    Cell,
    default_rows,
    draw_rows,
    face_rows,
    note_rows,
    plain_text,
    sensitivity_rows,
    summary_rows,
    tidy_rows,
)
from service.tco.workbook import month_sheets
from service.tco.workbook_cells import Inputs, MonthSheet
from service.wire.quantities import usd_text
from service.wire.tco_answers import ComparisonOut

if TYPE_CHECKING:
    import xlsxwriter

CSV_MEDIA_TYPE = "text/csv; charset=utf-8"
XLSX_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_BARS = 10


def as_csv(comparison: ComparisonOut) -> str:
    """Tidy: one row per alternative, line and month; money with six decimal places, as on the wire."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    for row in tidy_rows(comparison):
        writer.writerow([_text(cell) for cell in row])
    return text.getvalue()


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return plain_text(cell)
    return usd_text(cell) if isinstance(cell, Decimal) else str(cell)


def as_xlsx(comparison: ComparisonOut) -> bytes:
    """Inputs that may be changed, every cost as a formula of them by month, and what was drawn from it all.

    What needs the model itself (draws, swings, break-even) stays as it was answered, and says so.
    """
    import xlsxwriter  # only a request for a workbook pays for it

    file = io.BytesIO()
    book = xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    formats = {
        "money": book.add_format({"num_format": "#,##0.00"}),
        "bold": book.add_format({"bold": True}),
        "input": book.add_format({"bg_color": "#FFF2CC"}),
    }
    summary = book.add_worksheet("summary")
    inputs = Inputs(comparison)
    inputs.write(book.add_worksheet("inputs"), formats)
    calculated = month_sheets(comparison, inputs)
    cumulative = book.add_worksheet("cumulative")
    for sheets in calculated:
        for sheet in sheets:
            sheet.write(book.add_worksheet(sheet.name), formats)
    _write_summary(book, summary, comparison, calculated, formats)
    _write_cumulative(book, cumulative, comparison, calculated, formats)
    draws = book.add_worksheet("draws")
    _write(draws, draw_rows(comparison), formats)
    _chart_draws(book, draws, comparison)
    sensitivity = book.add_worksheet("sensitivity")
    _write(sensitivity, sensitivity_rows(comparison), formats)
    _chart_tornado(book, sensitivity, comparison)
    for name, rows in (("notes", note_rows(comparison)), ("sources", default_rows(comparison))):
        _write(book.add_worksheet(name), rows, formats)
    book.close()
    return file.getvalue()


def _write(sheet: Any, rows: Iterable[list[Cell]], formats: dict[str, Any], first: int = 0, header: bool = True) -> int:
    """Rows from ``first`` on; returns the row after the last."""
    number = first
    for number, row in enumerate(rows, start=first):
        for column, cell in enumerate(row):
            if isinstance(cell, Decimal):
                sheet.write_number(number, column, float(cell), formats["money"])
            elif isinstance(cell, float | int):
                sheet.write_number(number, column, cell)
            elif cell is not None:
                sheet.write_string(
                    number, column, plain_text(cell), formats["bold"] if header and number == first else None
                )
    sheet.set_column(0, 0, 36)
    return number + 1


def _write_summary(
    book: "xlsxwriter.Workbook",
    sheet: Any,
    comparison: ComparisonOut,
    calculated: list[list[MonthSheet]],
    formats: dict[str, Any],
) -> None:
    row = _write(sheet, face_rows(comparison), formats, header=False) + 1
    sheet.write_string(row, 0, "alternative", formats["bold"])
    for column, alternative in enumerate(comparison.alternatives, start=1):
        sheet.write_string(row, column, plain_text(alternative.name), formats["bold"])
    for offset, label in enumerate(("total_usd", "npv_usd"), start=1):
        sheet.write_string(row + offset, 0, label)
    for column, (alternative, parts) in enumerate(zip(comparison.alternatives, calculated, strict=True), start=1):
        totals = [part.total_formula for part in parts], float(alternative.total_usd)
        present_values = [part.npv_formula for part in parts], float(alternative.npv_usd)
        for offset, (terms, known) in enumerate((totals, present_values), start=1):
            sheet.write_formula(row + offset, column, "=" + "+".join(terms), formats["money"], known)
    _write(sheet, summary_rows(comparison), formats, first=row + 4, header=False)
    chart = book.add_chart({"type": "line"})
    months = len(comparison.alternatives[0].usd_by_month)
    for column, alternative in enumerate(comparison.alternatives, start=1):
        chart.add_series(
            {
                "name": alternative.name,
                "categories": ["cumulative", 1, 0, months, 0],
                "values": ["cumulative", 1, column, months, column],
            }
        )
    chart.set_title({"name": "Cumulative cost, USD, undiscounted"})
    chart.set_x_axis({"name": "months"})
    sheet.insert_chart(row, len(comparison.alternatives) + 2, chart, {"x_scale": 1.6, "y_scale": 1.4})


def _write_cumulative(
    book: "xlsxwriter.Workbook",
    sheet: Any,
    comparison: ComparisonOut,
    calculated: list[list[MonthSheet]],
    formats: dict[str, Any],
) -> None:
    del book
    sheet.write_string(0, 0, "month", formats["bold"])
    for column, alternative in enumerate(comparison.alternatives, start=1):
        sheet.write_string(0, column, plain_text(alternative.name), formats["bold"])
    running = [0.0] * len(comparison.alternatives)
    for month in range(len(comparison.alternatives[0].usd_by_month)):
        sheet.write_number(month + 1, 0, month)
        for column, (alternative, parts) in enumerate(zip(comparison.alternatives, calculated, strict=True)):
            running[column] += float(alternative.usd_by_month[month])
            formula = "=" + "+".join(part.cumulative_formula(month) for part in parts)
            sheet.write_formula(month + 1, column + 1, formula, formats["money"], running[column])


def _chart_draws(book: "xlsxwriter.Workbook", sheet: Any, comparison: ComparisonOut) -> None:
    rows = sum(alternative.uncertainty is not None for alternative in comparison.alternatives)
    if not rows:
        return
    chart = book.add_chart({"type": "bar"})
    for column, name in ((1, "p10"), (3, "median"), (5, "p90")):
        chart.add_series(
            {"name": name, "categories": ["draws", 1, 0, rows, 0], "values": ["draws", 1, column, rows, column]}
        )
    chart.set_title({"name": "Net present value over the draws, USD"})
    sheet.insert_chart(rows + 3, 0, chart)


def _chart_tornado(book: "xlsxwriter.Workbook", sheet: Any, comparison: ComparisonOut) -> None:
    """The largest swings of the cheapest alternative."""
    first = 1
    for alternative in comparison.alternatives:
        if alternative.name == comparison.cheapest.name:
            break
        first += len(alternative.sensitivity)
    last = first + min(MOST_BARS, len(alternative.sensitivity)) - 1
    if last < first:
        return
    chart = book.add_chart({"type": "bar", "subtype": "clustered"})
    for column, name in ((4, "at low"), (5, "at high")):
        chart.add_series(
            {
                "name": name,
                "categories": ["sensitivity", first, 1, last, 1],
                "values": ["sensitivity", first, column, last, column],
            }
        )
    chart.set_title({"name": f"Net present value of {alternative.name} with one input at either end, USD"})
    chart.set_y_axis({"reverse": True})
    sheet.insert_chart(1, 8, chart, {"x_scale": 1.6, "y_scale": 1.6})
