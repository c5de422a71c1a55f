"""POST /v1/fleets: workloads with demand over time in, what to own, reserve and rent by the hour out."""

import sys
from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from service.wire.operating import Operation, OperationIn
from service.wire.owning import MOST_SITES, OwnSiteIn
from service.wire.quantities import (
    Commitment,
    Instant,
    Name,
    PositiveFraction,
    PositiveNumber,
    Request,
    TokenCount,
    at_most,
)
from service.wire.recommendations import MOST_NAMES, NetworkMs, OfferLimitIn, PrecisionChoiceIn
from service.wire.resilience import PlacesIn
from service.wire.sourcing import Sourcing, SourcingIn
from service.wire.traffic import TrafficShape
from service.wire.traffic_classes import TargetsIn, without_classes

MOST_WORKLOADS = 20
MOST_POINTS = 600_000
"""A year of minutes has 525,600."""
MOST_MONTHS = 60
HOUR_S = 3600
HOURS_PER_MONTH = 730

Rate = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Day = Annotated[tuple[Rate, ...], Field(min_length=24, max_length=24)]
GrowthPercent = Annotated[float, Field(gt=-100, le=1000, allow_inf_nan=False)]


class ProfileIn(Request):
    """Requests per second by hour of day. ``monthly_factors``: for January to December, or any twelve months."""

    kind: Literal["profile"]
    weekday_requests_per_s: Day
    weekend_requests_per_s: Day | None = None
    """Null: as on weekdays."""
    monthly_factors: Annotated[tuple[Rate, ...], Field(min_length=12, max_length=12)] | None = None
    growth_percent_per_month: GrowthPercent = 0.0

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not any(self.weekday_requests_per_s) and not any(self.weekend_requests_per_s or ()):
            raise ValueError("the demand is zero at every hour")
        return self


class PointIn(Request):
    at: Instant
    requests_per_s: Rate


def _numbers(values: Any) -> Any:
    """A hole in a long list is one error that names its place."""
    if not isinstance(values, list | tuple):
        return values
    if len(values) > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points; these are {len(values)}")
    for i, value in enumerate(values):
        if value is None:
            raise ValueError(f"the series has a gap: no value at position {i}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"position {i} holds no number")
        if not abs(value) <= sys.float_info.max:  # whole numbers may have more digits than a float holds
            raise ValueError(f"position {i} holds {str(value)[:20]}, not a finite number")
        if value < 0:
            raise ValueError(f"position {i} is negative ({value:g})")
    return values


class SeriesIn(Request):
    """Measured or forecast demand from the start of the horizon on, without gaps; repeated until the horizon's end.

    Either ``step_s`` and ``requests_per_s``, or ``points`` with equal steps. A step divides an hour or is whole hours.
    """

    kind: Literal["series"]
    step_s: Annotated[int, Field(ge=1, le=31 * 24 * HOUR_S)] | None = None
    requests_per_s: tuple[Rate, ...] | None = None
    points: Annotated[tuple[PointIn, ...], Field(min_length=2), at_most(MOST_POINTS, "points")] | None = None
    growth_percent_per_month: GrowthPercent = 0.0

    _whole = field_validator("requests_per_s", mode="before")(_numbers)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.points is None) == (self.requests_per_s is None):
            raise ValueError("state either points, or step_s with requests_per_s")
        if (self.step_s is None) != (self.requests_per_s is None):
            raise ValueError("requests_per_s needs step_s, the seconds between two values; points have their own")
        if self.points is not None:
            _check_times(self.points)
        if HOUR_S % self.step and self.step % HOUR_S:
            raise ValueError(f"a step of {self.step} s neither divides an hour nor is whole hours")
        if not any(self.rates):
            raise ValueError("the demand is zero at every point")
        if len(self.rates) * self.step < HOUR_S:
            raise ValueError("a series covers at least one hour")
        return self

    @property
    def step(self) -> int:
        """Seconds between two values."""
        if self.step_s is not None:
            return self.step_s
        assert self.points is not None
        return round((self.points[1].at - self.points[0].at).total_seconds())

    @property
    def rates(self) -> tuple[float, ...]:
        if self.requests_per_s is not None:
            return self.requests_per_s
        assert self.points is not None
        return tuple(point.requests_per_s for point in self.points)


def _check_times(points: tuple[PointIn, ...]) -> None:
    step = (points[1].at - points[0].at).total_seconds()
    for i in range(1, len(points)):
        seconds = (points[i].at - points[i - 1].at).total_seconds()
        if seconds <= 0:
            raise ValueError(
                f"time does not go on: points/{i} is at {points[i].at.isoformat()}, not after the one before"
            )
        if seconds > step * 1.000001:
            raise ValueError(f"the series has a gap of {seconds:g} s before points/{i}; its step is {step:g} s")
        if seconds < step * 0.999999:
            raise ValueError(f"points/{i} follows after {seconds:g} s; the step of the series is {step:g} s")
    if step != round(step):
        raise ValueError("the step of a series is whole seconds")


Demand = Annotated[ProfileIn | SeriesIn, Field(discriminator="kind")]


class BatchIn(Request):
    """Work that may be done at any hour of the months [from_month, to_month); it fills what others leave over."""

    requests: PositiveNumber
    from_month: Annotated[int, Field(ge=0)] = 0
    to_month: Annotated[int, Field(ge=1)] | None = None
    """The deadline: done before this month begins; null means the end of the horizon."""


class FleetWorkloadIn(Request):
    """One stream of requests to one model: ``demand`` over time, or ``batch`` work with a deadline."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    llm: Name
    context_tokens: TokenCount | None = None
    traffic: TrafficShape
    demand: Demand | None = None
    batch: BatchIn | None = None
    targets: TargetsIn = TargetsIn()
    precision: PrecisionChoiceIn = PrecisionChoiceIn()
    utilisation_limit_fraction: PositiveFraction = 0.85
    regions: PlacesIn = PlacesIn()
    providers: PlacesIn = PlacesIn()
    """Bought nodes are of the provider ``own``."""
    network_ms_by_region: Annotated[dict[Name, NetworkMs], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    """Round trip between the users and each region that may be used; counts towards TTFT and e2e."""

    _one_traffic = model_validator(mode="before")(without_classes)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.demand is None) == (self.batch is None):
            raise ValueError("a workload has either demand or batch")
        return self


class HorizonIn(Request):
    """``months`` of 730 hours. ``periods_per_month``: most representative periods; 48 hold a profile exactly."""

    months: Annotated[int, Field(ge=1, le=MOST_MONTHS)] = 12
    periods_per_month: Annotated[int, Field(ge=1, le=200)] = 48


PLACE_FIELDS = ("max_providers", "max_regions", "max_device_types")


class FleetLimitsIn(Request):
    """What the fleet must stay within; null leaves a choice open."""

    devices: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    providers: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    regions: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    commitments: Annotated[tuple[Commitment, ...], Field(min_length=1)] | None = None
    """Null: every kind whose term fits; spot only with ``spot``, ``purchase`` only with ``own``."""
    offers: dict[str, OfferLimitIn] = Field(default_factory=dict, max_length=MOST_NAMES)
    sourcing: Sourcing = SourcingIn(max_providers=None, max_regions=None, max_device_types=None)
    """The buying policy: its rules about offers. How many places a workload is in is not bounded over time."""
    operation: Operation = OperationIn()
    """What makes the plan one that people can run."""
    max_nodes_per_offer: Annotated[int, Field(ge=1, le=100_000)] = 1_000

    @field_validator("sourcing", mode="before")
    @classmethod
    def _places_are_open(cls, value: Any) -> Any:
        """Refused where it bounds places; what it leaves out stays open."""
        if not isinstance(value, dict):
            return value
        bounded = sorted(name for name in PLACE_FIELDS if value.get(name) is not None)
        if bounded:
            raise ValueError(
                f"{' and '.join(bounded)}: how many places a workload is in is not planned over time; leave null"
            )
        return {**value, **dict.fromkeys(PLACE_FIELDS)}


class SpotIn(Request):
    """Interruptible nodes. Null figures are the catalog's, and echoed with their source.

    availability_fraction: share of time in which the nodes that are left, without spares, are as many as planned.
    reclaims_at_once: nodes of a type that may be taken together without harm.
    """

    max_fraction: PositiveFraction
    interruptions_per_node_month: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] | None = None
    lost_hours_per_interruption: Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)] | None = None
    availability_fraction: Annotated[float, Field(ge=1e-9, lt=1, allow_inf_nan=False)] = 0.999
    reclaims_at_once: Annotated[int, Field(ge=0, le=16)] = 1


class FleetIn(Request):
    workloads: Annotated[
        tuple[FleetWorkloadIn, ...],
        Field(min_length=1, max_length=MOST_WORKLOADS),
        at_most(MOST_WORKLOADS, "workloads"),
    ]
    horizon: HorizonIn = HorizonIn()
    limits: FleetLimitsIn = FleetLimitsIn()
    spot: SpotIn | None = None
    own: Annotated[tuple[OwnSiteIn, ...], Field(max_length=MOST_SITES)] = ()
    """Places where machines may be bought and run."""
    discount_rate_percent_per_year: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    """Null: 0, or with ``own`` the catalog's cost of capital of its operator."""
    commitment_tail: Literal["inside", "liability"] = "inside"
    """``inside``: a term ends within the horizon. ``liability``: it may end later, and all its payments count."""
    price_as_of: Instant | None = None
    time_limit_s: Annotated[float, Field(ge=1e-9, le=300, allow_inf_nan=False)] = 60.0
    gap_fraction: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.01

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [w.name for w in self.workloads]
        twice = sorted(n for n, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"workload names must differ; more than one is called {twice[0]!r}")
        if all(w.demand is None for w in self.workloads):
            raise ValueError("a fleet needs a workload with demand")
        if self.spot is None and self.limits.commitments is not None and "spot" in self.limits.commitments:
            raise ValueError("limits.commitments names spot; state `spot` with its share too")
        kinds = self.limits.commitments
        if kinds is not None and bool(self.own) != ("purchase" in kinds):
            raise ValueError(
                "limits.commitments leaves out purchase, but `own` states where machines may be bought"
                if self.own
                else "limits.commitments names purchase; state in `own` where machines may be bought"
            )
        places = [site.region for site in self.own]
        again = next((region for region in places if places.count(region) > 1), None)
        if again is not None:
            raise ValueError(f"own has two sites in the region {again!r}")
        return self
