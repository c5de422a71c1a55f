"""A comparison as rows of cells, for spreadsheets."""

import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

from service.wire.tco_answers import BreakEvenOut, ComparisonOut
from solver.tco.capital import discount_factors

Cell: TypeAlias = str | Decimal | float | None
FORMULA_STARTS = ("=", "+", "-", "@", "|", "%")
UNSEEN = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))
"""Unicode categories of what a reader does not see and a spreadsheet may skip: controls, formats, spaces."""


def plain_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula, whatever stands unseen before it and however wide its signs are.

    >>> plain_text("=1+1"), plain_text(" =1+1"), plain_text("\\n@SUM(1)"), plain_text("＝1"), plain_text("buy - once")
    ("'=1+1", "' =1+1", "'\\n@SUM(1)", "'＝1", 'buy - once')
    """
    seen = next((sign for sign in text if unicodedata.category(sign) not in UNSEEN), "")
    hidden = bool(text) and text[0] in "\t\r\n"
    return f"'{text}" if hidden or unicodedata.normalize("NFKC", seen).startswith(FORMULA_STARTS) else text


TIDY = ("alternative", "kind", "line", "month", "usd", "discount_factor")


def tidy_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    """One row per alternative, line and month (0: the start), nothing totalled: any sum of ``usd`` is a sum of costs."""
    yield list(TIDY)
    rate = next(
        (one.typical for own in comparison.alternatives for used in own.computed_from for one in used.inputs
         if one.input == "discount_fraction_per_year"), 0.0,
    )  # fmt: skip
    months = len(comparison.alternatives[0].usd_by_month) - 1
    factors = [round(float(factor), 9) for factor in discount_factors(rate, months)]
    for alternative in comparison.alternatives:
        for line in alternative.lines:
            for month, usd in enumerate(line.usd_by_month):
                yield [alternative.name, alternative.kind, line.line, month, usd, factors[month]]


SUMMARY = (
    "kind", "acquisition", "total_in_currency", "npv_in_currency", "usd_per_million_input_tokens",
    "usd_per_million_output_tokens", "usd_per_million_tokens", "usd_per_request", "undefined_because", "input_tokens",
    "output_tokens", "energy_kwh", "co2e_kg", "water_l",
)  # fmt: skip


def summary_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    """One column per alternative."""
    for field in SUMMARY:
        yield [field, *(getattr(a, field) for a in comparison.alternatives)]
    for measure in ("undiscounted", "discounted", "cash"):
        for position, against in enumerate(comparison.alternatives):
            yield [
                f"break-even month against {against.name}, {measure}",
                *(
                    _month(a.break_even, against.name, measure) if i != position else None
                    for i, a in enumerate(comparison.alternatives)
                ),
            ]


def _month(pairs: list[BreakEvenOut], against: str, measure: str) -> float | None:
    return next((getattr(pair, measure).month for pair in pairs if pair.against == against), None)


def face_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    """What the answer says first: its sentences, the verdict, warnings, and what to state next."""
    found = comparison.cheapest
    yield ["summary", comparison.summary]
    for warning in comparison.warnings:
        yield ["warning", warning]
    yield ["cheapest", found.name]
    yield ["measure", found.measure]
    yield ["chance of being cheapest", found.chance]
    yield ["value at stake, USD", found.value_at_stake_usd]
    if found.why_not is not None:
        yield ["why the draws disagree", found.why_not]
    for wanted in comparison.wanted:
        yield ["would make the choice surer", f"{wanted.input} ({wanted.state or 'of the catalog'})", wanted.effect_usd]


def note_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "note"]
    for alternative in comparison.alternatives:
        for note in alternative.notes:
            yield [alternative.name, note]


def sensitivity_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "input", "low", "high", "npv_usd_at_low", "npv_usd_at_high", "effect_usd"]
    for alternative in comparison.alternatives:
        for swing in alternative.sensitivity:
            yield [
                alternative.name, swing.input, swing.low, swing.high, swing.npv_usd_at_low, swing.npv_usd_at_high,
                swing.effect_usd,
            ]  # fmt: skip


def draw_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "p10", "p25", "p50", "p75", "p90", "stated", "chance of being cheapest"]
    for alternative in comparison.alternatives:
        found = alternative.uncertainty
        if found is not None:
            spread = found.npv_usd
            yield [
                alternative.name, spread.p10, spread.p25, spread.p50, spread.p75, spread.p90, alternative.npv_usd,
                found.cheapest_fraction,
            ]  # fmt: skip


def default_rows(comparison: ComparisonOut) -> Iterator[list[Cell]]:
    yield ["alternative", "input", "low", "typical", "high", "unit", "how", "source", "as_of", "checked"]
    for default in comparison.defaults:
        origins = default.origins
        yield [
            default.alternative or "all", default.input, default.low, default.typical, default.high, default.unit,
            default.how, "; ".join(o.source for o in origins), "; ".join(o.as_of for o in origins),
            "; ".join(o.checked for o in origins),
        ]  # fmt: skip
