"""What every sheet of a workbook stands on: the sheet of inputs, and one sheet by month for every kind of node or API."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from service.tco.export_table import plain_text
from service.wire.tco_answers import ComparisonOut
from solver.units import HOURS_PER_MONTH

FIRST_ROW = 3
"""Of months on a part's sheet, counted from 0: row of the start."""
LONGEST_FORMULA = 8000
"""Spreadsheets take 8,192 signs; a month in which more batches are paid for than that stands as a number."""
HOURS = f"{HOURS_PER_MONTH:g}"
OUTLAYS = ("purchase", "network", "storage", "spares")
CAPITAL = (*OUTLAYS, "buyout", "foregone_sale", "residual")
"""No expenses of the month they are paid in."""
TAXED = (
    "rent", "unexpired_commitment", "unused_commitment", "egress", "rented_storage", "lease", "buyout", *OUTLAYS,
    "decommissioning", "power", "cooling", "demand_charge", "space", "maintenance", "support", "software", "api_input",
    "api_cached", "api_output",
)  # fmt: skip


class Inputs:
    """The sheet of inputs: those that are the same everywhere once, the others by part."""

    def __init__(self, comparison: ComparisonOut) -> None:
        self.rows: list[tuple[str, str, float, float, float, bool]] = []
        self._where: dict[tuple[int, int, str], int] = {}
        parts = [
            (a, p, f"{alternative.name} ({used.name})" if used.name != alternative.name else alternative.name, used)
            for a, alternative in enumerate(comparison.alternatives)
            for p, used in enumerate(alternative.computed_from)
        ]
        values: dict[str, set[float]] = {}
        for _, _, _, used in parts:
            for one in used.inputs:
                values.setdefault(one.input, set()).add(one.typical)
        shared: dict[str, int] = {}
        for a, p, owner, used in parts:
            for one in used.inputs:
                same = len(values[one.input]) == 1
                if same and one.input in shared:
                    self._where[a, p, one.input] = shared[one.input]
                    continue
                row = len(self.rows)
                self.rows.append(("all" if same else owner, one.input, one.typical, one.low, one.high, one.stated))
                self._where[a, p, one.input] = row
                if same:
                    shared[one.input] = row

    def cell(self, alternative: int, part: int, name: str) -> str | None:
        """Where an input of a part stands, as an absolute reference; None where it does not enter."""
        row = self._where.get((alternative, part, name))
        return None if row is None else f"inputs!$C${row + 2}"

    def write(self, sheet: Any, formats: dict[str, Any]) -> None:
        for column, title in enumerate(("of", "input", "value (change it)", "low", "high", "from")):
            sheet.write_string(0, column, title, formats["bold"])
        for number, (owner, name, typical, low, high, stated) in enumerate(self.rows, start=1):
            sheet.write_string(number, 0, plain_text(owner))
            sheet.write_string(number, 1, name)
            sheet.write_number(number, 2, typical, formats["input"])
            sheet.write_number(number, 3, low)
            sheet.write_number(number, 4, high)
            sheet.write_string(number, 5, "request, plan or offer" if stated else "catalog")
        sheet.set_column(0, 1, 40)
        sheet.set_column(2, 5, 18)


class MonthSheet(ABC):
    """One kind of node of an alternative, or an API, by month: row of the start, then one of each month's end."""

    market: str
    """Whose prices move with the months: rent, api or hardware."""

    def __init__(self, comparison: ComparisonOut, alternative: int, part: int, inputs: Inputs) -> None:
        self.comparison, self.used = comparison, comparison.alternatives[alternative].computed_from[part]
        self.months = len(comparison.alternatives[alternative].usd_by_month) - 1
        self.name = f"calc {alternative + 1}.{part + 1}"
        self.title = f"{comparison.alternatives[alternative].name}: {self.used.name}"
        found = comparison.alternatives[alternative].depreciation
        self.accelerated = found is not None and found.method != "straight_line"
        self.input: Callable[[str], str | None] = lambda name: inputs.cell(alternative, part, name)
        whole = comparison.alternatives[alternative]
        flows = {line.line: line.usd_by_month for line in whole.lines}
        if len(whole.computed_from) > 1:
            flows = self.used.usd_by_line
        self.known = {line: [float(usd) for usd in usd_by_month] for line, usd_by_month in flows.items()}
        self.columns = [
            "month",
            "discount_factor",
            "nodes",
            "started",
            "price_factor",
            "inflation_factor",
            *self.helping(),
        ]
        self.lines = self.line_names()
        self.columns += [*self.lines, "total"]

    @property
    def total_formula(self) -> str:
        return f"SUM({self.span('total', 0, self.months, sheet=True)})"

    @property
    def npv_formula(self) -> str:
        total, factors = (self.span(name, 0, self.months, sheet=True) for name in ("total", "discount_factor"))
        return f"SUMPRODUCT({total},{factors})"

    def cumulative_formula(self, month: int) -> str:
        return f"SUM({self.span('total', 0, month, sheet=True)})"

    def write(self, sheet: Any, formats: dict[str, Any]) -> None:
        sheet.write_string(0, 0, plain_text(self.title), formats["bold"])
        for column, name in enumerate(self.columns):
            sheet.write_string(FIRST_ROW - 1, column, name, formats["bold"])
        for month in range(self.months + 1):
            row = FIRST_ROW + month
            sheet.write_number(row, 0, month)
            rate = self.of("discount_fraction_per_year")
            known_factor = (1.0 + self.typical("discount_fraction_per_year")) ** (-month / 12)
            sheet.write_formula(row, 1, f"=(1+{rate})^(-A{row + 1}/12)", None, known_factor)
            nodes, started = self.used.nodes_by_month, self.used.started_by_month
            sheet.write_number(row, 2, nodes[month - 1] if nodes and month else 0.0, formats["input"])
            sheet.write_number(row, 3, started[month] if month < len(started) else 0.0, formats["input"])
            for column, name in enumerate(self.columns[4:-1], start=4):
                formula = self._formula(name, month)
                known = self.known.get(name)
                too_long = formula is not None and len(formula) > LONGEST_FORMULA
                if too_long or (formula is None and known and known[month]):
                    sheet.write_number(row, column, known[month] if known else 0.0, formats["money"])
                elif formula is not None:
                    stored = known[month] if known else self._factor(name, month)
                    sheet.write_formula(row, column, f"={formula}", formats["money"] if known else None, stored)
            first, last = self.at(self.lines[0], month), self.at(self.lines[-1], month)
            known_total = sum(flows[month] for flows in self.known.values())
            sheet.write_formula(row, len(self.columns) - 1, f"=SUM({first}:{last})", formats["money"], known_total)
        sheet.freeze_panes(FIRST_ROW, 1)
        sheet.set_column(0, len(self.columns), 14)

    @abstractmethod
    def helping(self) -> list[str]:
        """Columns that lines are computed from."""

    @abstractmethod
    def line_names(self) -> list[str]: ...

    @abstractmethod
    def line(self, name: str, month: int) -> str | None:
        """The formula of a line or a helping column in one month; None where it has none."""

    def written_off(self, month: int) -> str | None:
        """What is deducted beside expenses: nothing, unless machines are one's own."""
        del month
        return None

    def working(self) -> str:
        """Share of all hours in which the nodes work."""
        busy = self.used.busy_fraction
        return self.of("utilisation_fraction") + ("" if busy is None else f"*{busy!r}")

    def typical(self, name: str) -> float:
        return next((one.typical for one in self.used.inputs if one.input == name), 0.0)

    def _factor(self, name: str, month: int) -> float:
        """What a reader that does not compute formulas shows of the factors; of other helping columns, nothing."""
        rates = {
            "price_factor": f"{self.market}_change_fraction_per_year",
            "inflation_factor": "inflation_fraction_per_year",
        }
        return (1.0 + self.typical(rates[name])) ** (month / 12) if name in rates else 0.0

    def of(self, name: str) -> str:
        found = self.input(name)
        return "0" if found is None else found

    def at(self, column: str, month: int, sheet: bool = False) -> str:
        return f"{self._sheet(sheet)}{_letters(self.columns.index(column))}{FIRST_ROW + month + 1}"

    def span(self, column: str, first: int, last: int, sheet: bool = False) -> str:
        letter = _letters(self.columns.index(column))
        return f"{self._sheet(sheet)}{letter}{FIRST_ROW + first + 1}:{letter}{FIRST_ROW + last + 1}"

    def _sheet(self, wanted: bool) -> str:
        return f"'{self.name}'!" if wanted else ""

    def _formula(self, name: str, month: int) -> str | None:
        if name == "price_factor":
            return f"(1+{self.of(f'{self.market}_change_fraction_per_year')})^(A{FIRST_ROW + month + 1}/12)"
        if name == "inflation_factor":
            return f"(1+{self.of('inflation_fraction_per_year')})^(A{FIRST_ROW + month + 1}/12)"
        if name == "tax":
            taxed = [self.at(line, month) for line in self.lines if line in TAXED]
            return f"{self.of('tax_fraction')}*({'+'.join(taxed)})"
        if name == "tax_shield":
            return self._shield(month)
        return self.line(name, month)

    def _shield(self, month: int) -> str | None:
        """Income tax saved: on expenses when they are paid, on machines as they are written off."""
        if self.input("income_tax_fraction") is None:
            return None
        expenses = [self.at(line, month) for line in self.lines if line not in (*CAPITAL, "tax_shield")]
        charged = self.written_off(month)
        deducted = expenses if charged is None else [*expenses, charged]
        return f"-{self.of('income_tax_fraction')}*({'+'.join(deducted)})"


def added(terms: Iterable[str]) -> str | None:
    found = list(terms)
    return "+".join(found) if found else None


def _letters(column: int) -> str:
    """
    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    return (chr(ord("A") + column // 26 - 1) if column >= 26 else "") + chr(ord("A") + column % 26)
