"""How requests arrive: rate, burstiness, and the shape of days and weeks."""

import numpy as np

from solver.traces.trace import Floats

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
WINDOWS_S = (1.0, 10.0, 60.0, 600.0, HOUR_S)
LEAST_WINDOWS = 10
"""A peak among fewer windows says little of bursts."""


def mean_rate_per_s(arrival_s: Floats) -> float | None:
    """Arrivals after the first over the time they took: (n − 1) / (t_n − t_1). None where no time passes.

    Source: the maximum-likelihood rate of a renewal process observed from an arrival to an arrival.

    >>> mean_rate_per_s(np.array([0.0, 1.0, 4.0]))
    0.5
    """
    span = float(arrival_s[-1] - arrival_s[0])
    return (len(arrival_s) - 1) / span if span > 0 else None


def interarrival_variation(arrival_s: Floats) -> float | None:
    """Coefficient of variation of the times between arrivals, σ/μ: 0 for a metronome, 1 for Poisson, above 1 for bursts.

    Source: definition; None where no time passes or there is one interval only.

    >>> interarrival_variation(np.array([0.0, 2.0, 4.0, 6.0])), interarrival_variation(np.array([0.0, 0.0, 4.0]))
    (0.0, 1.0)
    """
    gaps = np.diff(arrival_s)
    if len(gaps) < 2 or gaps.sum() <= 0:
        return None
    return float(gaps.std() / gaps.mean())


def peak_to_mean(arrival_s: Floats, window_s: float) -> float | None:
    """Most arrivals of one window over the mean of all windows; whole windows from the first arrival on.

    Source: definition. None where fewer than ``LEAST_WINDOWS`` whole windows fit.

    >>> peak_to_mean(np.array([0.0, 0.1, 0.2, 0.3, 5.0, 10.0]), 1.0)
    8.0
    """
    since = arrival_s - arrival_s[0]
    windows = int(since[-1] // window_s)
    if windows < LEAST_WINDOWS:
        return None
    counts = np.bincount((since[since < windows * window_s] // window_s).astype(np.int64), minlength=windows)
    return float(counts.max() / counts.mean())


def cyclic_shape(arrival_s: Floats, period_s: float, parts: int) -> tuple[float, ...] | None:
    """Rate in each part of the period over the mean rate, counted over whole periods from the trace's own zero.

    Source: definition (a seasonal index). None where not one whole period is recorded.

    >>> cyclic_shape(np.array([0.0, 1.0, 2.0, 3.0, 7.0, 8.0]), 8.0, 2)
    (1.6, 0.4)
    """
    since = arrival_s - arrival_s[0]
    periods = int(since[-1] // period_s)
    if periods < 1:
        return None
    kept = arrival_s[since < periods * period_s]
    counts = np.bincount(((kept % period_s) // (period_s / parts)).astype(np.int64), minlength=parts)[:parts]
    return tuple(float(share) for share in counts / counts.mean())


def longest_gap_s(arrival_s: Floats) -> tuple[float, int]:
    """The longest time without an arrival, and the place of the request before it.

    >>> longest_gap_s(np.array([0.0, 1.0, 61.0, 62.0]))
    (60.0, 1)
    """
    if len(arrival_s) < 2:
        return 0.0, 0
    gaps = np.diff(arrival_s)
    place = int(gaps.argmax())
    return float(gaps[place]), place
