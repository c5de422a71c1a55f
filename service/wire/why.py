"""Questions about a stored recommendation. Answers are computed when asked and not stored."""

import datetime as dt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.plan_lines import PlanLineOut
from service.wire.quantities import LARGEST, Answer, KvCacheFormat, Name, Request, Usd, WeightFormat
from service.wire.recommendations import InputsOut
from service.wire.requirement_names import CurveOf

MOST_THINGS = 20
Degree = Annotated[int, Field(ge=1, le=4_096)]
PositiveOrZero = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
TimeLimit = Annotated[float, Field(ge=1e-9, le=300, allow_inf_nan=False)]
SolvedOutcome = Literal["optimal", "feasible", "infeasible", "not_in_time"]


class PrecisionFilterIn(Request):
    """Formats that are meant; what is left out is free."""

    weights: WeightFormat | None = None
    kv_cache: KvCacheFormat | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.weights is None and self.kv_cache is None:
            raise ValueError("name weights, kv_cache or both")
        return self


class LayoutFilterIn(Request):
    """Degrees of one replica that are meant; what is left out is free."""

    tensor_parallel: Degree | None = None
    pipeline_parallel: Degree | None = None
    data_parallel: Degree | None = None
    expert_parallel: Degree | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if not self.model_fields_set or all(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError("name at least one degree")
        return self


Names = Annotated[tuple[Name, ...], Field(max_length=MOST_THINGS)]


class WhyNotIn(Request):
    """Things the plan does without. workload: whose replicas are meant; null is anybody's."""

    devices: Names = ()
    offers: Names = ()
    providers: Names = ()
    precisions: Annotated[tuple[PrecisionFilterIn, ...], Field(max_length=MOST_THINGS)] = ()
    layouts: Annotated[tuple[LayoutFilterIn, ...], Field(max_length=MOST_THINGS)] = ()
    partitions: Names = ()
    """Profiles of split devices."""
    workload: Name | None = None
    time_limit_s: TimeLimit = 10.0
    """For all solves of this call together."""

    @model_validator(mode="after")
    def _names_some(self) -> Self:
        things = (self.devices, self.offers, self.providers, self.precisions, self.layouts, self.partitions)
        count = sum(len(named) for named in things)
        if not 1 <= count <= MOST_THINGS:
            raise ValueError(
                f"name between 1 and {MOST_THINGS} devices, offers, providers, precisions, layouts and partitions"
            )
        return self


class BaseOut(Answer):
    """The plan that answers are compared with: the recommendation, solved again from its request and price instant.

    changed: what differs from when it was stored (``catalog_digest``, ``correction_set``, ``version``), and whether
    the plan's price does (``usd_per_hour``); empty where the same inputs gave the same price.
    """

    recommendation: str
    outcome: Literal["optimal", "feasible", "infeasible"]
    usd_per_hour: Usd | None
    gap_fraction: float | None
    stored_usd_per_hour: Usd | None
    stored_at: dt.datetime
    inputs: InputsOut
    changed: list[str]


class SolvedOut(Answer):
    """A changed request, solved and confirmed like any other.

    extra_usd_per_hour: above the base plan; below zero where it is cheaper, null where the difference is within the
    gaps of the two solves (``measurable`` false). extra_power_kw, less_served_fraction: the same for recommendations
    whose objective is power or throughput.
    """

    outcome: SolvedOutcome
    usd_per_hour: Usd | None
    gap_fraction: float | None
    measurable: bool
    extra_usd_per_hour: Usd | None
    extra_power_kw: float | None
    less_served_fraction: float | None
    says: str
    plan: list[PlanLineOut]


class MissOut(Answer):
    """Why candidates serve nothing: ``detail`` in words; for a missed target its limit and by how much, at best."""

    workload: str | None
    traffic_class: str | None = None
    reason: str
    detail: str
    limit: str | None = None
    best_ms: float | None = None
    target_ms: float | None = None
    above_percent: float | None = None


class WhyNotAnswerOut(Answer):
    """One thing. excluded_by: limits of the request that leave it out; it is priced as if they did not.

    forced_in: at least one replica on it, all else free. only: the named workload on nothing else (null without one).
    """

    kind: Literal["device", "offer", "provider", "precision", "layout", "partition"]
    name: str
    in_plan: bool
    excluded_by: list[str]
    forced_in: SolvedOut
    only: SolvedOut | None
    reasons: list[MissOut]
    limits: list[str]
    """Limits of the request that together leave no plan with it, where its candidates could serve."""


class WhyNotOut(Answer):
    base: BaseOut
    answers: list[WhyNotAnswerOut]
    seconds: float


class PriceCurveIn(Request):
    """of: a target by its path, such as ``targets.ttft_ms.p95``, or ``context_tokens``, ``confidence_percent``,
    ``spare_nodes``, ``requests_per_s``. workload: may be left out where there is one, and for spare nodes."""

    of: CurveOf
    workload: Name | None = None
    traffic_class: Name | None = None
    """Whose target is moved; null moves the workload's own, for all of its classes that keep to it."""
    points: Annotated[tuple[PositiveOrZero, ...], Field(min_length=1, max_length=MOST_THINGS)] | None = None
    """Values in the requirement's own unit; null chooses some around the request's own."""
    time_limit_s: TimeLimit = 10.0


class CurvePointOut(Answer):
    value: float
    is_requested: bool
    """The value the recommendation was made with."""
    solved: SolvedOut
    reasons: list[MissOut]


class PriceCurveOut(Answer):
    base: BaseOut
    of: str
    workload: str | None
    traffic_class: str | None = None
    says: str
    """What the points say together: whether price moves with the requirement, from where to where."""
    points: list[CurvePointOut]
    seconds: float


class NearOptimalIn(Request):
    """Plans that cost at most so much more."""

    within_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 5.0
    count: Annotated[int, Field(ge=1, le=10)] = 3
    time_limit_s: TimeLimit = 10.0


class WithoutOut(Answer):
    """The cheapest plan without one device or offer of the plan. indispensable: there is none within the percentage;
    null where that is not known: not answered in time, or a gap leaves it open."""

    kind: Literal["device", "offer"]
    name: str
    indispensable: bool | None
    solved: SolvedOut


class NearPlanOut(Answer):
    """A plan within the percentage. without: what it was made to do without."""

    without: list[str]
    solved: SolvedOut


class NearOptimalOut(Answer):
    base: BaseOut
    within_percent: float
    plans: list[NearPlanOut]
    diversity_proven: bool
    """Whether no other plans within the percentage differ more; false: they differ, by leaving things out."""
    without: list[WithoutOut]
    seconds: float
