"""Has an engine changed? Residuals before and after a new engine version or driver."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_RUNS = 3
LEAST_SHIFT = 0.05
"""A smaller change of a median is within what runs differ by anyway."""
SURE_AT_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class Drift:
    """median_change_fraction: by how much measured over predicted moved. deviations: Welch's statistic."""

    runs_before: int
    runs_after: int
    median_change_fraction: float
    deviations: float


def drift(before: Sequence[float], after: Sequence[float]) -> Drift | None:
    """A shift of ln(measured/predicted) between two groups of runs; None while chance explains it.

    Welch: |mean difference| / √(s₁²/n₁ + s₂²/n₂), three deviations or more, and medians at least 5 % apart.

    >>> drift([0.01, -0.01, 0.02, 0.0], [0.15, 0.16, 0.14]).runs_after
    3
    >>> drift([0.01, -0.2, 0.2, 0.0], [0.1, 0.15, -0.05]) is None
    True
    """
    if len(before) < LEAST_RUNS or len(after) < LEAST_RUNS:
        return None
    change = math.exp(statistics.median(after) - statistics.median(before)) - 1.0
    error = math.sqrt(statistics.variance(before) / len(before) + statistics.variance(after) / len(after))
    distance = abs(statistics.fmean(after) - statistics.fmean(before))
    deviations = distance / error if error > 0 else math.inf if distance > 0 else 0.0
    if abs(change) < LEAST_SHIFT or deviations < SURE_AT_DEVIATIONS:
        return None
    return Drift(len(before), len(after), change, min(deviations, 1e6))
