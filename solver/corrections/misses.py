"""How far measured times lie from predicted ones beyond the ranges of constants, by level: everything, an engine, a family under an
engine, a device under an engine.

A range holds nine of ten measured over predicted, each cluster of runs counted once: a source on a device, within a level of one
source a model in a format under a release. A level has a range of its own only where that of its other clusters, each left out in
turn, has the better interval score (Gneiting and Raftery, 2007, eq. 43) for the cluster that was left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from solver.prediction.spreads import in_quadrature

TOKEN, FIRST_TOKEN = "time_per_output_token", "time_to_first_token"
MISS_CONSTANTS = (
    "interval_token_miss", "interval_first_token_miss", "interval_token_miss_any_release", "interval_first_token_miss_any_release",
    "interval_release_miss",
)  # fmt: skip
"""Rows that only intervals take, made of these ranges."""
SHARE = 0.9
SHARES = tuple(round(SHARE + 0.01 * i, 2) for i in range(10))
NEARLY = 1.03
"""How much worse than the best a score may be that evidence does not tell from it."""
LEAST_CLUSTERS = 3
"""With fewer a level has no range of its own: leaving one out must leave two."""
Range = tuple[float, float]
EXACT: Range = (1.0, 1.0)
ROUNDING = 1e-12
"""Of logarithms that lie on an end."""


class PublicMiss(NamedTuple):
    """One measured figure of one run. current: whether its engine's release is of today's generation, None where that is not stated.
    ratio, low, high: logarithms of measured over predicted, and of the ends of its interval by the ranges of constants alone."""

    metric: str
    source: str
    device: str
    family: str
    engine: str
    current: bool | None
    group: tuple[str, ...]
    layout: tuple[int, ...]
    basis: str
    ratio: float
    low: float
    high: float


Cluster = Callable[[PublicMiss], tuple[str, ...]]


def by_source(miss: PublicMiss) -> tuple[str, ...]:
    """A source on a device: one harness, one host."""
    return miss.source, miss.device


def by_model(miss: PublicMiss) -> tuple[str, ...]:
    """Within a source, a model in a format under a release as well."""
    return miss.source, miss.device, *miss.group


def by_configuration(miss: PublicMiss) -> tuple[str, ...]:
    """Within a model, the layouts as well: of what is known of one or two models only."""
    return *by_model(miss), *map(str, miss.layout)


def clustering(found: Iterable[PublicMiss]) -> Cluster:
    """By source where a level has three sources or more, else by model."""
    return by_source if len({one.source for one in found}) >= LEAST_CLUSTERS else by_model


def weights(found: Sequence[PublicMiss], cluster: Cluster) -> list[float]:
    """Shares that sum to one, each cluster's the same."""
    sizes = Counter(cluster(one) for one in found)
    return [1.0 / sizes[cluster(one)] / len(sizes) for one in found]


def shortest(found: Sequence[PublicMiss], cluster: Cluster, share: float = SHARE) -> Range:
    """The shortest (low, high) that holds the share of measured over predicted, in quadrature with each run's own interval.

    >>> runs = [PublicMiss(TOKEN, str(i), "d", "f", "e", True, (), (), "analytical", 0.1 * i, 0.0, 0.0) for i in range(10)]
    >>> tuple(round(x, 2) for x in shortest(runs, by_source))
    (1.0, 2.23)
    """
    shares = weights(found, cluster)
    below = [math.sqrt(max(one.ratio**2 - one.low**2, 0.0)) if one.ratio < 0 else 0.0 for one in found]
    above = [math.sqrt(max(one.ratio**2 - one.high**2, 0.0)) if one.ratio > 0 else 0.0 for one in found]

    lows, highs = (sorted(zip(values, shares, strict=True), reverse=True) for values in (below, above))
    tails = [(i / 100.0, 1.0 - share - i / 100.0) for i in range(round(100 * (1.0 - share)) + 1)]
    low, high = min(((_leaving(lows, a), _leaving(highs, b)) for a, b in tails), key=sum)
    return math.exp(-low), math.exp(high)


def _leaving(ordered: Sequence[tuple[float, float]], outside: float) -> float:
    """The value above which as much weight lies, of (value, weight) from the largest value on."""
    passed = 0.0
    for value, weight in ordered:
        passed += weight
        if passed > outside + 1e-9:
            return value
    return 0.0


def ends(one: PublicMiss, miss: Range) -> tuple[float, float]:
    """Logarithms of the ends of one run's interval."""
    low, high = in_quadrature((math.exp(one.low), math.exp(one.high)), miss)
    return math.log(low), math.log(high)


def held(found: Sequence[PublicMiss], miss: Range, cluster: Cluster) -> float:
    """Share inside, each cluster counted once."""
    inside = 0.0
    for one, weight in zip(found, weights(found, cluster), strict=True):
        low, high = ends(one, miss)
        inside += weight * (low - ROUNDING <= one.ratio <= high + ROUNDING)
    return inside


def interval_score(found: Sequence[PublicMiss], miss: Range, cluster: Cluster, share: float = SHARE) -> float:
    """Mean over clusters of the width plus 2/α of what passes an end, in logarithms: least for the true quantiles."""
    return math.fsum(
        weight * score_of(one.ratio, *ends(one, miss), share)
        for one, weight in zip(found, weights(found, cluster), strict=True)
    )


def score_of(ratio: float, low: float, high: float, share: float = SHARE) -> float:
    """Interval score of one value, all as logarithms.

    >>> round(score_of(0.3, -0.1, 0.2), 3)
    2.3
    """
    return high - low + 2.0 / (1.0 - share) * max(low - ratio, ratio - high, 0.0)


def left_out(
    found: Sequence[PublicMiss], cluster: Cluster, of: Callable[[Sequence[PublicMiss]], Range]
) -> list[tuple[list[PublicMiss], Range]]:
    """Each cluster with the range that the others give."""
    names = sorted({cluster(one) for one in found})
    return [
        ([one for one in found if cluster(one) == name], of([one for one in found if cluster(one) != name]))
        for name in names
    ]


def calibrated(found: Sequence[PublicMiss], cluster: Cluster) -> tuple[Range, float]:
    """The range of the least share whose left-out ranges score nearly as well for nine of ten as those of any share, and what these
    hold of what is left out, each cluster counted once.

    What holds nine of ten of its own evidence holds less of anything new, the fewer clusters the less; of shares that evidence hardly
    tells apart the least one gives the narrowest range.
    """

    def judged(share: float) -> tuple[float, float]:
        parts = left_out(found, cluster, lambda others: shortest(others, cluster, share))
        score = math.fsum(interval_score(own, miss, cluster) for own, miss in parts)
        return score, math.fsum(held(own, miss, cluster) for own, miss in parts) / len(parts)

    results = {share: judged(share) for share in SHARES}
    best = min(score for score, _ in results.values())
    least = next(share for share in SHARES if results[share][0] <= NEARLY * best)
    return shortest(found, cluster, least), results[least][1]
