"""Predicted quantities with their ranges, and the order in which those of one request come."""

from collections.abc import Mapping
from dataclasses import dataclass

from solver.workload import Traffic


@dataclass(frozen=True, slots=True)
class PredictedInterval:
    """A predicted quantity with the range in which nine of ten measured values are expected."""

    expected: float
    low: float
    high: float


def at_least(interval: PredictedInterval, other: PredictedInterval) -> PredictedInterval:
    """An interval raised where another passes it."""
    return PredictedInterval(
        max(interval.expected, other.expected), max(interval.low, other.low), max(interval.high, other.high)
    )


def no_earlier(
    intervals: dict[str, PredictedInterval], than: Mapping[str, PredictedInterval]
) -> dict[str, PredictedInterval]:
    """Times that come after others, figure by figure: factors and spreads of either are fitted by themselves."""
    return {name: at_least(one, than[name]) for name, one in intervals.items()}


def whole_requests(
    traffic: Traffic,
    first: dict[str, PredictedInterval],
    answered: dict[str, PredictedInterval] | None,
    end_to_end: dict[str, PredictedInterval],
) -> dict[str, PredictedInterval]:
    """Times of whole requests, which end no earlier than their first tokens come, and with them where replies have one token."""
    if traffic.output.maximum <= 1:
        return first
    found = no_earlier(end_to_end, first)
    return found if answered is None else no_earlier(found, answered)
