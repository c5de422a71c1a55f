"""JSON of training plans: jobs in, machines, layouts, dates and cost out."""

import datetime as dt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.deployments import DeploymentFileOut, DeploymentNoteOut
from service.wire.fleet_answers import CommitmentLeftOutOut
from service.wire.owning import MOST_SITES, DiscountOut, OwnSiteIn, OwnUsedOut
from service.wire.quantities import (
    Answer,
    Basis,
    Commitment,
    Fraction,
    Instant,
    Interval,
    Name,
    Request,
    Usd,
    UsdIn,
    at_most,
)
from service.wire.recommendations import MOST_NAMES, InputsOut, OfferLimitIn
from service.wire.sourcing import Sourcing, SourcingIn
from service.wire.tco import HOURS_PER_DAY
from service.wire.training import Ranks, TrainingCase, TrainingLayoutOut, TrainingMemoryOut

MOST_TRAINING_JOBS = 10
Names = Annotated[tuple[Name, ...], at_most(1_000, "names"), Field(min_length=1)]


class TrainingJobIn(TrainingCase):
    """One model to train: on ``tokens``, or on ``samples`` of a sequence each (dpo: of two), ``epochs`` times."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    tokens: Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] | None = None
    samples: Annotated[int, Field(ge=1, le=10**12)] | None = None
    epochs: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)] = 1.0
    deadline: Instant | None = None
    max_usd: UsdIn | None = None
    max_devices: Ranks = 4_096

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if (self.tokens is None) == (self.samples is None):
            raise ValueError("say how much is trained on: tokens, or samples (of sequence_tokens each)")
        if self.samples is not None and self.sequence_tokens is None:
            raise ValueError("samples are of sequence_tokens each: state them too")
        return self


class TrainingLimitsIn(Request):
    """What may be rented."""

    devices: Names | None = None
    providers: Names | None = None
    regions: Names | None = None
    commitments: Annotated[tuple[Commitment, ...], Field(min_length=1)] = ("on_demand",)
    offers: dict[str, OfferLimitIn] = Field(default_factory=dict, max_length=MOST_NAMES)
    """Offers by name, with the most nodes of each that all jobs together may hold at a time."""
    sourcing: Sourcing = SourcingIn()
    max_usd: UsdIn | None = None
    spot_preemptions_per_node_hour: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _spot_is_interrupted(self) -> Self:
        if "spot" in self.commitments and self.spot_preemptions_per_node_hour is None:
            raise ValueError("spot capacity is taken back: state spot_preemptions_per_node_hour")
        return self


class TrainingRecommendationIn(Request):
    """Jobs that share offers and a budget."""

    jobs: Annotated[tuple[TrainingJobIn, ...], at_most(MOST_TRAINING_JOBS, "jobs"), Field(min_length=1)]
    limits: TrainingLimitsIn = TrainingLimitsIn()
    beside_fleet: Name | None = None
    """A stored fleet (POST /v1/fleets): jobs may use the nodes that it has reserved or bought at the hours of the day at which it leaves
    them idle, and share the quotas of its request. Its month 0 begins with the plan."""
    serving: Name | None = None
    """A stored recommendation, served from the plan's beginning until the last deadline by its plan or one of its alternatives: whichever
    makes serving and training together cheapest within what offers have. Its cost counts against ``limits.max_usd`` of the plan."""
    serving_hourly_profile: (
        Annotated[tuple[Fraction, ...], Field(min_length=HOURS_PER_DAY, max_length=HOURS_PER_DAY)] | None
    ) = None
    """Nodes rented by the hour are given back when they are not needed; jobs may use the others then, at no further cost. Null: as much
    all day."""
    own: Annotated[tuple[OwnSiteIn, ...], Field(max_length=MOST_SITES)] = ()
    """Places where machines may be bought, at the plan's beginning, as fleets over time have them. What is minimised is then present
    value; budgets are of what is paid, less what machines are sold for."""
    own_months: Annotated[int, Field(ge=1, le=240)] | None = None
    """Months after the beginning at which bought machines are sold at their value then, or at the end of their life if that comes
    first; null: the months until the last deadline, 12 where a job has none."""
    discount_rate_percent_per_year: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    """Null: 0, or with ``own`` the catalog's cost of capital of its operator."""
    starts_at: Instant | None = None
    price_as_of: Instant | None = None
    time_limit_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10.0

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [job.name for job in self.jobs]
        if len(set(names)) < len(names):
            raise ValueError("two jobs have the same name")
        if self.serving is not None and self.beside_fleet is not None:
            raise ValueError("serving is planned with the jobs, beside_fleet is planned already: state one")
        if self.serving is not None and any(job.deadline is None for job in self.jobs):
            raise ValueError("serving lasts until the last deadline: state one of every job")
        if self.serving_hourly_profile is not None and self.serving is None:
            raise ValueError("serving_hourly_profile is of what is served: name a recommendation as serving")
        return self

    @model_validator(mode="after")
    def _buys_at_its_beginning(self) -> Self:
        if "purchase" in self.limits.commitments and not self.own:
            raise ValueError("limits.commitments names purchase; state in `own` where machines may be bought")
        if self.own_months is not None and not self.own:
            raise ValueError("own_months is of machines that may be bought: state in `own` where")
        places = [site.region for site in self.own]
        again = next((region for region in places if places.count(region) > 1), None)
        if again is not None:
            raise ValueError(f"own has two sites in the region {again!r}")
        if any(site.purchase_months not in (None, (0,)) for site in self.own):
            raise ValueError("jobs find machines bought at the plan's beginning: purchase_months is [0] or null")
        return self


class TrainingLineOut(Answer):
    """What one job rents, when, and how it runs on it."""

    job: str
    offer: str
    provider: str
    region: str
    node: str
    device: str
    nodes: int
    devices: int
    starts_at: dt.datetime
    finishes_at: dt.datetime
    daily_hours: list[int] = Field(default_factory=list)
    """Hours of each day at which it runs, 0 to 23 in the time of the fleet's demand or, beside ``serving``, in UTC; empty: all."""
    duration_days: Interval
    goodput_fraction: float
    tokens_per_s_per_device: Interval
    mfu_fraction: Interval
    layout: TrainingLayoutOut
    memory: TrainingMemoryOut
    basis: Basis
    evidence: list[str]
    stack: str
    sequence_tokens: int
    global_batch_sequences: int
    usd_per_node_hour: Usd | None = None
    """Null in plans stored before it was stated."""
    stated_on: dt.date | None = None
    """By its source; null for one's own, for nodes that are paid for already and in plans stored before it was stated."""
    price_age_days: int | None = None
    """At the instant that prices are of; null for one's own."""
    ask_for_quote: bool = Field(default_factory=bool)
    """Older than ``limits.sourcing.max_price_age_days``."""
    usd: Usd
    usd_low: Usd
    usd_high: Usd


class TrainingPointOut(Answer):
    """A way to do a job that no other is both cheaper and sooner than."""

    offer: str
    nodes: int
    duration_days: float
    usd: Usd


class TrainingFrontOut(Answer):
    """What ending a job sooner costs: the price of its deadline."""

    job: str
    points: list[TrainingPointOut]


class TrainingRelaxationOut(Answer):
    """One change that would make a plan of the job possible, with what it then costs."""

    job: str
    limit: str
    relaxing_to: str
    usd: Usd


class TrainingCommitmentOut(Answer):
    """Nodes paid for a whole term, or bought, whichever jobs hold them; ``usd`` is of all of it, of bought ones less what they are sold
    for. used_fraction: of their hours, by the jobs. due_at_start_usd: of bought ones, what is paid at once. lines: what ``usd`` of
    bought ones is made of; sales are negative."""

    offer: str
    commitment: str
    nodes: int
    term_months: int
    usd: Usd
    used_fraction: float
    present_usd: Usd | None = None
    due_at_start_usd: Usd | None = None
    lines: dict[str, Usd] | None = None


class TrainingBesideOut(Answer):
    """The fleet beside the jobs. usd: of fleet and jobs. joint_saving_at_most_usd: no plan of both together costs so much less, for the
    fleet's part alone costs no less than its own bound; null where none is stored. Of the fleet amounts are in present value."""

    fleet: str
    fleet_usd: Usd
    usd: Usd
    joint_saving_at_most_usd: Usd | None


class TrainingServedNodesOut(Answer):
    """``nodes_by_hour``: those that serve, in UTC; empty: all of them all day."""

    offer: str
    nodes: int
    nodes_by_hour: list[int] = Field(default_factory=list)


class TrainingServingOut(Answer):
    """Which of a recommendation's plans serves beside the jobs. why: the alternative's own reason; null: its plan. usd_apart: what
    serving and jobs would cost if serving took its cheapest plan first; null where it leaves the jobs too little."""

    recommendation: str
    why: str | None
    nodes: list[TrainingServedNodesOut]
    usd_per_hour: Usd
    usd: Usd
    usd_apart: Usd | None
    considered: int


class TrainingSolveOut(Answer):
    """How the plan was found. usd: of all jobs and ``commitments``, and of ``serving`` where it is planned with them; it and its bound
    are in present value, which is that of ``discount``. undiscounted_usd: as it is paid."""

    status: Literal["proven_optimal", "feasible", "proven_infeasible", "no_plan_found"]
    usd: Usd | None
    bound_usd: Usd | None
    undiscounted_usd: Usd | None = None
    candidates: int
    seconds: float


class TrainingResultOut(Answer):
    """The cheapest plan among all enumerated choices, or why there is none."""

    outcome: Literal["optimal", "feasible", "infeasible"]
    solve: TrainingSolveOut
    plan: list[TrainingLineOut]
    serving: TrainingServingOut | None = None
    """Null where nothing is served beside the jobs, or there is no plan."""
    commitments: list[TrainingCommitmentOut] = Field(default_factory=list)
    """What is paid for a term, or bought, rather than by the hour; lines on it cost nothing more."""
    beside: TrainingBesideOut | None = None
    own: list[OwnUsedOut] = Field(default_factory=list)
    """What owning was taken to cost, place by place."""
    left_out: list[CommitmentLeftOutOut] = Field(default_factory=list)
    """Machines that were not offered to the plan, and the figure they lack."""
    discount: DiscountOut = Field(default_factory=lambda: DiscountOut(percent_per_year=0.0, source="no rate is stated"))
    fronts: list[TrainingFrontOut]
    conflicts: list[str]
    relaxations: list[TrainingRelaxationOut]
    cautions: list[str]
    inputs: InputsOut
    training_digest: str


class TrainingRecommendationOut(TrainingResultOut):
    """The same with its address."""

    id: str
    link: str
    created_at: dt.datetime


class TrainingPlanSummaryOut(Answer):
    """A line of the list."""

    id: str
    created_at: dt.datetime
    outcome: str
    jobs: list[str]
    llms: list[str]
    usd: Usd | None


class TrainingWhyNotIn(Request):
    """A device, a provider or an offer that the plan does without, and which job is meant; null: every job."""

    device: Name | None = None
    provider: Name | None = None
    offer: Name | None = None
    job: Name | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if sum(one is not None for one in (self.device, self.provider, self.offer)) != 1:
            raise ValueError("ask about one thing: a device, a provider or an offer")
        return self


class TrainingWhyNotOut(Answer):
    """What the jobs would cost there: solved again with the same prices, dates and measured runs."""

    kind: Literal["device", "provider", "offer"]
    name: str
    in_plan: bool
    excluded_by: list[str]
    """Limits of the request that keep it out; the answer is without them."""
    outcome: Literal["optimal", "feasible", "infeasible"]
    usd: Usd | None
    extra_usd: Usd | None
    """Above what the stored plan costs."""
    plan: list[TrainingLineOut]
    commitments: list[TrainingCommitmentOut] = Field(default_factory=list)
    """What is paid for a term, or bought; lines on it cost nothing more."""
    reasons: list[str]
    """Why there is no plan there."""
    seconds: float


class TrainingDeploymentOut(Answer):
    """Files that start the plan's jobs; the same plan gives the same bytes."""

    recommendation: str
    target: str
    generator_version: str
    files: list[DeploymentFileOut]
    notes: list[DeploymentNoteOut]
