"""Targets, and workloads whose requests are of several kinds."""

import math
from collections import Counter
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from service.wire.quantities import (
    Answer,
    Basis,
    Interval,
    PercentileName,
    Percentiles,
    PositiveFraction,
    PositiveNumber,
    Request,
    at_most,
)
from service.wire.traffic import TrafficShape

MOST_CLASSES = 20
SHARES_TOLERANCE = 1e-6


def _p95_as_typed(value: Any) -> Any:
    """A bare number is the limit for 95 % of requests.

    >>> _p95_as_typed(800)
    {'p95': 800}
    """
    if isinstance(value, bool | str | list | tuple):
        raise ValueError('this must be a number, or an object such as {"p95": 800}')
    return {"p95": value} if isinstance(value, int | float) else value


TargetsByPercentile = Annotated[dict[PercentileName, PositiveNumber], BeforeValidator(_p95_as_typed)]


class TargetsIn(Request):
    """Upper limits by percentile: ``{"ttft_ms": {"p95": 1000}}``. What is left out is not limited."""

    ttft_ms: TargetsByPercentile = Field(default_factory=dict)
    tpot_ms: TargetsByPercentile = Field(default_factory=dict)
    e2e_ms: TargetsByPercentile = Field(default_factory=dict)
    ttfat_ms: TargetsByPercentile = Field(default_factory=dict)
    confidence_percent: Annotated[float, Field(ge=50, le=99, allow_inf_nan=False)] = 80.0
    """How sure the targets are to be met: at 50 the prediction itself decides, above it an upper quantile does."""


class TrafficClassIn(TrafficShape):
    """Requests of one kind: their shape, how many come, and what they must keep to.

    How many: ``requests_per_s``, or ``share_fraction`` of the workload's. targets: instead of the workload's, as a whole;
    null keeps to those.
    """

    name: Annotated[str, Field(min_length=1, max_length=120)]
    requests_per_s: PositiveNumber | None = None
    share_fraction: PositiveFraction | None = None
    targets: TargetsIn | None = None


def _consistent(classes: tuple[TrafficClassIn, ...]) -> tuple[TrafficClassIn, ...]:
    twice = sorted(name for name, count in Counter(one.name for one in classes).items() if count > 1)
    if twice:
        raise ValueError(f"names of traffic classes must differ; more than one is called {twice[0]!r}")
    for one in classes:
        if one.thinking_tokens is not None or (one.targets is not None and one.targets.ttfat_ms):
            raise ValueError(
                f"{one.name!r}: hidden tokens are not planned within traffic classes; state it as a workload of its own"
            )
        if one.media is not None:
            raise ValueError(
                f"{one.name!r}: {one.media_field} are not planned within traffic classes; state them as a workload of their own"
            )
        if one.sessions is not None:
            raise ValueError(
                f"{one.name!r}: sessions are not planned within traffic classes; state them as a workload of their own"
            )
        if (one.requests_per_s is None) == (one.share_fraction is None):
            raise ValueError(f"{one.name!r}: state either requests_per_s or share_fraction")
    shares = [one.share_fraction for one in classes if one.share_fraction is not None]
    if shares and len(shares) < len(classes):
        raise ValueError("state requests_per_s of every class, or share_fraction of every class")
    if shares and abs(math.fsum(shares) - 1.0) > SHARES_TOLERANCE:
        raise ValueError(f"share_fraction of all classes sums to {math.fsum(shares):.6g}, not to 1")
    return classes


def without_classes(stated: Any) -> Any:
    """Looks at a workload whose demand varies over time, before its fields are read."""
    if isinstance(stated, dict) and stated.get("traffic_classes") is not None:
        raise ValueError(
            "traffic_classes are not planned over time; state each class as a workload with its own demand"
        )
    return stated


TrafficClasses = Annotated[
    tuple[TrafficClassIn, ...],
    Field(min_length=1, max_length=MOST_CLASSES),
    at_most(MOST_CLASSES, "traffic classes"),
    AfterValidator(_consistent),
]


class ServedStream(NamedTuple):
    """What a workload is served of one kind. name: None where it has one kind only. place: its field in the workload."""

    name: str | None
    place: str
    shape: TrafficShape
    requests_per_s: float
    targets: TargetsIn


class ClassPredictedOut(Answer):
    """Latencies of one class's requests among the others on a replica, and what of them all replicas of the line put out."""

    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles
    output_tokens_per_s: Interval


class ClassLineOut(Answer):
    """One traffic class on the replicas of a line. share_fraction: of what the plan serves of the class."""

    traffic_class: str
    serves_requests_per_s: float
    share_fraction: float
    predicted: ClassPredictedOut | None
    """Null in alternatives."""
    basis: Basis
