"""How many tokens prompts and replies have: distributions of lengths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist

from solver.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts as a finite histogram: ``tokens`` ascending, ``shares`` summing to 1.

    Every kind on the wire (fixed, uniform, lognormal, histogram) becomes one of these, so that mean, percentile
    and sampling have one definition each.
    """

    tokens: tuple[int, ...]
    shares: tuple[float, ...]
    mean: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.tokens or len(self.tokens) != len(self.shares):
            raise InvalidInputError("a length distribution needs one share for each token count, and at least one")
        if any(t < 0 for t in self.tokens) or any(not math.isfinite(s) or s < 0 for s in self.shares):
            raise InvalidInputError("token counts and shares must be finite and not negative")
        if abs(math.fsum(self.shares) - 1.0) > 1e-6:
            raise InvalidInputError(f"shares sum to {math.fsum(self.shares):.6g}, not to 1")
        mean = math.fsum(t * s for t, s in zip(self.tokens, self.shares, strict=True))
        object.__setattr__(self, "mean", mean)  # asked for by every step of a prediction

    @property
    def maximum(self) -> int:
        return self.tokens[-1]

    def quantile(self, fraction: float) -> float:
        """Smallest token count whose cumulative share reaches ``fraction``."""
        total = 0.0
        for tokens, share in zip(self.tokens, self.shares, strict=True):
            total += share
            if total >= fraction - 1e-12:
                return float(tokens)
        return float(self.tokens[-1])


def fixed_lengths(tokens: int) -> Lengths:
    return Lengths((tokens,), (1.0,))


def uniform_lengths(low: int, high: int, most_points: int = 64) -> Lengths:
    """Whole numbers drawn uniformly from [low, high], represented by at most ``most_points`` of them.

    >>> uniform_lengths(819, 1024).mean
    921.5
    """
    if low > high:
        raise InvalidInputError(f"low {low} is above high {high}")
    count = high - low + 1
    if count <= most_points:
        return Lengths(tuple(range(low, high + 1)), (1.0 / count,) * count)
    # Symmetric about the middle, so that the mean is exact; both ends are kept.
    half = [low + round(i * (high - low) / (most_points - 1)) for i in range(most_points // 2)]
    points = half + [low + high - p for p in reversed(half)]
    return Lengths(tuple(points), (1.0 / len(points),) * len(points))


@lru_cache(maxsize=256)
def lognormal_lengths(mean: float, p95: float, points: int = 64) -> Lengths:
    """Lognormal by its mean and 95th percentile, cut into equally likely slices, each represented by its median.

    Solves mean = exp(μ + σ²/2) and p95 = exp(μ + 1.6449 σ) for the smaller σ; raises InvalidInputError when no
    lognormal has both (p95 above about 3.87 × mean, or below the mean).
    """
    if not (mean >= 1 and p95 > 0 and math.isfinite(mean) and math.isfinite(p95)):
        raise InvalidInputError("a lognormal needs a mean of at least one token and a positive p95")
    z = 1.6448536269514722
    gap = math.log(p95 / mean)  # = z σ − σ²/2
    discriminant = z * z - 2.0 * gap
    if discriminant < 0 or gap < 0:
        raise InvalidInputError(
            f"no lognormal has mean {mean:g} and p95 {p95:g}: "
            f"p95 must lie between the mean and {math.exp(z * z / 2):.3f} times the mean"
        )
    sigma = z - math.sqrt(discriminant)
    mu = math.log(mean) - sigma * sigma / 2.0
    values = [math.exp(mu + sigma * _normal_quantile((i + 0.5) / points)) for i in range(points)]
    scale = mean * points / math.fsum(values)  # slice medians understate the tail: restore the stated mean
    merged: dict[int, float] = {}
    for value in values:
        tokens = max(1, round(value * scale))
        merged[tokens] = merged.get(tokens, 0.0) + 1.0 / points
    return Lengths(tuple(sorted(merged)), tuple(merged[t] for t in sorted(merged)))


SUMMED_POINTS = 256
"""Lengths of a sum of two, at most: of more, neighbours stand together for their mean."""


def summed_lengths(one: Lengths, other: Lengths) -> Lengths:
    """The distribution of a sum of two independent lengths. Its mean is the sum of theirs, but for rounding.

    >>> summed_lengths(fixed_lengths(5), Lengths((1, 3), (0.5, 0.5)))
    Lengths(tokens=(6, 8), shares=(0.5, 0.5))
    """
    shares: dict[int, float] = {}
    for tokens, share in zip(one.tokens, one.shares, strict=True):
        for more, of_these in zip(other.tokens, other.shares, strict=True):
            shares[tokens + more] = shares.get(tokens + more, 0.0) + share * of_these
    ordered = sorted(shares)
    if len(ordered) > SUMMED_POINTS:
        size = math.ceil(len(ordered) / SUMMED_POINTS)
        merged: dict[int, float] = {}
        for at in range(0, len(ordered) - 1, size):
            group = ordered[at : min(at + size, len(ordered) - 1)]
            weight = math.fsum(shares[t] for t in group)
            mean = round(math.fsum(t * shares[t] for t in group) / weight)
            merged[mean] = merged.get(mean, 0.0) + weight
        merged[ordered[-1]] = shares[ordered[-1]]
        shares, ordered = merged, sorted(merged)
    return Lengths(tuple(ordered), tuple(shares[t] for t in ordered))


def _normal_quantile(fraction: float) -> float:
    return NormalDist().inv_cdf(fraction)


def mixed_lengths(parts: Sequence[tuple[Lengths, float]]) -> Lengths:
    """A mixture of distributions by weight."""
    if all(lengths == parts[0][0] for lengths, _ in parts):
        return parts[0][0]
    total = math.fsum(weight for _, weight in parts)
    shares: dict[int, float] = {}
    for lengths, weight in parts:
        for tokens, share in zip(lengths.tokens, lengths.shares, strict=True):
            shares[tokens] = shares.get(tokens, 0.0) + share * weight / total
    return Lengths(tuple(sorted(shares)), tuple(shares[tokens] for tokens in sorted(shares)))
