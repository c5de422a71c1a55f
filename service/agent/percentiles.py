"""Statistics of a set of latencies: the mean and the percentiles that benchmark records state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class LatencyStatistics:
    """Mean and percentiles of one latency, in milliseconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    def as_json(self) -> dict[str, float]:
        """The statistics under their wire names, to a tenth of a microsecond."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which `fraction` of an ascending sequence lies, with linear interpolation between ranks.

    The rank is `fraction · (n − 1)`, as numpy's default does, so results agree with other benchmark tools.

    >>> percentile([10.0, 20.0, 30.0, 40.0], 0.5)
    25.0
    >>> percentile([10.0, 20.0, 30.0, 40.0], 0.9)
    37.0

    Raises ValueError for an empty sequence or a fraction outside 0 … 1.
    """
    if not ordered:
        raise ValueError("a percentile of no values does not exist")
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"a fraction lies between 0 and 1, got {fraction}")
    rank = fraction * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def latency_statistics(values_ms: Sequence[float]) -> LatencyStatistics | None:
    """Mean, p50, p90, p95 and p99 of latencies in milliseconds; None when there are none to speak of."""
    if not values_ms:
        return None
    ordered = sorted(values_ms)
    return LatencyStatistics(
        mean=math.fsum(ordered) / len(ordered),
        p50=percentile(ordered, 0.50),
        p90=percentile(ordered, 0.90),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
    )
