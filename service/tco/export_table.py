"""A comparison as rows of cells, for spreadsheets: the same table in CSV and in a workbook."""

from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

from service.wire.tco_answers import BreakEvenOut, ComparisonOut

Cell: TypeAlias = str | Decimal | float | None
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def plain_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula.

    >>> plain_text("=1+1"), plain_text("buy")
    ("'=1+1", 'buy')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def cost_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    """One row per alternative and line, a total row each, then a column for the start and for each month."""
    months = len(comparison.alternatives[0].usd_by_month)
    columns = [f"month {month}" for month in range(1, months)]
    yield ["alternative", "line", "total_usd", "present_value_usd", "start", *columns]
    for alternative in comparison.alternatives:
        name = plain_text(alternative.name)
        for line in alternative.lines:
            yield [name, line.line, line.total_usd, line.present_value_usd, *line.usd_by_month]
        yield [name, "total", alternative.total_usd, alternative.npv_usd, *alternative.usd_by_month]


SUMMARY = (
    "kind", "acquisition", "total_usd", "npv_usd", "total_in_currency", "npv_in_currency",
    "usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_tokens", "usd_per_request",
    "undefined_because", "input_tokens", "output_tokens", "energy_kwh", "co2e_kg", "water_l",
)  # fmt: skip


def summary_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    """One column per alternative."""
    yield ["", *(plain_text(a.name) for a in comparison.alternatives)]
    for field in SUMMARY:
        yield [field, *(getattr(a, field) for a in comparison.alternatives)]
    for position, against in enumerate(comparison.alternatives):
        yield [
            f"break-even month against {against.name}",
            *(
                _month(a.break_even, against.name) if i != position else None
                for i, a in enumerate(comparison.alternatives)
            ),
        ]


def _month(pairs: list[BreakEvenOut], against: str) -> float | None:
    return next((pair.month for pair in pairs if pair.against == against), None)


def sensitivity_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "input", "low", "high", "npv_usd_at_low", "npv_usd_at_high", "effect_usd"]
    for alternative in comparison.alternatives:
        for swing in alternative.sensitivity:
            yield [
                plain_text(alternative.name), swing.input, swing.low, swing.high, swing.npv_usd_at_low,
                swing.npv_usd_at_high, swing.effect_usd,
            ]  # fmt: skip


def default_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "input", "low", "typical", "high", "unit", "how", "source", "as_of", "checked"]
    for default in comparison.defaults:
        origins = default.origins
        yield [
            plain_text(default.alternative or "all"), default.input, default.low, default.typical, default.high,
            default.unit, default.how, plain_text("; ".join(o.source for o in origins)),
            "; ".join(o.as_of for o in origins), "; ".join(o.checked for o in origins),
        ]  # fmt: skip
