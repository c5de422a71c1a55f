"""The same comparison as CSV or as an XLSX workbook."""

import csv
import io
from collections.abc import Iterable
from decimal import Decimal

from service.tco.export_table import Cell, cost_rows, default_rows, sensitivity_rows, summary_rows
from service.wire.quantities import usd_text
from service.wire.tco_answers import ComparisonOut

CSV_MEDIA_TYPE = "text/csv; charset=utf-8"
XLSX_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def as_csv(comparison: ComparisonOut) -> str:
    """Cost lines by month; money with six decimal places, as on the wire."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    for row in cost_rows(comparison):
        writer.writerow([_text(cell) for cell in row])
    return text.getvalue()


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return usd_text(cell) if isinstance(cell, Decimal) else str(cell)


def as_xlsx(comparison: ComparisonOut) -> bytes:
    """Four sheets: summary, costs, sensitivity, sources. Money as numbers, shown in cents."""
    import xlsxwriter  # only a request for a workbook pays for it

    file = io.BytesIO()
    workbook = xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    money, bold = workbook.add_format({"num_format": "#,##0.00"}), workbook.add_format({"bold": True})
    sheets: tuple[tuple[str, Iterable[list[Cell]]], ...] = (
        ("summary", summary_rows(comparison)),
        ("costs", cost_rows(comparison)),
        ("sensitivity", sensitivity_rows(comparison)),
        ("sources", default_rows(comparison)),
    )
    for name, rows in sheets:
        sheet = workbook.add_worksheet(name)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if isinstance(cell, Decimal):
                    sheet.write_number(number, column, float(cell), money)
                elif isinstance(cell, float | int):
                    sheet.write_number(number, column, cell)
                elif cell is not None:
                    sheet.write_string(number, column, cell, bold if number == 0 else None)
        sheet.freeze_panes(1, 2 if name == "costs" else 1)
        sheet.set_column(0, 0, 36)
    workbook.close()
    return file.getvalue()
