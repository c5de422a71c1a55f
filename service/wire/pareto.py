"""POST /v1/recommendations/{id}/pareto: fronts of cost against one other thing."""

from typing import Annotated, Literal

from pydantic import Field

from service.wire.quantities import Answer, Name, PositiveNumber, Request, Usd, at_most
from service.wire.requirement_names import Against
from service.wire.why import BaseOut, MissOut, SolvedOut, TimeLimit

MOST_POINTS = 20
MOST_REGIONS = 200
GridIntensity = Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)]


class ParetoIn(Request):
    """against: a target by its path, such as ``targets.ttft_ms.p95``, ``power_kw`` or ``carbon_kg_co2e_per_hour``.
    workload: whose target is moved; may be left out where there is one."""

    against: Against
    workload: Name | None = None
    traffic_class: Name | None = None
    """Whose target is moved; null moves the workload's own, for all of its classes that keep to it."""
    points: (
        Annotated[
            tuple[PositiveNumber, ...], Field(min_length=1, max_length=MOST_POINTS), at_most(MOST_POINTS, "points")
        ]
        | None
    ) = None
    """Limits to solve at, in the unit of ``against``; null chooses some from the tightest that has a plan to the one
    at which cost stops falling."""
    grid_kg_co2e_per_kwh_by_region: dict[Name, GridIntensity] = Field(default_factory=dict, max_length=MOST_REGIONS)
    """Of the electricity in regions whose grid the catalog does not know, or knows otherwise; against carbon only."""
    time_limit_s: TimeLimit = 10.0
    """For all solves of this call together."""


class FrontPointOut(Answer):
    """A plan that no other one found is both no dearer and no worse than.

    limit: what it was made to keep. value: what it is compared by: the target kept at its utilisation limit, or its
    power at full use, or what the electricity for that emits. predicted: the percentile at the planned rate, the slowest
    line's; null for power and carbon.
    """

    limit: float
    value: float
    predicted: float | None
    is_recommended: bool
    """It rents what the recommendation rents."""
    solved: SolvedOut


class DominatedOut(Answer):
    """A plan found on the way. by: the value of the front's point that is no dearer and no worse."""

    limit: float
    value: float
    usd_per_hour: Usd
    by: float


class UnreachedOut(Answer):
    """A limit without a plan: there is none, or it was not found in time. Null is no limit at all."""

    limit: float | None
    outcome: Literal["infeasible", "not_in_time"]
    reasons: list[MissOut]


class StretchOut(Answer):
    """Limits above ``above`` and up to ``up_to``. complete: proven that no plan in between is cheaper than that of
    ``above``; else sampled: plans there cost at least ``usd_per_hour_at_least``, the cheapest at most the other."""

    above: float
    up_to: float
    complete: bool
    usd_per_hour_at_least: Usd
    usd_per_hour_at_most: Usd | None


class UnmeteredOut(Answer):
    """Offers that are left out for a figure: of one node type, or of one provider's region, whose grid nobody names."""

    node: str | None
    provider: str | None
    region: str | None
    reason: Literal["figure_missing"]
    figure: str
    offers: int


class GridOut(Answer):
    """Electricity of one provider's region. What its nodes emit is their power × both figures."""

    provider: str
    region: str
    place: str | None
    grid: str | None
    """Null where the request states the intensity."""
    grid_kg_co2e_per_kwh: float
    power_usage_effectiveness: float
    sources: list[str]


class ParetoOut(Answer):
    """points: by value. none_below: no plan keeps a limit below it; null where that is not known. reaches_cheapest: no
    limit looser than the last point's saves more. complete: no other plan belongs on the front."""

    base: BaseOut
    against: str
    workload: str | None
    traffic_class: str | None = None
    points: list[FrontPointOut]
    dominated: list[DominatedOut]
    unreached: list[UnreachedOut]
    stretches: list[StretchOut]
    none_below: float | None
    reaches_cheapest: bool
    complete: bool
    left_out: list[UnmeteredOut]
    grids: list[GridOut]
    """Against carbon: of every region that a plan of ``points`` is in."""
    seconds: float
