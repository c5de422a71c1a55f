"""Where commands print: a terminal gets tables that fit it, a pipe gets whole lines in plain columns; NO_COLOR is honoured."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 400
"""So wide that nothing folds: whoever reads a pipe splits lines, and no word of them may be cut."""
BETWEEN_COLUMNS = 3
EDGES = 4


def standard_output() -> Console:
    """Standard output as a console: as wide as the terminal, or wide enough for every line of a pipe."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=PIPE_WIDTH)


def print_rows(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """The first column is what people copy, so it is never cut or folded; further columns are shown as far as they fit.

    Into a pipe: columns separated by tabs, the headings in the first line.
    """
    if not console.is_terminal:
        for row in (headings, *rows):
            sys.stdout.write("\t".join(row) + "\n")
        return
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    shown = 1
    while shown < len(widths) and sum(widths[: shown + 1]) + BETWEEN_COLUMNS * shown + EDGES <= console.width:
        shown += 1
    table = Table(title=title, title_justify="left")
    for heading in headings[:shown]:
        table.add_column(heading, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row[:shown]))
    if widths[0] + EDGES <= console.width:
        console.print(table)
    else:
        console.print(title)
        for row in rows:
            console.print(Text(row[0]), soft_wrap=True)
    if shown < len(headings):
        hidden = ", ".join(headings[shown:])
        console.print(f"not shown for want of room: {hidden}; a wider terminal, a pipe and --json have them")


def print_json(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
