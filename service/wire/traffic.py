"""Token lengths, traffic and load."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.wire.quantities import Fraction, PositiveNumber, Request, TokenCount

MOST_BINS = 1_000


class FixedLength(Request):
    distribution: Literal["fixed"]
    tokens: TokenCount


class UniformLength(Request):
    """Whole numbers, each from ``low`` to ``high`` equally likely."""

    distribution: Literal["uniform"]
    low: TokenCount
    high: TokenCount

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class LognormalLength(Request):
    distribution: Literal["lognormal"]
    mean: Annotated[float, Field(ge=1, le=10_000_000, allow_inf_nan=False)]
    p95: Annotated[float, Field(ge=1, le=10_000_000, allow_inf_nan=False)]


class HistogramBin(Request):
    tokens: TokenCount
    share: Annotated[float, Field(ge=1e-9, le=1, allow_inf_nan=False)]


class HistogramLength(Request):
    """Shares that sum to 1, one for each token count."""

    distribution: Literal["histogram"]
    histogram: Annotated[tuple[HistogramBin, ...], Field(min_length=1, max_length=MOST_BINS)]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = sum(b.share for b in self.histogram)
        if abs(total - 1.0) > 1e-6:
            raise ValueError(f"shares sum to {total:.6g}, not to 1")
        if len({b.tokens for b in self.histogram}) != len(self.histogram):
            raise ValueError("a token count occurs twice")
        return self


def _length_as_typed(value: Any) -> Any:
    """A number is that length for all; ``mean`` with ``p95``, ``low`` with ``high`` and ``tokens`` say which form they are.

    >>> _length_as_typed(1000), _length_as_typed({"mean": 1200, "p95": 4000})
    ({'distribution': 'fixed', 'tokens': 1000}, {'mean': 1200, 'p95': 4000, 'distribution': 'lognormal'})
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"distribution": "fixed", "tokens": value}
    if isinstance(value, dict) and "distribution" not in value:
        for form, fields in FORMS.items():
            if value.keys() == fields:
                return value | {"distribution": form}
    return value


FORMS = {
    "fixed": {"tokens"}, "uniform": {"low", "high"}, "lognormal": {"mean", "p95"}, "histogram": {"histogram"},
}  # fmt: skip
Lengths = Annotated[
    Annotated[FixedLength | UniformLength | LognormalLength | HistogramLength, Field(discriminator="distribution")],
    BeforeValidator(_length_as_typed),
]
"""Token lengths: one of four distributions, or a number for all alike."""


OverContext = Literal["clip", "refuse"]
"""What becomes of requests longer than the context: an engine ends them there (``clip``), or they are an error."""


class TrafficShape(Request):
    """Lengths of requests. ``shared_prefix_fraction``: share of every prompt that is already cached."""

    prompt_tokens: Lengths
    output_tokens: Lengths
    shared_prefix_fraction: Fraction = 0.0


class Traffic(TrafficShape):
    """Requests and how many of them arrive each second.

    Null where as many as possible are to be served (objective throughput): each such workload then counts alike.
    """

    requests_per_s: PositiveNumber | None = None


class ClosedLoad(Request):
    """``concurrency`` clients, each sends its next request when the last is answered; all start at once."""

    kind: Literal["closed"]
    concurrency: Annotated[int, Field(ge=1, le=100_000)]
    requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class OpenLoad(Request):
    """Poisson arrivals."""

    kind: Literal["open"]
    requests_per_s: PositiveNumber
    requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


Load = Annotated[ClosedLoad | OpenLoad, Field(discriminator="kind")]
