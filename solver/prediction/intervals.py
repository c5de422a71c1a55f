"""Predicted values with the ranges in which nine of ten measured ones are expected, and the order in which those of one request come."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from solver.capacity.factors import factor_of
from solver.replay.one_stream import Statistics
from solver.workload import Traffic

NINE_OF_TEN_SCORE = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True, slots=True)
class PredictedInterval:
    """A predicted quantity with the range in which nine of ten measured values are expected."""

    expected: float
    low: float
    high: float


def holding(
    spreads: Mapping[str, tuple[float, float]],
    factors: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Spreads wide enough for the very runs that a prediction cites, whose median its factor only leans towards.

    >>> holding({"power": (0.9, 1.1)}, {"power": 1.2}, {"power": (1.3, 1.5)})
    {'power': (0.9, 1.25)}
    """
    wide = dict(spreads)
    for metric, (least, most) in ranges.items():
        factor = factors.get(metric, 1.0)
        for name, (low, high) in spreads.items():
            if name == metric or (name.partition(".")[0] == metric and name not in ranges):
                wide[name] = (min(low, least / factor), max(high, most / factor))
    return wide


def metric_interval(
    metric: str,
    value: float,
    spreads: Mapping[str, tuple[float, float]],
    factors: Mapping[str, float],
    floor: float = 0.0,
    ceiling: float = float("inf"),
) -> PredictedInterval:
    """A predicted value times its factor, with its spread, within the roofline's floor and ceiling."""
    low, high = spreads.get(metric, spreads.get(metric.partition(".")[0], (1.0, 1.0)))
    factor = factor_of(metric, factors)
    expected = min(max(value * factor, floor), ceiling)
    return PredictedInterval(
        expected, min(max(expected * low, floor), expected), max(min(expected * high, ceiling), expected)
    )


def sampled(interval: PredictedInterval, sampling_error_fraction: float, floor: float = 0.0) -> PredictedInterval:
    """An interval with the sampling error of its simulation on top: independent errors add in squares of logarithms.

    >>> wide = sampled(PredictedInterval(1.0, 0.9, 1.1), 0.05)
    >>> round(wide.low, 3), round(wide.high, 3)
    (0.875, 1.134)
    """
    noise = NINE_OF_TEN_SCORE * sampling_error_fraction
    if noise <= 0.0 or not interval.low > 0.0:
        return interval
    below = math.hypot(math.log(interval.expected / interval.low), noise)
    above = math.hypot(math.log(interval.high / interval.expected), noise)
    low = max(interval.expected * math.exp(-below), min(floor, interval.expected))
    return PredictedInterval(interval.expected, low, interval.expected * math.exp(above))


def percentile_intervals(
    metric: str,
    values: Statistics,
    spreads: Mapping[str, tuple[float, float]],
    factors: Mapping[str, float],
    floor: float = 0.0,
) -> dict[str, PredictedInterval]:
    """The same for the mean and every percentile, each with its own spread where it has one."""
    found: dict[str, PredictedInterval] = {}
    below: PredictedInterval | None = None
    for name, value in values.items():
        one = metric_interval(f"{metric}.{name}", value, spreads, factors, floor)
        if name.startswith("p"):
            # Factors are fitted one by one; a higher percentile is never the lower figure.
            below = one = one if below is None else at_least(one, below)
        found[name] = one
    return found


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
