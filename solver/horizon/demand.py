"""Demand over time: from profiles, or from a series reduced to representative periods.

A month is 730 hours (``solver.units``), the billing convention; five of seven days are weekdays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from solver.errors import InvalidInputError
from solver.horizon.problem import FloatArray, Period
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

HOURS_PER_DAY = 24
DAYS_PER_WEEK, WEEKDAYS = 7, 5
DAY_TYPES = (("weekday", WEEKDAYS / DAYS_PER_WEEK), ("weekend", (DAYS_PER_WEEK - WEEKDAYS) / DAYS_PER_WEEK))
LINKAGES = ("ward", "complete", "average")


@dataclass(frozen=True, slots=True)
class Profile:
    """Requests per second by hour of a weekday and of a weekend day, times a factor for each month of the year.

    growth_per_month: compounding, from the second month on.
    """

    weekday: tuple[float, ...]
    weekend: tuple[float, ...]
    monthly: tuple[float, ...] = (1.0,)
    growth_per_month: float = 0.0

    def __post_init__(self) -> None:
        if len(self.weekday) != HOURS_PER_DAY or len(self.weekend) != HOURS_PER_DAY:
            raise InvalidInputError("a day has 24 hours")
        if any(not math.isfinite(v) or v < 0 for v in (*self.weekday, *self.weekend, *self.monthly)):
            raise InvalidInputError("demand must be finite and not negative")
        if self.growth_per_month <= -1.0:
            raise InvalidInputError("demand cannot shrink by all of it")

    def month(self, month: int) -> FloatArray:
        """Rates of a month, day types × hours.

            λ(m, d, h) = profile_d(h) · monthly(m mod 12) · (1 + growth)^m

        >>> Profile((1.0,) * 24, (0.5,) * 24, growth_per_month=0.1).month(2)[:, 0].round(3).tolist()
        [1.21, 0.605]
        """
        factor = self.monthly[month % len(self.monthly)] * (1.0 + self.growth_per_month) ** month
        return factor * np.array([self.weekday, self.weekend])


@dataclass(frozen=True, slots=True)
class Series:
    """Requests per second at a fixed step from the start of the horizon; repeated until its end, with growth."""

    step_s: float
    requests_per_s: tuple[float, ...]
    growth_per_month: float = 0.0

    def hourly(self, hours: int) -> FloatArray:
        """The largest rate inside each hour: nodes are held for whole hours and must serve its busiest moment.

        >>> Series(1800.0, (1.0, 3.0, 2.0, 0.0)).hourly(3).tolist()
        [3.0, 2.0, 3.0]
        """
        values = np.asarray(self.requests_per_s, dtype=np.float64)
        if self.step_s >= SECONDS_PER_HOUR:
            per_step = round(self.step_s / SECONDS_PER_HOUR)
            own = np.repeat(values, per_step)
        else:
            per_hour = round(SECONDS_PER_HOUR / self.step_s)
            own = np.array([values[i : i + per_hour].max() for i in range(0, len(values), per_hour)])
        return np.resize(own, hours)


@dataclass(frozen=True, slots=True)
class DemandFit:
    """How well representative periods stand for the demand.

    points: measurements before, periods: representatives after. overstated_fraction: requests that the periods hold
    beyond the demand, as a share of it; never negative, because each period has its members' largest rates.
    worst_hour_fraction: the largest overstatement of a workload in one hour, as a share of the workload's peak.
    peaks_requests_per_s: by workload, the same before and after.
    """

    points: int
    hours: int
    periods: int
    overstated_fraction: float
    worst_hour_fraction: float
    peaks_requests_per_s: tuple[float, ...]


def periods_of(
    demands: Sequence[Profile | Series], months: int, periods_per_month: int
) -> tuple[tuple[Period, ...], tuple[tuple[int, ...], ...], DemandFit]:
    """Periods of all workloads together, at most ``periods_per_month`` a month, the order in which each month's hours have
    them, and what that loses.

    Where every workload has a profile the hours of its two day types are exact, and a month's hours are those of a week from
    Monday on. A series makes every month its own 730 hours, in which a profile starts on a Monday.
    """
    hours = int(HOURS_PER_MONTH)
    only_profiles = all(isinstance(one, Profile) for one in demands)
    found: list[Period] = []
    sequences: list[tuple[int, ...]] = []
    total = over = worst = 0.0
    series = [one.hourly(hours * months) if isinstance(one, Series) else None for one in demands]
    peaks = np.zeros(len(demands))
    for month in range(months):
        if only_profiles:
            profiles = [one.month(month) for one in demands if isinstance(one, Profile)]
            rates = np.stack([p.ravel() for p in profiles], axis=1)
            weights = np.repeat([HOURS_PER_MONTH / HOURS_PER_DAY * share for _, share in DAY_TYPES], HOURS_PER_DAY)
        else:
            columns = []
            for one, own in zip(demands, series, strict=True):
                if isinstance(one, Profile):
                    columns.append(_calendar(one.month(month), month * hours, hours))
                else:
                    assert own is not None
                    columns.append(own[month * hours : (month + 1) * hours] * (1.0 + one.growth_per_month) ** month)
            rates = np.stack(columns, axis=1)
            weights = np.ones(hours)
        peaks = np.maximum(peaks, rates.max(axis=0))
        labels = cluster(rates, weights, periods_per_month)
        position = {label: len(found) + i for i, label in enumerate(np.unique(labels).tolist())}
        order = [position[label] for label in labels.tolist()]
        sequences.append(tuple(_week(order) if only_profiles else order))
        for label in np.unique(labels):
            mine = labels == label
            top = rates[mine].max(axis=0)
            found.append(Period(month, float(weights[mine].sum()), tuple(top.tolist())))
            excess = top - rates[mine]
            over += float((excess * weights[mine, None]).sum())
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(peaks > 0, excess / peaks, 0.0)
            worst = max(worst, float(share.max()))
        total += float((rates * weights[:, None]).sum())
    points = sum(
        len(one.requests_per_s) if isinstance(one, Series) else HOURS_PER_DAY * len(DAY_TYPES) for one in demands
    )
    fit = DemandFit(points, hours * months, len(found), over / total if total else 0.0, worst, tuple(peaks.tolist()))
    return tuple(found), tuple(sequences), fit


def _week(days: Sequence[int]) -> list[int]:
    """A week from Monday on, of what belongs to each hour of a weekday and then of a weekend day.

    >>> week = _week(range(48))
    >>> len(week), week[:2], week[119:122]
    (168, [0, 1], [23, 24, 25])
    """
    weekday, weekend = list(days[:HOURS_PER_DAY]), list(days[HOURS_PER_DAY:])
    return weekday * WEEKDAYS + weekend * (DAYS_PER_WEEK - WEEKDAYS)


def _calendar(days: FloatArray, first_hour: int, hours: int) -> FloatArray:
    """A profile along the hours of a calendar that starts on a Monday."""
    at = np.arange(first_hour, first_hour + hours)
    weekend = ((at // HOURS_PER_DAY) % 7 >= 5).astype(np.int64)
    return np.asarray(days[weekend, at % HOURS_PER_DAY])


def cluster(rates: FloatArray, weights: FloatArray, most: int) -> np.ndarray:
    """Labels of at most ``most`` groups of alike hours (rows of ``rates``), deterministic.

    Agglomerative clustering of rates scaled to each workload's peak, by Ward's, complete and average linkage; of the
    three the one whose groups overstate demand least when each stands for its members by their largest rates.

    >>> cluster(np.array([[1.0], [9.0], [1.1], [8.0]]), np.ones(4), 2).tolist()
    [1, 2, 1, 2]
    """
    distinct, back = np.unique(rates, axis=0, return_inverse=True)
    back = back.ravel()
    if len(distinct) <= most:
        return np.asarray(back + 1)
    peak = distinct.max(axis=0)
    scaled = distinct / np.where(peak > 0, peak, 1.0)
    share = np.bincount(back, weights=weights, minlength=len(distinct))
    best: tuple[float, np.ndarray] | None = None
    for method in LINKAGES:
        labels = fcluster(linkage(scaled, method=method), most, criterion="maxclust")
        over = 0.0
        for label in np.unique(labels):
            mine = labels == label
            over += float(((scaled[mine].max(axis=0) - scaled[mine]) * share[mine, None]).sum())
        if best is None or over < best[0] - 1e-12:
            best = (over, labels)
    assert best is not None
    order = {label: i + 1 for i, label in enumerate(dict.fromkeys(best[1].tolist()))}
    return np.array([order[label] for label in best[1].tolist()])[back]
