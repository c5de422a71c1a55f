"""What a recommendation is computed from and what it answers. Frozen; SI units; no provenance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from solver.candidates.rejections import Rejection
from solver.corrections.applied import CorrectionSet
from solver.deployment.configuration import Configuration
from solver.hardware import Node, Offer, PlaceKind
from solver.limit import FaultTolerance, Limit, Quota
from solver.llm_shape import LlmShape
from solver.objective import Objective
from solver.outcome import Outcome, Status
from solver.planning.offer_columns import OfferMemo
from solver.planning.published_offers import PublishedEntry, PublishedOffer
from solver.prediction.estimate import Correction, Estimate
from solver.step.constants import ConstantPrior
from solver.workload import EngineSettings, Workload

Shortage = Literal["refuse", "shed"]
"""Where the limits cannot serve everyone: no plan, with reasons, or a plan for part of it, lower priorities shed first."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Limits of the whole plan; None is no limit. Offer filters are applied to ``PlanningInput.offers`` already."""

    max_usd_per_hour: float | None = None
    max_power_w: float | None = None
    max_carbon_kg_per_hour: float | None = None
    spare_nodes: int = 0
    fault_tolerance: FaultTolerance = field(default_factory=FaultTolerance)
    max_spot_fraction: float | None = None
    quotas: tuple[Quota, ...] = ()
    partitions: frozenset[str] = frozenset()
    """Profiles into which devices may be split."""
    most_places: tuple[tuple[PlaceKind, int], ...] = ()
    """Of how many providers, regions and kinds of devices each workload's replicas may be."""
    numbered_offers: frozenset[str] = frozenset()
    """Offers of which the request states how many nodes there are; of others their seller does, or nobody."""


def no_clock() -> float:
    """Time that stands still."""
    return 0.0


@dataclass(frozen=True, slots=True)
class PlanningInput:
    """Everything a plan depends on.

    offers: with prices and node limits at one instant. catalog_key: identifies nodes and constants, so that search
    spaces built for them can be reused. corrections: measured corrections by (device, engine, llm, …), see corrections.
    """

    workloads: tuple[Workload, ...]
    shapes: Mapping[str, LlmShape]
    nodes: tuple[Node, ...]
    offers: tuple[Offer, ...]
    priors: tuple[ConstantPrior, ...]
    catalog_key: str
    limits: PlanLimits = field(default_factory=PlanLimits)
    default_max_nodes: int | None = None
    """Most nodes of an offer that states no limit of its own; None: as many as wanted."""
    objective: Objective = "cost"
    engine: EngineSettings = field(default_factory=EngineSettings)
    time_limit_s: float = 10.0
    gap_fraction: float = 0.0
    lower_formats: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    """By workload: formats of weights and cache that it did not ask for, and that the answer says the savings of."""
    alternatives: int = 3
    explain: bool = True
    corrections: CorrectionSet | None = None
    on_shortage: Shortage = "refuse"
    clock: Callable[[], float] = field(default=no_clock, compare=False)
    """Seconds, from whenever: the time limit is kept on it. Where it stands still, solvers' own seconds count."""
    published: tuple[PublishedOffer, ...] = ()
    """Tokens and machines that rest on published speeds, which the request admits beside ``offers``."""
    withheld: tuple[tuple[Offer, frozenset[Limit]], ...] = ()
    """Offers that choices and rules of buying leave out, each with those that do: read only to say which of them a plan would
    need lifted."""

    offer_memo: OfferMemo = field(default_factory=OfferMemo, repr=False, compare=False)
    """What was worked out about offers; the same for every changed request that is made of this one."""

    @property
    def carbon_matters(self) -> bool:
        """Offers on grids nobody names are then left out."""
        return self.objective == "carbon" or self.limits.max_carbon_kg_per_hour is not None

    @property
    def exchanges_caches(self) -> bool:
        """May some workload be prefilled by other replicas than those that decode it?"""
        return any("disaggregated" in workload.roles for workload in self.workloads)

    def without_exchanges(self) -> "PlanningInput":
        """The same with replicas that prefill and decode only."""
        return replace(self, workloads=tuple(replace(w, roles=("aggregated",)) for w in self.workloads))

    @property
    def power_matters(self) -> bool:
        """Devices and nodes whose power nobody publishes are then left out."""
        return self.objective == "power" or self.limits.max_power_w is not None or self.carbon_matters


@dataclass(frozen=True, slots=True)
class ClassLoad:
    """One traffic class on the replicas of an entry. share_fraction: of what the plan serves of the class."""

    name: str | None
    requests_per_s: float
    share_fraction: float
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """Replicas of one workload on one offer."""

    workload: str
    offer: Offer
    nodes: int
    replicas: int
    configuration: Configuration
    max_concurrency: int
    """Requests that the engine of one replica admits at once."""
    serves_requests_per_s: float
    capacity_requests_per_s: float
    utilisation_fraction: float
    usd_per_hour: float
    """This entry's share of its nodes' price, by devices used."""
    power_w: float
    estimate: Estimate | None
    network_s: float | None = None
    """Round trip between users and this line's region; None where the workload states none."""
    role: Literal["aggregated", "prefill", "decode"] = "aggregated"
    """aggregated: prefills and decodes. prefill, decode: one of two pools, which serve the same requests."""
    classes: tuple[ClassLoad, ...] = ()
    """Traffic classes that it serves; empty where it stands by. ``estimate`` is of all of them together."""


@dataclass(frozen=True, slots=True)
class SplitDevices:
    """``nodes`` nodes of an offer, of each of which ``devices`` are split into ``instances`` of a profile."""

    offer_id: str
    profile: str
    instances: int
    devices: int
    nodes: int


@dataclass(frozen=True, slots=True)
class PoolsReport:
    """Whether prefill and decode got pools of their own, and what that is worth.

    saves_usd_per_hour: over the best plan without, None where there is none. extra_usd_per_hour: what pools would cost on
    top, where they were not chosen and that was found. reason: why they were not.
    """

    chosen: bool
    saves_usd_per_hour: float | None = None
    extra_usd_per_hour: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is. stage: screening, solving, confirming or explaining.

    usd_per_hour: of the cheapest plan of the newest solve, whose capacities may not be confirmed yet; bound: what no
    plan can cost less than; gap_fraction: between them. None where there is none yet.
    """

    stage: str
    usd_per_hour: float | None = None
    bound: float | None = None
    gap_fraction: float | None = None


Observer = Callable[[SearchProgress], None]
"""Is told of progress while a plan is searched. It must be quick and must not raise."""


def unobserved(_progress: SearchProgress) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class SolveReport:
    """How the plan was found and how far it can be off."""

    outcome: Outcome
    status: Status
    objective: float | None
    bound: float | None
    gap_fraction: float | None
    candidates: int
    solver: str
    solver_seconds: float
    confirmation_rounds: int
    simulated: int
    """Replicas whose capacity the event simulation confirmed or corrected."""


@dataclass(frozen=True, slots=True)
class Alternative:
    why: str
    extra_usd_per_hour: float | None
    """None: no plan exists that way."""
    worse_by: float | None
    """In the objective's own unit: the share of the demand that it serves less, W or kg CO2e an hour more."""
    entries: tuple[PlanEntry, ...]
    published: tuple[PublishedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Freed:
    """The request solved with something allowed that it does not allow: what that gains.

    gains: in the objective's own unit, 0 where nothing better comes of it; None where there is no plan to compare with.
    entries: that plan, without predictions; empty where it is no better, or none.
    """

    gains: float | None
    usd_per_hour: float | None
    entries: tuple[PlanEntry, ...]
    published: tuple[PublishedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcingChange:
    """The request without one rule of the buying policy, or without all of it (``rule`` None)."""

    rule: Limit | None
    freed: Freed


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that costs money: what one step of relaxation saves, by re-solving.

    relaxing_to: in the limit's own SI unit; None where it is lifted.
    """

    limit: Limit
    relaxing_to: float | None
    gains: float
    """In the objective's own unit: USD an hour, W or kg CO2e an hour less, or a larger share of the demand served."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One single smallest change that makes an infeasible request feasible, and what the plan then costs.

    from_value, to_value: in the limit's own SI unit; None where no number describes it, and ``to_value`` where it is lifted.
    """

    limit: Limit
    from_value: float | None
    to_value: float | None
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Limits that together rule everything out. any_one: lifting any single one of them leaves a plan."""

    limits: tuple[Limit, ...]
    any_one: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """The worst loss of its kind for one workload, and how busy the replicas that remain are when they take it all."""

    workload: str
    kind: str
    lost: tuple[str, ...]
    utilisation_fraction: float


Question = Literal["predictions", "alternatives", "binding", "sourcing", "lower_precision", "confidence", "relaxations"]
"""What an answer explains beside its plan; ``relaxations`` with all else that says why there is none."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer. ``entries`` and ``published`` are empty when infeasible. nodes: rented or bought per offer id, spares included."""

    solve: SolveReport
    entries: tuple[PlanEntry, ...]
    nodes: Mapping[str, int]
    usd_per_hour: float
    power_w: float
    throughput_multiple: float | None
    alternatives: tuple[Alternative, ...]
    binding: tuple[Binding, ...]
    rejected: tuple[Rejection, ...]
    conflicts: tuple[Conflict, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    largest_servable_multiple: float | None = None
    confidence_premium_usd_per_hour: float | None = None
    """What confidence above even odds adds to the price; None where it was not asked for."""
    worst_losses: tuple[Loss, ...] = ()
    shares: tuple[float, ...] = ()
    """Of each workload's demand that the plan serves, where some of it was shed; empty where none was."""
    pools: PoolsReport | None = None
    """None unless a workload admits pools of their own."""
    splits: tuple[SplitDevices, ...] = ()
    sourcing: tuple[SourcingChange, ...] = ()
    """What the buying policy costs: all of it first; empty where there is none, or there was no time to find out."""
    lower_precision: Freed | None = None
    """What the ``lower_formats`` would gain; None where there are none, or there was no time to find out."""
    unsettled: tuple[Question, ...] = ()
    """What there was no time to find out, or not all of it."""
    published: tuple[PublishedEntry, ...] = ()
    """What of the plan rests on published speeds."""


__all__ = [
    "Alternative",
    "Binding",
    "ClassLoad",
    "Conflict",
    "Correction",
    "Freed",
    "Loss",
    "Observer",
    "PlanEntry",
    "PlanLimits",
    "PlanningInput",
    "PoolsReport",
    "Recommendation",
    "Relaxation",
    "SearchProgress",
    "SolveReport",
    "SourcingChange",
    "SplitDevices",
    "unobserved",
]
