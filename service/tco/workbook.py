"""The cost model as spreadsheet formulas: inputs that may be changed, and every line of every month computed from them.

Written apart from ``solver/tco``: a workbook that agrees with the answer is a second computation of it. Node counts by month are
inputs too: a spreadsheet does not plan.
"""

from collections.abc import Callable, Iterable
from typing import Any

from service.tco.export_table import plain_text
from service.wire.tco_answers import ComparisonOut
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

FIRST_ROW = 3
"""Of months on a part's sheet, counted from 0: row of the start."""
LONGEST_FORMULA = 8000
"""Spreadsheets take 8,192 signs; a month in which more batches are paid for than that stands as a number."""
HOURS = f"{HOURS_PER_MONTH:g}"
OUTLAYS = ("purchase", "network", "storage", "spares")
TAXED = (
    "rent", "unexpired_commitment", "egress", "rented_storage", *OUTLAYS, "decommissioning", "power", "cooling",
    "demand_charge", "space", "maintenance", "support", "software", "api_input", "api_cached", "api_output",
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


class PartSheet:
    """One kind of node of an alternative, or an API, by month: row of the start, then one of each month's end."""

    def __init__(self, comparison: ComparisonOut, alternative: int, part: int, inputs: Inputs) -> None:
        self.comparison, self.used = comparison, comparison.alternatives[alternative].computed_from[part]
        self.months = len(comparison.alternatives[alternative].usd_by_month) - 1
        self.name = f"calc {alternative + 1}.{part + 1}"
        self.title = f"{comparison.alternatives[alternative].name}: {self.used.name}"
        found = comparison.alternatives[alternative].depreciation
        self._accelerated = found is not None and found.method != "straight_line"
        self._input: Callable[[str], str | None] = lambda name: inputs.cell(alternative, part, name)
        whole = comparison.alternatives[alternative]
        flows = {line.line: line.usd_by_month for line in whole.lines}
        if len(whole.computed_from) > 1:
            flows = self.used.usd_by_line
        self._known = {line: [float(usd) for usd in usd_by_month] for line, usd_by_month in flows.items()}
        self.columns = [
            "month",
            "discount_factor",
            "nodes",
            "started",
            "price_factor",
            "inflation_factor",
            *self._help(),
        ]
        self.lines = self._line_names()
        self.columns += [*self.lines, "total"]

    @property
    def total_formula(self) -> str:
        return f"SUM({self._span('total', 0, self.months, sheet=True)})"

    @property
    def npv_formula(self) -> str:
        total, factors = (self._span(name, 0, self.months, sheet=True) for name in ("total", "discount_factor"))
        return f"SUMPRODUCT({total},{factors})"

    def cumulative_formula(self, month: int) -> str:
        return f"SUM({self._span('total', 0, month, sheet=True)})"

    def write(self, sheet: Any, formats: dict[str, Any]) -> None:
        sheet.write_string(0, 0, plain_text(self.title), formats["bold"])
        for column, name in enumerate(self.columns):
            sheet.write_string(FIRST_ROW - 1, column, name, formats["bold"])
        for month in range(self.months + 1):
            row = FIRST_ROW + month
            sheet.write_number(row, 0, month)
            rate = self._of("discount_fraction_per_year")
            known_factor = (1.0 + self._typical("discount_fraction_per_year")) ** (-month / 12)
            sheet.write_formula(row, 1, f"=(1+{rate})^(-A{row + 1}/12)", None, known_factor)
            nodes, started = self.used.nodes_by_month, self.used.started_by_month
            sheet.write_number(row, 2, nodes[month - 1] if nodes and month else 0.0, formats["input"])
            sheet.write_number(row, 3, started[month] if month < len(started) else 0.0, formats["input"])
            for column, name in enumerate(self.columns[4:-1], start=4):
                formula = self._formula(name, month)
                known = self._known.get(name)
                too_long = formula is not None and len(formula) > LONGEST_FORMULA
                if too_long or (formula is None and known and known[month]):
                    sheet.write_number(row, column, known[month] if known else 0.0, formats["money"])
                elif formula is not None:
                    stored = known[month] if known else self._factor(name, month)
                    sheet.write_formula(row, column, f"={formula}", formats["money"] if known else None, stored)
            first, last = self._at(self.lines[0], month), self._at(self.lines[-1], month)
            known_total = sum(flows[month] for flows in self._known.values())
            sheet.write_formula(row, len(self.columns) - 1, f"=SUM({first}:{last})", formats["money"], known_total)
        sheet.freeze_panes(FIRST_ROW, 1)
        sheet.set_column(0, len(self.columns), 14)

    def _typical(self, name: str) -> float:
        return next((one.typical for one in self.used.inputs if one.input == name), 0.0)

    def _factor(self, name: str, month: int) -> float:
        """What a reader that does not compute formulas shows of the factors; of other helping columns, nothing."""
        market = {"rent": "rent", "purchase": "hardware", "api": "api"}[self.used.kind]
        rates = {
            "price_factor": f"{market}_change_fraction_per_year",
            "inflation_factor": "inflation_fraction_per_year",
        }
        return (1.0 + self._typical(rates[name])) ** (month / 12) if name in rates else 0.0

    def _help(self) -> list[str]:
        """Columns that lines are computed from."""
        if self.used.kind == "purchase":
            return [
                *(f"{line}_outlay" for line in OUTLAYS),
                "installed",
                "resold",
                "resale",
                "used_life",
                "unused_life",
                "written_off",
                "loan_balance",
            ]
        return ["contract_price"] if self.used.term_months else []

    def _line_names(self) -> list[str]:
        if self.used.kind == "api":
            return ["api_input", "api_cached", "api_output", "tax", "tax_shield"]
        if self.used.kind == "rent":
            return ["rent", "unexpired_commitment", "egress", "rented_storage", "tax", "tax_shield"]
        return [
            *OUTLAYS, "finance", "power", "cooling", "demand_charge", "space", "maintenance", "support", "staff", "software",
            "insurance", "decommissioning", "tax", "tax_shield", "residual",
        ]  # fmt: skip

    def _of(self, name: str) -> str:
        found = self._input(name)
        return "0" if found is None else found

    def _at(self, column: str, month: int, sheet: bool = False) -> str:
        return f"{self._sheet(sheet)}{_letters(self.columns.index(column))}{FIRST_ROW + month + 1}"

    def _span(self, column: str, first: int, last: int, sheet: bool = False) -> str:
        letter = _letters(self.columns.index(column))
        return f"{self._sheet(sheet)}{letter}{FIRST_ROW + first + 1}:{letter}{FIRST_ROW + last + 1}"

    def _sheet(self, wanted: bool) -> str:
        return f"'{self.name}'!" if wanted else ""

    def _formula(self, name: str, month: int) -> str | None:
        if name == "price_factor":
            market = {"rent": "rent", "purchase": "hardware", "api": "api"}[self.used.kind]
            return f"(1+{self._of(f'{market}_change_fraction_per_year')})^(A{FIRST_ROW + month + 1}/12)"
        if name == "inflation_factor":
            return f"(1+{self._of('inflation_fraction_per_year')})^(A{FIRST_ROW + month + 1}/12)"
        if name == "tax":
            taxed = [self._at(line, month) for line in self.lines if line in TAXED]
            return f"{self._of('tax_fraction')}*({'+'.join(taxed)})"
        if name == "tax_shield":
            return self._shield(month)
        formulas = {"rent": self._rented, "purchase": self._bought, "api": self._api}[self.used.kind]
        return formulas(name, month)

    def _shield(self, month: int) -> str | None:
        """Income tax saved: on expenses when they are paid, on machines as they are written off."""
        if self._input("income_tax_fraction") is None:
            return None
        if self.used.kind == "purchase" and self._accelerated:
            return None  # stands as it was answered
        expenses = [self._at(line, month) for line in self.lines if line not in (*OUTLAYS, "residual", "tax_shield")]
        if self.used.kind == "purchase":
            expenses.append(self._at("written_off", month))
        return f"-{self._of('income_tax_fraction')}*({'+'.join(expenses)})"

    # rent

    def _rented(self, name: str, month: int) -> str | None:
        term, upfront = self.used.term_months, self.used.upfront_fraction or 0.0
        hour = self._of("rent_usd_per_node_hour")
        if self.used.interruptible:
            lost = f"{self._of('spot_interruptions_per_node_month')}*{self._of('spot_lost_hours_per_interruption')}"
            hour = f"{hour}/(1-{lost}/{HOURS})"
        if name == "egress":
            sent = f"{self._of('egress_gb_per_month')}*{self._of('egress_usd_per_gb')}"
            return f"{sent}*{self._grown(month)}" if month else None
        if name == "rented_storage":
            return self._of("rented_storage_usd_per_month") if month else None
        if name == "contract_price":
            return f"{HOURS}*{hour}*{self._at('price_factor', month)}"
        if term is None:
            if name != "rent" or month == 0:
                return None
            return f"{self._node_hours(month)}*{hour}*{self._at('price_factor', month - 1)}"
        if name == "rent":
            terms = [f"{upfront!r}*{term}*{self._at('started', month)}*{self._at('contract_price', month)}"]
            if month:
                first = max(0, month - term)
                spans = (self._span(column, first, month - 1) for column in ("started", "contract_price"))
                terms.append(f"{1.0 - upfront!r}*SUMPRODUCT({','.join(spans)})")
            return "+".join(terms)
        if month < self.months:
            return None
        owed = [
            f"{self._at('started', s)}*{self._at('contract_price', s)}*{s + term - self.months}"
            for s in range(self.months)
            if s + term > self.months
        ]
        return f"{1.0 - upfront!r}*({'+'.join(owed)})" if owed else None

    def _node_hours(self, month: int) -> str:
        nodes = self._at("nodes", month)
        profile = self.comparison.request.hourly_profile
        if not self.used.follows_demand or profile is None:
            return f"{nodes}*{HOURS}"
        hours = "+".join(f"ROUNDUP({nodes}*{share!r}-0.000000001,0)" for share in profile if share > 0)
        return f"{HOURS}/{len(profile)}*({hours or '0'})"

    # purchase

    def _ordered(self, started: int) -> int:
        return max(0, started - (self.used.lead_time_months or 0))

    def _each(self, line: str, started: int) -> str:
        """What one node that starts in a month costs on a line, at the price of the month it is ordered in."""
        price = f"{self._of('purchase_usd_per_node')}*{self._at('price_factor', self._ordered(started))}"
        return {
            "purchase": price,
            "network": self._of("network_usd_per_node"),
            "storage": self._of("storage_usd_per_node"),
            "spares": f"{price}*{self._of('spare_fraction')}",
        }[line]

    def _bought(self, name: str, month: int) -> str | None:
        life, starts = self.used.life_months or 1, self.used.started_by_month
        if name.endswith("_outlay"):
            line = name.removesuffix("_outlay")
            return _sum(
                f"{self._at('started', s)}*{self._each(line, s)}"
                for s in range(self.months)
                if self._ordered(s) == month and (starts[s] or s == month)
            )
        if name in ("installed", "resold"):
            if month == self.months:
                return None
            lines = OUTLAYS if name == "installed" else ("purchase", "spares")
            return f"{self._at('started', month)}*({'+'.join(self._each(line, month) for line in lines)})"
        if name == "resale":
            return None if month == self.months else self._resale(min(life, self.months - month))
        if name in ("used_life", "unused_life"):
            if month == self.months:
                return None
            used = min(life, self.months - month)
            return f"{used if name == 'used_life' else life - used}/{life}"
        if name == "written_off":
            return None if month == 0 or self._accelerated else self._charged(month, life)
        if name == "loan_balance":
            return self._balance(month)
        if name in OUTLAYS or name == "finance":
            return self._paid(name, month)
        if name == "decommissioning":
            first = max(0, month - life)
            if month == 0 or (month < life and month < self.months):
                return None
            out = (
                self._at("started", first) if month < self.months else f"SUM({self._span('started', first, month - 1)})"
            )
            return f"{out}*{self._of('decommissioning_usd_per_node')}*{self._at('inflation_factor', month - 1)}"
        if name == "residual":
            return self._sold(month, life)
        return None if month == 0 else self._bill(name, month, life)

    def _sold(self, month: int, life: int) -> str | None:
        """Machines at the end of their life, and at the horizon whatever is left."""
        first = max(0, month - life)
        if month < self.months:
            return f"-{self._at('resold', first)}*{self._at('resale', first)}" if month >= life else None
        return f"-SUMPRODUCT({self._span('resold', first, month - 1)},{self._span('resale', first, month - 1)})"

    def _charged(self, month: int, life: int) -> str:
        """Straight-line depreciation, and at the horizon what book value differs from what machines fetch."""
        first, last = max(0, month - life), month - 1
        installed, resold = self._span("installed", first, last), self._span("resold", first, last)
        at_end = self._resale(life)
        charge = f"(SUM({installed})-{at_end}*SUM({resold}))/{life}"
        if month < self.months:
            return charge
        used, unused, resale = (self._span(name, first, last) for name in ("used_life", "unused_life", "resale"))
        book = f"SUMPRODUCT({installed},{unused})+{at_end}*SUMPRODUCT({resold},{used})"
        return f"{charge}+{book}-SUMPRODUCT({resold},{resale})"

    def _bill(self, name: str, month: int, life: int) -> str:
        """What owned machines cost in one month: nodes are those of this row, prices those of the month's start."""
        nodes, inflation = self._at("nodes", month), self._at("inflation_factor", month - 1)
        idle, serving = self._of("idle_power_fraction"), self._of("serving_power_fraction")
        kilowatts = f"{nodes}*{self._of('peak_w_per_node')}/1000"
        energy = f"{kilowatts}*({idle}+({serving}-{idle})*{self._of('utilisation_fraction')})*{HOURS}"
        tariff = f"{self._of('electricity_usd_per_kwh')}*{inflation}"
        effectiveness = self._of("power_usage_effectiveness")
        if name in ("maintenance", "support", "insurance"):
            installed = self._span("installed", max(0, month - life), month - 1)
            return f"SUM({installed})*{self._of(f'{name}_fraction_per_year')}/12"
        return {
            "power": f"{energy}*{tariff}",
            "cooling": f"{energy}*({effectiveness}-1)*{tariff}",
            "demand_charge": f"{kilowatts}*{effectiveness}*{self._of('demand_charge_usd_per_kw_month')}*{inflation}",
            "space": f"{kilowatts}*{self._of('colocation_usd_per_kw_month')}*{inflation}",
            "staff": f"{nodes}*{self._of('staff_fte_per_node')}*{self._of('staff_usd_per_fte_year')}/12*{inflation}",
            "software": f"{nodes}*{self.used.devices_per_node}*{self._of('software_usd_per_device_year')}/12*{inflation}",
        }[name]

    def _balance(self, age: int) -> str | None:
        """Share of a loan still owed after so many payments (the month's number is the loan's age here)."""
        term = self.used.finance_months
        if term is None:
            return None
        paid, rate = min(age, term), f"(1+{self._of('finance_fraction_per_year')})^(1/12)"
        level = f"1-{paid}/{term}"
        return f"IF({rate}=1,{level},1-(({rate})^{paid}-1)/(({rate})^{term}-1))"

    def _paid(self, name: str, month: int) -> str | None:
        if self.used.finance_months is None:
            return None if name == "finance" else self._at(f"{name}_outlay", month)
        lent = sorted({self._ordered(s) for s, nodes in enumerate(self.used.started_by_month) if nodes})
        if name == "finance":
            rate = f"((1+{self._of('finance_fraction_per_year')})^(1/12)-1)"
            return _sum(
                f"({'+'.join(self._at(f'{line}_outlay', s) for line in OUTLAYS)})"
                f"*{self._at('loan_balance', month - 1 - s)}*{rate}"
                for s in lent
                if s < month
            )
        repaid = [
            f"{self._at(f'{name}_outlay', s)}*({self._at('loan_balance', month - 1 - s)}"
            f"-{self._at('loan_balance', month - s)})"
            for s in lent
            if s < month
        ]
        if month == self.months:
            repaid += [f"{self._at(f'{name}_outlay', s)}*{self._at('loan_balance', month - s)}" for s in lent]
        return _sum(repaid)

    def _resale(self, age: int) -> str:
        stated, life = self._input("residual_fraction"), self.used.life_months or 1
        if stated is not None:
            return f"(1+({stated}-1)*{min(age, life)}/{life})"
        after_3, after_5 = (self._of(f"residual_fraction_after_{years}_years") for years in (3, 5))
        young = f"1+({after_3}-1)*{min(age, 36)}/36"
        return f"MAX(0,{young}+(MIN({after_5},{after_3})-{after_3})*{max(age - 36, 0)}/24)"

    # API

    def _api(self, name: str, month: int) -> str | None:
        if month == 0:
            return None
        demand = self.comparison.demand
        kind = name.removeprefix("api_")
        share = {"input": 1.0 - demand.cached_fraction, "cached": demand.cached_fraction, "output": 1.0}[kind]
        tokens = demand.output_tokens if kind == "output" else demand.input_tokens
        seconds = f"{demand.requests_per_s!r}*{self._of('utilisation_fraction')}*{HOURS}*{SECONDS_PER_HOUR:g}"
        price = f"{self._of(f'api_usd_per_million_{kind}_tokens')}*{self._at('price_factor', month - 1)}"
        return f"{seconds}*{tokens!r}*{share!r}*{self._grown(month)}/1000000*{price}"

    def _grown(self, month: int) -> str:
        """Demand of a month relative to that stated."""
        ramp = self.comparison.request.ramp_months
        rising = f"*{min(1.0, month / ramp)!r}" if ramp else ""
        return f"(1+{self._of('growth_fraction_per_month')})^{month - 1}{rising}"


def _sum(terms: Iterable[str]) -> str | None:
    found = list(terms)
    return "+".join(found) if found else None


def _letters(column: int) -> str:
    """
    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    return (chr(ord("A") + column // 26 - 1) if column >= 26 else "") + chr(ord("A") + column % 26)
