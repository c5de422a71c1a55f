"""Tokens served, and money per token."""

import math
from dataclasses import dataclass

from solver.tco.errors import CostInputError
from solver.tco.figures import Quantity
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MILLION


@dataclass(frozen=True, slots=True)
class TokenDemand:
    """What every alternative must serve: requests in the peak hour, and mean tokens of one request."""

    requests_per_s: float
    input_tokens: float
    output_tokens: float
    cached_fraction: float = 0.0
    """Share of the input that is answered from a prompt cache."""

    def __post_init__(self) -> None:
        for name in ("requests_per_s", "input_tokens", "output_tokens"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise CostInputError(name, f"must be finite and not negative; got {value:g}")
        if not 0.0 <= self.cached_fraction <= 1.0:
            raise CostInputError("cached_fraction", f"must be between 0 and 1; got {self.cached_fraction:g}")


def tokens_per_month(
    requests_per_s: Quantity, tokens_per_request: Quantity, utilisation_fraction: Quantity
) -> Quantity:
    """Average demand over a month: peak rate · utilisation · tokens · seconds.

    >>> tokens_per_month(1.0, 100.0, 0.5)
    131400000.0
    """
    return requests_per_s * utilisation_fraction * tokens_per_request * HOURS_PER_MONTH * SECONDS_PER_HOUR


def api_usd(tokens: Quantity, usd_per_million: Quantity) -> Quantity:
    """
    >>> api_usd(2_500_000.0, 0.8)
    2.0
    """
    return tokens * usd_per_million / TOKENS_PER_MILLION


def usd_per_million(cost_usd: float, tokens: float) -> float | None:
    """The whole cost over so many tokens; None where none are served, since the quotient has no meaning.

    >>> usd_per_million(10.0, 5_000_000.0), usd_per_million(10.0, 0.0)
    (2.0, None)
    """
    return cost_usd * TOKENS_PER_MILLION / tokens if tokens > 0 else None


def usd_per_million_tokens_at_rate(
    usd_per_hour: float, tokens_per_s: float, utilisation_fraction: float = 1.0
) -> float:
    """Cost of a machine that serves ``tokens_per_s`` when busy, busy for ``utilisation_fraction`` of the time.

    Raises CostInputError at a utilisation or rate of 0: no token is served, so a cost per token is undefined.

    >>> usd_per_million_tokens_at_rate(3.6, 1000.0)
    1.0
    >>> usd_per_million_tokens_at_rate(3.6, 1000.0, 0.5)
    2.0
    """
    if tokens_per_s <= 0:
        raise CostInputError("tokens_per_s", "must be above 0 for a cost per token")
    if not 0 < utilisation_fraction <= 1:
        raise CostInputError("utilisation_fraction", "must be above 0 and at most 1 for a cost per token")
    return usd_per_hour * TOKENS_PER_MILLION / (tokens_per_s * utilisation_fraction * SECONDS_PER_HOUR)
