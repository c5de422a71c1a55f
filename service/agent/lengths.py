"""How long prompts and answers are: the distributions of the wire contract, drawn with a seeded generator."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol


class LengthDistribution(Protocol):
    """A distribution of token counts."""

    def draw(self, generator: random.Random) -> int: ...

    def as_json(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class FixedTokens:
    """Every request has the same number of tokens."""

    tokens: int

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"a length is at least one token, got {self.tokens}")

    def draw(self, generator: random.Random) -> int:  # noqa: ARG002 - every distribution is drawn the same way
        return self.tokens

    def as_json(self) -> dict[str, object]:
        return {"distribution": "fixed", "tokens": self.tokens}


@dataclass(frozen=True)
class UniformTokens:
    """Whole numbers from `low` to `high`, both included, equally likely."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise ValueError(f"lengths need 1 <= low <= high, got {self.low} … {self.high}")

    def draw(self, generator: random.Random) -> int:
        return generator.randint(self.low, self.high)

    def as_json(self) -> dict[str, object]:
        return {"distribution": "uniform", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class LognormalTokens:
    """A lognormal stated by its mean and 95th percentile, rounded, kept between one token and `maximum`."""

    mean: float
    p95: float
    maximum: int

    def __post_init__(self) -> None:
        if not 0 < self.mean < self.p95:
            raise ValueError(f"a lognormal needs 0 < mean < p95, got mean {self.mean}, p95 {self.p95}")
        if self._discriminant() < 0:
            raise ValueError(f"no lognormal has a p95 of {self.p95 / self.mean:.2f} times its mean")

    @property
    def sigma(self) -> float:
        """The standard deviation of the logarithm.

        With z the 95 % quantile of the standard normal, mean = exp(μ + σ²/2) and p95 = exp(μ + z·σ), hence
        σ²/2 − z·σ + ln(p95/mean) = 0, of which the smaller root is taken: the less skewed of the two.

        >>> round(LognormalTokens(mean=1200, p95=4000, maximum=8192).sigma, 4)
        1.0993
        """
        return NormalDist().inv_cdf(0.95) - math.sqrt(self._discriminant())

    def _discriminant(self) -> float:
        return NormalDist().inv_cdf(0.95) ** 2 - 2.0 * math.log(self.p95 / self.mean)

    def draw(self, generator: random.Random) -> int:
        mu = math.log(self.mean) - self.sigma**2 / 2.0
        return min(max(round(generator.lognormvariate(mu, self.sigma)), 1), self.maximum)

    def as_json(self) -> dict[str, object]:
        return {"distribution": "lognormal", "mean": self.mean, "p95": self.p95}
