"""POST /v1/recommendations: workloads in, proven-cheapest cluster out."""

import datetime as dt
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.deployment import EngineIn, LayoutIn, PrecisionIn
from service.wire.devices import DeviceClass
from service.wire.offers import Confidence
from service.wire.providers import ProviderClass
from service.wire.quantities import (
    Answer,
    Basis,
    Commitment,
    Instant,
    Interval,
    KvCacheFormat,
    Name,
    Percentiles,
    PositiveFraction,
    PositiveNumber,
    Request,
    TokenCount,
    Usd,
    UsdIn,
    WeightFormat,
    at_most,
)
from service.wire.replanning import CurrentIn, ReplanningOut
from service.wire.resilience import MOST_QUOTAS, LossOut, PlacesIn, QuotaIn, ServedOut, SurviveIn
from service.wire.sourcing import Sourcing, SourcingIn
from service.wire.traffic import OverContext, Traffic
from service.wire.traffic_classes import ClassLineOut, Stream, TargetsIn, TrafficClasses

MOST_WORKLOADS = 50
MOST_NAMES = 5_000

Objective = Literal["cost", "throughput", "power"]
NetworkMs = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


ServingRole = Literal["aggregated", "disaggregated"]
LineRole = Literal["aggregated", "prefill", "decode"]


def _aggregated() -> LineRole:
    """The role of lines stored before there were others."""
    return "aggregated"


UNSTATED_RATE = 1.0
"""Requests per second of a workload that states none: as many of it as of any other that states none."""


class PrecisionChoiceIn(Request):
    """Formats the plan may choose from. Fewer bits are a choice of quality, so they are not taken unasked."""

    weights: Annotated[tuple[WeightFormat, ...], Field(min_length=1)] | None = None
    """Null: the format of the published checkpoint. What 8-bit weights and an 8-bit cache would save is then in the answer
    (``lower_precision``)."""
    kv_cache: Annotated[tuple[KvCacheFormat, ...], Field(min_length=1)] = ("bf16",)


class WorkloadIn(Request):
    """One stream of requests to one model: ``traffic``, or ``traffic_classes`` where they are of several kinds."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    llm: Name
    context_tokens: TokenCount | None = None
    """Longest context to be served, prompt and reply together; null means the longest that the traffic produces, as far as the
    model takes it. Everywhere the same: in plans, estimates and the settings handed to engines."""
    over_context: OverContext = "clip"
    traffic: Traffic | None = None
    traffic_classes: TrafficClasses | None = None
    requests_per_s: PositiveNumber | None = None
    """Of all traffic classes together, where they state shares of it."""
    targets: TargetsIn = TargetsIn()
    precision: PrecisionChoiceIn = PrecisionChoiceIn()
    utilisation_limit_fraction: PositiveFraction = 0.85
    min_replicas: Annotated[int, Field(ge=1, le=100_000)] = 1
    regions: PlacesIn = PlacesIn()
    providers: PlacesIn = PlacesIn()
    network_ms_by_region: Annotated[dict[Name, NetworkMs], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    """Round trip between the users and each region in which an offer may be used; counts towards TTFT and e2e."""
    priority: Annotated[int, Field(ge=-1_000, le=1_000)] = 0
    """Where not everyone can be served (``on_shortage``), lower ones are shed first."""
    roles: Annotated[tuple[ServingRole, ...], Field(min_length=1, max_length=2)] = ("aggregated",)
    """``disaggregated`` admits prefill and decode in pools of their own, on unlike devices of one provider and region."""

    @model_validator(mode="after")
    def _one_traffic(self) -> Self:
        if (self.traffic is None) == (self.traffic_classes is None):
            raise ValueError("state either traffic or traffic_classes")
        shares = any(one.share_fraction is not None for one in self.traffic_classes or ())
        if shares and self.requests_per_s is None:
            raise ValueError("traffic classes with share_fraction need the requests_per_s that they are shares of")
        if not shares and self.requests_per_s is not None:
            raise ValueError(
                "requests_per_s is for traffic classes with share_fraction; the traffic states its own rate"
            )
        return self

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The traffic, class by class."""
        if self.traffic is not None:
            return (Stream(None, "traffic", self.traffic, self.traffic.requests_per_s or UNSTATED_RATE, self.targets),)
        return tuple(
            Stream(
                one.name,
                f"traffic_classes/{number}",
                one,
                one.requests_per_s or (one.share_fraction or 0.0) * (self.requests_per_s or 0.0),
                one.targets or self.targets,
            )
            for number, one in enumerate(self.traffic_classes or ())
        )


class OfferLimitIn(Request):
    max_nodes: Annotated[int, Field(ge=0, le=1_000_000)]


class LimitsIn(Request):
    """What the plan must stay within; null leaves a choice open."""

    devices: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    providers: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    regions: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    commitments: Annotated[tuple[Commitment, ...], Field(min_length=1)] | None = ("on_demand",)
    offers: dict[str, OfferLimitIn] = Field(default_factory=dict, max_length=MOST_NAMES)
    max_nodes_per_offer: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """Most nodes of an offer that states no limit of its own: nobody rents out infinitely many."""
    max_usd_per_hour: UsdIn | None = None
    max_power_kw: PositiveNumber | None = None
    spare_nodes: Annotated[int, Field(ge=0, le=100)] = 0
    """Idle nodes kept in every pool of interchangeable nodes in use: the same as ``survive.nodes``."""
    survive: SurviveIn = SurviveIn()
    max_spot_fraction: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Share of all devices that the provider may take back."""
    quotas: Annotated[tuple[QuotaIn, ...], Field(max_length=MOST_QUOTAS)] = ()
    sourcing: Sourcing = SourcingIn()
    """The buying policy: from whom, where, on what and at which prices. ``any`` lifts it."""
    partitions: bool | Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] = False
    """May devices be split into instances that serve small models side by side (MIG), and into which profiles?"""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [quota.name for quota in self.quotas]
        twice = sorted(n for n, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"names of quotas must differ; more than one is called {twice[0]!r}")
        return self


class RecommendationIn(Request):
    workloads: Annotated[
        tuple[WorkloadIn, ...],
        Field(min_length=1, max_length=MOST_WORKLOADS),
        at_most(MOST_WORKLOADS, "workloads"),
    ]
    limits: LimitsIn = LimitsIn()
    objective: Objective = "cost"
    current: CurrentIn | None = None
    """The fleet that runs now, to be planned from."""
    price_as_of: Instant | None = None
    time_limit_s: Annotated[float, Field(ge=1e-9, le=300, allow_inf_nan=False)] = 10.0
    gap_fraction: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    alternatives: Annotated[int, Field(ge=0, le=10)] = 3
    on_shortage: Literal["refuse", "shed"] = "refuse"
    """Where the limits cannot serve everyone: no plan, with reasons; or a plan for part of it, by priority."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [w.name for w in self.workloads]
        twice = sorted(n for n, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"workload names must differ; more than one is called {twice[0]!r}")
        if self.current is not None and self.objective != "cost":
            raise ValueError("a current fleet is planned from for the objective cost only")
        if self.objective == "throughput" and self.on_shortage == "shed":
            raise ValueError("the objective throughput serves what it can already; leave on_shortage at refuse")
        return self


class PredictedOut(Answer):
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles
    output_tokens_per_s: Interval
    power_w: Interval | None


class LinePartitionOut(Answer):
    """Each replica has one instance of a device that is split into ``instances_per_device`` of this profile."""

    profile: str
    instances_per_device: int
    memory_gib: float
    launch: list[str]
    """Commands on a node: for each device that is split, then for each replica."""


class SplitDevicesOut(Answer):
    """``nodes`` nodes of an offer, of each of which ``devices`` are split; all other devices are whole."""

    profile: str
    instances_per_device: int
    devices: int
    nodes: int


class LineSourceOut(Answer):
    """What the buying policy asks of a line's offer."""

    provider_class: ProviderClass | None
    """Null for a provider that nobody has classed, and for one's own machines."""
    device_class: DeviceClass | None
    named_place: bool
    price_confidence: Confidence
    price_age_days: int | None
    """How long before ``price_as_of`` its source stated the price; null for one's own."""
    ask_for_quote: bool
    """Older than ``limits.sourcing.max_price_age_days``."""
    own: bool
    """An offer of the user's, not of the catalog."""


class PlanLineOut(Answer):
    """Replicas of one workload on nodes of one offer."""

    workload: str
    role: LineRole = Field(default_factory=_aggregated)
    """``prefill`` and ``decode`` lines of one workload, provider and region serve the same requests together."""
    offer: str
    provider: str
    region: str
    commitment: str
    node: str
    device: str
    partition: LinePartitionOut | None = None
    """Null where replicas have whole devices."""
    engine: str
    nodes: int
    replicas: int
    layout: LayoutIn
    precision: PrecisionIn
    engine_settings: EngineIn | None = None
    """What to hand to the engine, and what the prediction assumed; null in plans stored before it was stated."""
    max_concurrency: int
    """Requests that the engine of one replica admits at once."""
    serves_requests_per_s: float
    utilisation_fraction: float
    network_ms: float | None = None
    """Round trip to the users, where stated: what they wait beyond ``predicted``, which is the engine's own."""
    predicted: PredictedOut | None
    """Null in alternatives, and for replicas that stand by without traffic. Of all traffic classes together."""
    basis: Basis
    usd_per_hour: Usd
    classes: list[ClassLineOut] = Field(default_factory=list)
    """What is routed here of each traffic class; empty where the workload has none."""
    source: LineSourceOut | None = None
    """Null in plans stored before it was stated."""


class FleetNodesOut(Answer):
    """All nodes rented at one offer, idle spares included; ``usd_per_hour`` is of all of them."""

    offer: str
    node: str
    device: str
    nodes: int
    usd_per_hour: Usd
    splits: list[SplitDevicesOut] = Field(default_factory=list)
    """Devices that are split into instances."""


ProofOver = Literal["every_candidate", "simulated_mixes"]


def _every_candidate() -> ProofOver:
    """Of plans stored before there were others."""
    return "every_candidate"


class SolveOut(Answer):
    status: Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible", "kept_current"]
    usd_per_hour: Usd | None
    bound_usd_per_hour: Usd | None
    gap_fraction: float | None
    candidates: int
    solver: str
    seconds: float
    confirmation_rounds: int
    """How often the optimiser ran until everything it chose held in simulation."""
    simulations: int
    proof_over: ProofOver = Field(default_factory=_every_candidate)
    """What the bound and ``proven_optimal`` hold over. ``simulated_mixes``: with traffic classes, mixes of requests that
    nobody simulated are believed to fall short as like ones did."""


class TotalsOut(Answer):
    """Of the whole plan. Rates are what is planned to be served, tokens prompts and replies together."""

    usd_per_hour: Usd
    usd_per_month: Usd
    usd_per_million_output_tokens: Usd
    usd_per_million_tokens: Usd
    power_kw: float | None
    nodes: int
    devices: int
    served_fraction: float | None
    """Share of the stated traffic that the plan serves: 1 unless the objective is throughput or some was shed. Null where no
    rate was stated."""
    serves_requests_per_s: float | None = None
    """Null in answers stored before it was stated."""
    output_tokens_per_s: float | None = None
    tokens_per_s: float | None = None


class PoolsOut(Answer):
    """Whether prefill and decode got pools of their own.

    ``saves_usd_per_hour``: over the best plan without, null where there is none. ``extra_usd_per_hour``: what they would
    cost on top where they were not chosen; null where that is not known. ``reason``: why they were not.
    """

    chosen: bool
    saves_usd_per_hour: Usd | None
    extra_usd_per_hour: Usd | None
    reason: str | None


class AlternativeOut(Answer):
    why: str
    extra_usd_per_hour: Usd | None
    """Null where no plan exists that way. Under another objective than cost, what it happens to cost beside."""
    less_served_requests_per_s: float | None = None
    """Under the objective throughput: how much less it serves."""
    extra_power_kw: float | None = None
    """Under the objective power: how much more it draws."""
    plan: list[PlanLineOut]


class BindingOut(Answer):
    """A limit that the plan would be better without: what relaxing it to ``relaxing_to`` gains, by solving again.

    One of three, by the objective: money for cost, requests for throughput, power for power.
    """

    limit: str
    workload: str | None
    relaxing_to: float | str
    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None


class SourcingChangeOut(Answer):
    """What one rule of the buying policy costs: the request solved again without it.

    ``rule``: null for the whole policy; ``limits.commitments``: with machines on demand too, where only commitments were
    asked for. What is saved is 0 where nothing better comes of it; then ``plan`` is empty. One of three is stated, by the
    objective.
    """

    rule: str | None
    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None
    usd_per_hour: Usd | None
    """Of the whole plan without the rule."""
    plan: list[PlanLineOut]


class CautionOut(Answer):
    """What to know before signing.

    ``one_replica``, ``one_node``, ``no_spare``: what a lost node does, where nothing was asked to survive it.
    ``interval_crosses_target``: a prediction is expected to keep its target and may not. ``old_price``: ask for a quote.
    ``commitment_dearer``: the same machine costs no more without the commitment that was asked for.
    """

    about: Literal["one_replica", "one_node", "no_spare", "interval_crosses_target", "old_price", "commitment_dearer"]
    workload: str
    offer: str
    detail: str


class LowerPrecisionOut(Answer):
    """The same request where 8-bit weights and an 8-bit cache are allowed beside the checkpoint's own formats, solved.

    Whether answers stay good enough is for an evaluation of the model to say. What is saved is 0 where nothing better comes of it;
    then ``plan`` is empty. One of three is stated, by the objective.
    """

    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None
    usd_per_hour: Usd | None
    """Of the whole plan that way."""
    plan: list[PlanLineOut]


class RejectedOut(Answer):
    workload: str
    traffic_class: str | None = None
    """Whose targets are missed; null where it is the candidate itself, and without traffic classes."""
    device: str
    partition: str | None = None
    """The profile, where instances of the device are meant."""
    reason: str
    count: int
    nearest: str | None


class ContextOut(Answer):
    """The context a workload is served with."""

    workload: str
    traffic_class: str | None = None
    context_tokens: int
    clipped_fraction: float
    """Share of the requests that are longer, and end there."""


class LeftOutOut(Answer):
    """What was asked for and is not in the catalog: no proof covers it.

    ``price_missing``: machines without a known price for the commitment ``what``. ``figure_missing``: devices of which the
    figure ``what`` is not published. ``count``: of machines or devices; ``names``: the first of them; ``devices``: how many of each.
    """

    reason: Literal["price_missing", "figure_missing"]
    what: str
    count: int
    names: list[str]
    devices: dict[str, int]


class ConflictOut(Answer):
    """Limits that together rule everything out."""

    limits: list[str]
    detail: str


class RelaxationOut(Answer):
    """One smallest change that makes the request feasible, and the price of the plan it allows."""

    limit: str
    workload: str | None
    relaxing_from: float | str | None
    relaxing_to: float | str | None
    usd_per_hour: Usd | None


class InputsOut(Answer):
    """What the answer was computed from; the same request against the same inputs gives the same plan."""

    price_as_of: dt.datetime
    catalog_digest: str
    correction_set: int | None
    version: str


class ResultOut(Answer):
    """What the solver found: stored as it is."""

    outcome: Literal["optimal", "feasible", "infeasible"]
    solve: SolveOut
    plan: list[PlanLineOut]
    fleet: list[FleetNodesOut] = Field(default_factory=list)
    """The plan's nodes by offer: lines that share nodes state their part of them. Empty in older answers."""
    totals: TotalsOut | None
    alternatives: list[AlternativeOut]
    binding: list[BindingOut]
    rejected: list[RejectedOut]
    conflicts: list[ConflictOut]
    replanning: ReplanningOut | None = None
    """How the plan follows from ``current``; null without one."""
    relaxations: list[RelaxationOut]
    served: list[ServedOut] = Field(default_factory=list)
    """What each workload is served where ``on_shortage`` is ``shed``."""
    worst_losses: list[LossOut] = Field(default_factory=list)
    """For every kind of loss that the plan survives: the worst one for each workload."""
    confidence_premium_usd_per_hour: Usd | None
    """What confidence above 50 % adds to the price; null where it was not asked for."""
    sourcing: list[SourcingChangeOut] = Field(default_factory=list)
    """What the buying policy costs: the whole of it first, then each rule alone where that gains anything. Empty where no rule
    leaves anything out, where time was up, and in answers stored before it was stated."""
    cautions: list[CautionOut] = Field(default_factory=list)
    """What to know before signing; empty in answers stored before it was stated."""
    lower_precision: LowerPrecisionOut | None = None
    """Null where every workload names its formats, where time was up, and in answers stored before it was stated."""
    left_out: list[LeftOutOut] = Field(default_factory=list)
    """What the catalog does not know of the request's choices; empty in answers stored before it was stated."""
    contexts: list[ContextOut] = Field(default_factory=list)
    """By workload, or traffic class; empty in answers stored before it was stated."""
    pools: PoolsOut | None = None
    """Null unless a workload's ``roles`` admit pools of their own."""
    largest_servable_fraction: float | None
    """Infeasible requests only: the largest share of the stated traffic that the limits admit; 0 when none of it."""


class RecommendationOut(ResultOut):
    id: str
    created_at: dt.datetime
    inputs: InputsOut
    request: RecommendationIn
    """The request with every default filled in."""


class RecommendationSummaryOut(Answer):
    """A line of the list."""

    id: str
    created_at: dt.datetime
    outcome: str
    objective: str
    workloads: list[str]
    llms: list[str]
    usd_per_hour: Usd | None
