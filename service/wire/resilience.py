"""What a plan must survive, where workloads may run, and accounts' quotas: parts of a recommendation's request."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.wire.quantities import Answer, Commitment, Name, PositiveFraction, Request

MOST_PLACES = 1_000
MOST_QUOTAS = 200

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_PLACES)]


class FaultToleranceIn(Request):
    """N−k by construction: after the loss of any so many, what remains still serves all demand.

    Kinds are lost one at a time. nodes: replicas of lost nodes restart on idle spares of the same kind. providers,
    regions: the replicas elsewhere take the traffic at once.
    """

    nodes: Annotated[int, Field(ge=0, le=100)] = 0
    providers: Annotated[int, Field(ge=0, le=10)] = 0
    regions: Annotated[int, Field(ge=0, le=10)] = 0
    utilisation_limit_fraction: PositiveFraction = 1.0
    """Share of a replica's capacity that may be used after the loss of providers or regions."""


class PlacesIn(Request):
    """Names a workload is pinned to (``only``) or kept out of (``never``); null leaves it open."""

    only: Names | None = None
    never: Annotated[tuple[Name, ...], Field(max_length=MOST_PLACES)] = ()


class QuotaIn(Request):
    """At most ``max_devices`` devices over all offers that match; what is null matches every offer."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    max_devices: Annotated[int, Field(ge=0, le=10_000_000)]
    providers: Names | None = None
    regions: Names | None = None
    devices: Names | None = None
    commitments: Annotated[tuple[Commitment, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.providers is None and self.regions is None and self.devices is None and self.commitments is None:
            raise ValueError("a quota names providers, regions, devices or commitments")
        return self


class LossOut(Answer):
    """The worst loss of its kind for one workload."""

    workload: str
    kind: str
    """provider | region"""
    lost: list[str]
    utilisation_fraction: float
    """Of the capacity of the replicas that remain, when they take all the traffic."""


class ServedOut(Answer):
    """The share of its traffic that a workload is served."""

    workload: str
    priority: int
    served_fraction: float
