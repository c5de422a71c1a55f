"""Solver answers → wire, with a sentence each."""

from service.recommendations.limit_names import MS_PER_S, in_milliseconds, miss_reason, miss_words, target_name
from service.recommendations.money import usd
from service.recommendations.present_line import present_line
from service.wire.why import MissOut, SolvedOut
from solver.why.misses import Miss
from solver.why.resolve import SolvedChange

PERCENT = 100.0
NO_CHANGE = "no measurable change"


def present_answer(answer: SolvedChange, base_usd_per_hour: float | None, objective: str) -> SolvedOut:
    """base_usd_per_hour: of the plan that is compared with; None where it has none."""
    extra_usd = None
    if answer.usd_per_hour is not None and base_usd_per_hour is not None:
        extra_usd = answer.usd_per_hour - base_usd_per_hour
    counts = answer.measurable and answer.extra is not None
    shown = extra_usd if objective != "cost" or counts else None
    return SolvedOut(
        outcome=answer.outcome,
        usd_per_hour=None if answer.usd_per_hour is None else usd(answer.usd_per_hour),
        gap_fraction=answer.gap_fraction,
        measurable=answer.measurable,
        extra_usd_per_hour=None if shown is None else usd(shown),
        extra_power_kw=answer.extra / 1e3 if objective == "power" and answer.extra is not None and counts else None,
        less_served_fraction=answer.extra if objective == "throughput" and counts else None,
        says=says(answer, objective),
        plan=[present_line(entry) for entry in answer.entries],
    )


def says(answer: SolvedChange, objective: str) -> str:
    """The difference in words.

    >>> says(SolvedChange("optimal", extra=1.5, measurable=True, gap_fraction=0.0), "cost")
    'costs 1.50 USD an hour more'
    >>> says(SolvedChange("optimal", extra=1e-9, gap_fraction=0.0), "cost")
    'no measurable change'
    """
    if answer.outcome == "infeasible":
        return "no plan exists that way"
    if answer.outcome == "not_in_time":
        return "not answered within the time limit"
    if answer.extra is None:
        return "a plan exists"
    if not answer.measurable:
        return NO_CHANGE
    size = abs(answer.extra)
    match objective:
        case "cost":
            text = f"{'costs' if answer.extra > 0 else 'saves'} {size:,.2f} USD an hour"
            more = " more" if answer.extra > 0 else ""
        case "power":
            text, more = f"draws {size / 1e3:,.3g} kW", " more" if answer.extra > 0 else " less"
        case _:
            text, more = f"serves {PERCENT * size:.3g} % of the traffic", " less" if answer.extra > 0 else " more"
    open_gap = answer.gap_fraction or 0.0
    return text + more + (f", within a gap of {PERCENT * open_gap:.2g} %" if open_gap > 0 else "")


def present_miss(miss: Miss) -> MissOut:
    missed = miss.missed
    return MissOut(
        workload=miss.workload,
        traffic_class=miss.traffic_class,
        reason=miss_reason(miss.reason, missed),
        detail=miss.detail if missed is None else miss_words(missed),
        limit=None if missed is None else target_name(missed.target),
        best_ms=None if missed is None else missed.best_s * MS_PER_S,
        target_ms=None if missed is None else in_milliseconds(missed.target_s),
        above_percent=None if missed is None else PERCENT * (missed.ratio - 1.0),
    )
