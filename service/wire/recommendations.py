"""POST /v1/recommendations: workloads in, proven-cheapest cluster out."""

import datetime as dt
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.adapters import ADAPTERS_ARE_AGGREGATED, ADAPTERS_DO_NOT_DRAFT, AdaptersIn
from service.wire.plan_explained import (
    AlternativeOut,
    BindingOut,
    CautionOut,
    ConflictOut,
    ContextOut,
    LeftOutOut,
    LowerPrecisionOut,
    PoolsOut,
    RejectedOut,
    RelaxationOut,
    SourcingChangeOut,
)
from service.wire.plan_lines import FleetNodesOut, PlanLineOut, PublishedLineOut
from service.wire.quantities import (
    Answer,
    Commitment,
    DiskCacheGib,
    DiskRate,
    HostCacheGib,
    Instant,
    KvCacheFormat,
    Name,
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
from service.wire.resilience import MOST_QUOTAS, FaultToleranceIn, LossOut, PlacesIn, QuotaIn, ServedOut
from service.wire.roles import StatedDraftIn
from service.wire.sourcing import Sourcing, SourcingIn
from service.wire.traffic import (
    IMAGES_ARE_AGGREGATED,
    SESSIONS_ARE_AGGREGATED,
    THINKING_IS_AGGREGATED,
    OverContext,
    TrafficIn,
)
from service.wire.traffic_classes import ServedStream, TargetsIn, TrafficClasses, TrafficClassIn

MOST_WORKLOADS = 50
MOST_NAMES = 5_000
MOST_ENGINES = 32
MOST_HOST_CACHES = 4
"""Candidates are there once more for each."""

Objective = Literal["cost", "throughput", "power"]
NetworkMs = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


ServingRole = Literal["aggregated", "disaggregated"]


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
    traffic: TrafficIn | None = None
    traffic_classes: TrafficClasses | None = None
    requests_per_s: PositiveNumber | None = None
    """Of all traffic classes together, where they state shares of it."""
    targets: TargetsIn = TargetsIn()
    precision: PrecisionChoiceIn = PrecisionChoiceIn()
    engines: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_ENGINES)] | None = None
    """Serving engines to choose among, like formats; null: each device's own, which is vLLM wherever it runs."""
    utilisation_limit_fraction: PositiveFraction = 0.85
    min_replicas: Annotated[int, Field(ge=1, le=100_000)] = 1
    regions: PlacesIn = PlacesIn()
    providers: PlacesIn = PlacesIn()
    network_ms_by_region: Annotated[dict[Name, NetworkMs], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    """Round trip between the users and each region in which an offer may be used; counts towards TTFT and e2e."""
    priority: Annotated[int, Field(ge=-1_000, le=1_000)] = 0
    """Where not everyone can be served (``on_shortage``), lower ones are shed first."""
    drafting: StatedDraftIn | None = None
    """How engines may draft, where a plan with it costs less; null: not at all. Its acceptance is that of this traffic, as measured."""
    adapters: AdaptersIn | None = None
    """Tenants or tasks that share the base: every replica serves all of them. Null: the model as published."""
    host_cache_gib: (
        HostCacheGib | Annotated[tuple[HostCacheGib, ...], Field(min_length=1, max_length=MOST_HOST_CACHES)]
    ) = 0.0
    """One size, or several to choose among, each beside none: taken where a plan with it costs less, on nodes that have as much for
    each device, by vLLM and SGLang, for what requests of sessions leave in the cache."""
    disk_cache_gib: DiskCacheGib = 0.0
    """Under each size of host memory, beside none: taken where a plan with it costs less, on nodes whose local disks are that large and
    are read at a rate that is stated, here or by their documentation."""
    disk_read_gbytes_per_s: DiskRate | None = None
    roles: Annotated[tuple[ServingRole, ...], Field(min_length=1, max_length=2)] = ("aggregated",)
    """``disaggregated`` admits prefill and decode in pools of their own, on unlike devices of one provider and region."""

    @model_validator(mode="after")
    def _disk_under_host_memory(self) -> Self:
        if self.disk_cache_gib and not self.host_caches_gib:
            raise ValueError("disk_cache_gib needs a size of host_cache_gib: engines reach a disk through host memory")
        return self

    @model_validator(mode="after")
    def _one_traffic(self) -> Self:
        if (self.traffic is None) == (self.traffic_classes is None):
            raise ValueError("state either traffic or traffic_classes")
        shares = any(one.share_fraction is not None for one in self.traffic_classes or ())
        if shares and self.requests_per_s is None:
            raise ValueError("traffic classes with share_fraction need the requests_per_s that they are shares of")
        if not shares and self.requests_per_s is not None:
            raise ValueError(
                "requests_per_s of a workload is for traffic_classes with share_fraction: state it as traffic.requests_per_s, "
                "or in each class"
            )
        if self.traffic is not None and self.traffic.sessions is not None and "disaggregated" in self.roles:
            raise ValueError(SESSIONS_ARE_AGGREGATED)
        if self.traffic is not None and self.traffic.thinking_tokens is not None and "disaggregated" in self.roles:
            raise ValueError(THINKING_IS_AGGREGATED)
        if self.traffic is not None and self.traffic.media is not None and "disaggregated" in self.roles:
            raise ValueError(IMAGES_ARE_AGGREGATED)
        if self.adapters is not None and "disaggregated" in self.roles:
            raise ValueError(ADAPTERS_ARE_AGGREGATED)
        if self.adapters is not None and self.drafting is not None:
            raise ValueError(ADAPTERS_DO_NOT_DRAFT)
        if self.targets.ttfat_ms and (self.traffic is None or "disaggregated" in self.roles):
            raise ValueError("targets.ttfat_ms is for traffic of one kind on replicas that prefill and decode")
        return self

    @property
    def host_caches_gib(self) -> tuple[float, ...]:
        """The sizes of host memory to choose among, beside none."""
        stated = self.host_cache_gib if isinstance(self.host_cache_gib, tuple) else (self.host_cache_gib,)
        return tuple(dict.fromkeys(size for size in stated if size))

    @property
    def streams(self) -> tuple[ServedStream, ...]:
        """The traffic, class by class: classes in one order, whatever theirs in the request, so that the answer does not depend on it."""
        if self.traffic is not None:
            return (
                ServedStream(None, "traffic", self.traffic, self.traffic.requests_per_s or UNSTATED_RATE, self.targets),
            )
        return tuple(
            ServedStream(
                one.name,
                f"traffic_classes/{number}",
                one,
                one.requests_per_s or (one.share_fraction or 0.0) * (self.requests_per_s or 0.0),
                one.targets or self.targets,
            )
            for number, one in sorted(enumerate(self.traffic_classes or ()), key=lambda of: _content(of[1]))
        )


def _content(one: TrafficClassIn) -> tuple[str, str]:
    """What a class asks for, and its name where another asks for the same."""
    return one.model_dump_json(exclude={"name"}), one.name


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
    """Nobody rents out infinitely many."""
    by_the_token: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)] | None = None
    """Makers who may be sent a share of the traffic, at a price by the token, where that is cheapest: tokens are served on their own
    machines, at published speeds and within what an account may send. Who is named here is meant: the limits of devices, providers
    and regions and the rules of ``sourcing`` about offers do not apply to them, those about how many providers and devices a workload
    may have do. Not with losses to be survived, traffic classes, ``current``, or another objective than cost."""
    max_usd_per_hour: UsdIn | None = None
    max_power_kw: PositiveNumber | None = None
    spare_nodes: Annotated[int, Field(ge=0, le=100)] = 0
    """Idle nodes kept in every pool of interchangeable nodes in use: the same as ``fault_tolerance.nodes``."""
    fault_tolerance: FaultToleranceIn = FaultToleranceIn()
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


ProofOver = Literal["every_candidate", "each_class_alone", "simulated_mixes", "simulated_pools"]


def _every_candidate() -> ProofOver:
    """Of plans stored before there were others."""
    return "every_candidate"


class SolveOut(Answer):
    status: Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible", "mixes_open", "kept_current"]
    """``mixes_open``: with traffic classes, the search has ended and knows nothing better, but what replicas would sustain of mixes of
    requests that nobody simulated leaves open whether there is."""
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
    """What the bound and ``proven_optimal`` hold over. ``each_class_alone``: with traffic classes, what the dearest costs by
    itself at least, which holds whatever replicas sustain of mixes; ``simulated_mixes``: stored before that, it held as far as mixes fall
    short as like ones did. ``simulated_pools``: where prefill and decode may be apart,
    replicas of either that nobody simulated are."""


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
    published_lines: list[PublishedLineOut] = Field(default_factory=list)
    """Further lines of the plan: tokens that ``limits.by_the_token`` admits, and machines of which only speeds are published. ``totals``
    and the proof hold of all lines together; ``nodes``, ``devices`` and rates of the totals too, power is then not known."""
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
    unsettled: list[
        Literal["predictions", "alternatives", "binding", "sourcing", "lower_precision", "confidence", "relaxations"]
    ] = Field(default_factory=list)
    """Which explanations, or predictions of lines, time ran out for, so that they are missing or not whole: a larger
    ``time_limit_s`` settles them. Empty in answers stored before it was stated."""
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
    asked: list[str]
    """By workload: its rate, or how many traffic classes, and its targets."""
    usd_per_hour: Usd | None
