"""The things compared: a rented fleet, a bought fleet, an API; and the scenario they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from solver.errors import FigureMissingError
from solver.tco.errors import CostInputError
from solver.tco.figures import FigureTable, check_figures, exactly
from solver.tco.tokens import TokenDemand

LONGEST_HORIZON_MONTHS = 240
"""Longer than buildings are written off for; machines are replaced several times within it."""
MOST_NODES = 1_000_000
MOST_GROWTH = 1e4
"""Demand at the horizon relative to the start; beyond it the monthly rate was mistaken for a yearly one."""
HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is the same for every alternative.

    figures: shared inputs (utilisation, electricity, PUE, discount rate, …).
    hourly_profile: demand of each hour of a day relative to the peak; its mean is then the utilisation.
    ramp_months: demand rises evenly to what is stated over so many months; 0: it is there from the first.
    """

    horizon_months: int
    demand: TokenDemand
    figures: FigureTable
    hourly_profile: tuple[float, ...] | None = None
    ramp_months: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.horizon_months <= LONGEST_HORIZON_MONTHS:
            raise CostInputError(
                "horizon_months", f"must be between 1 and {LONGEST_HORIZON_MONTHS}; got {self.horizon_months}"
            )
        if self.hourly_profile is not None:
            if len(self.hourly_profile) != HOURS_PER_DAY:
                raise CostInputError("hourly_profile", f"needs {HOURS_PER_DAY} values, one an hour")
            if any(not 0.0 <= share <= 1.0 for share in self.hourly_profile):
                raise CostInputError("hourly_profile", "shares of the peak must lie between 0 and 1")
            mean = sum(self.hourly_profile) / HOURS_PER_DAY
            object.__setattr__(self, "figures", {**self.figures, "utilisation_fraction": exactly(mean)})
        check_figures(self.figures)
        if not 0 <= self.ramp_months <= LONGEST_HORIZON_MONTHS:
            raise CostInputError("ramp_months", f"must be between 0 and {LONGEST_HORIZON_MONTHS}")
        growth = self.figures.get("growth_fraction_per_month")
        if growth is not None and (1.0 + growth.high) ** self.horizon_months > MOST_GROWTH:
            raise CostInputError(
                "growth_fraction_per_month",
                f"{growth.high:g} a month is more than {MOST_GROWTH:g} times over {self.horizon_months} months",
            )


@dataclass(frozen=True, slots=True)
class RentedFleet:
    """Nodes rented for the peak hour.

    term_months: None is by the hour; otherwise a commitment that is renewed while it is needed.
    upfront_fraction: share of a commitment paid when it starts (0: no upfront, 1: all upfront).
    interruptible: spot; interruptions cost the hours stated in ``figures``.
    follows_demand: nodes are released and taken again through the day; needs the scenario's hourly profile.
    carries: the demand that the nodes serve within their targets, relative to the demand at the start: what a plan left
    spare is used before a node is added. nodes_per_step: nodes are added in whole steps, those of one replica.
    in_advance: rent and instalments are paid at the start of each month instead of its end.
    busy_fraction: of the time that demand at its peak takes, the share in which these nodes work: jobs that end. By the hour
    they are rented only while they work. None: nodes serve whenever anything does, and stand for the peak hour.
    interrupted_together: nodes that lose the hours when any one of them is interrupted.
    """

    name: str
    nodes: int
    devices_per_node: int
    figures: FigureTable
    term_months: int | None = None
    upfront_fraction: float = 0.0
    interruptible: bool = False
    follows_demand: bool = False
    carries: float = 1.0
    nodes_per_step: int = 1
    in_advance: bool = False
    busy_fraction: float | None = None
    interrupted_together: int = 1


@dataclass(frozen=True, slots=True)
class Lease:
    """Machines of a lessor, run as if owned, for a level rate over ``term_months`` that cannot be cancelled.

    bought_out: at its end they are bought at ``buyout_usd_per_node`` and kept for the rest of their life; otherwise they go
    back, and the next are leased. in_advance: rates are paid at the start of each month instead of its end.
    """

    term_months: int
    bought_out: bool = False
    in_advance: bool = False


@dataclass(frozen=True, slots=True)
class HeldMachines:
    """Machines of one's own from before: what was paid for them is sunk, what they would fetch today is given up by keeping
    them. ``age_months`` old at the start, they last for the rest of their life."""

    nodes: int
    age_months: int


@dataclass(frozen=True, slots=True)
class PurchasedFleet:
    """Nodes bought for the peak hour, replaced at the end of their life.

    finance_term_months: None pays in cash; otherwise a loan with level payments at ``finance_fraction_per_year``.
    depreciation: how book value falls (it moves no cash).
    carries, nodes_per_step: as for rented nodes. lead_time_months: how long before they are needed nodes are ordered and
    paid for; those of the start stand ready. lease: whose machines they are until it ends; None: one's own. held: those
    of the start that are there already. busy_fraction: as for rented nodes; they draw power idle for the rest.
    """

    name: str
    nodes: int
    devices_per_node: int
    figures: FigureTable
    life_months: int
    finance_term_months: int | None = None
    depreciation: Literal["straight_line", "declining_balance"] = "straight_line"
    declining_multiple: float = 2.0
    """Double declining balance, the usual accelerated method."""
    carries: float = 1.0
    nodes_per_step: int = 1
    lead_time_months: int = 0
    lease: Lease | None = None
    held: HeldMachines | None = None
    busy_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """Tokens bought from somebody who runs the model."""

    name: str
    figures: FigureTable


Single: TypeAlias = RentedFleet | PurchasedFleet | ApiAccess


@dataclass(frozen=True, slots=True)
class MixedFleet:
    """Several kinds of node that serve the demand together; their costs add up line by line."""

    name: str
    parts: tuple[RentedFleet | PurchasedFleet, ...]


Alternative: TypeAlias = Single | MixedFleet


def parts_of(alternative: Alternative) -> tuple[Single, ...]:
    """What is evaluated: the parts of a mixed fleet, or the alternative itself."""
    return alternative.parts if isinstance(alternative, MixedFleet) else (alternative,)


_SHARED = ("utilisation_fraction", "growth_fraction_per_month", "discount_fraction_per_year")
REQUIRED: dict[type[Single], tuple[str, ...]] = {
    RentedFleet: (*_SHARED, "rent_change_fraction_per_year", "rent_usd_per_node_hour", "tax_fraction"),
    PurchasedFleet: (
        *_SHARED, "hardware_change_fraction_per_year", "inflation_fraction_per_year", "purchase_usd_per_node", "network_usd_per_node",
        "storage_usd_per_node", "spare_fraction", "peak_w_per_node", "idle_power_fraction", "serving_power_fraction",
        "power_usage_effectiveness", "electricity_usd_per_kwh", "demand_charge_usd_per_kw_month",
        "colocation_usd_per_kw_month", "maintenance_fraction_per_year", "support_fraction_per_year",
        "insurance_fraction_per_year", "staff_fte_per_node", "staff_usd_per_fte_year", "software_usd_per_device_year",
        "tax_fraction",
    ),
    ApiAccess: (
        *_SHARED, "api_change_fraction_per_year", "api_usd_per_million_input_tokens", "api_usd_per_million_cached_tokens",
        "api_usd_per_million_output_tokens", "tax_fraction",
    ),
}  # fmt: skip
"""Inputs each kind needs. Energy, carbon and water of rented machines are reported where their inputs are there."""

WHERE_STATED: dict[type[Single], tuple[str, ...]] = {
    RentedFleet: (
        "income_tax_fraction", "egress_gb_per_month", "egress_usd_per_gb", "rented_storage_usd_per_month",
        "commitment_used_fraction",
    ),
    PurchasedFleet: (
        "income_tax_fraction", "decommissioning_usd_per_node", "lease_usd_per_node_month", "buyout_usd_per_node",
        "held_usd_per_node",
    ),
    ApiAccess: ("income_tax_fraction",),
}  # fmt: skip
"""Inputs of costs that are counted only where somebody states them."""
SPOT_REQUIRED = ("spot_interruptions_per_node_month", "spot_lost_hours_per_interruption")


def check_alternatives(alternatives: Sequence[Alternative], scenario: Scenario) -> None:
    """Names apart, domains kept, nothing missing. Raises CostInputError or FigureMissingError."""
    if not alternatives:
        raise CostInputError("alternatives", "at least one is needed")
    seen: set[str] = set()
    for alternative in alternatives:
        if not alternative.name.strip():
            raise CostInputError("alternatives.name", "must not be empty")
        if alternative.name in seen:
            raise CostInputError("alternatives.name", f"two alternatives are called {alternative.name!r}")
        seen.add(alternative.name)
        if not parts_of(alternative):
            raise CostInputError("fleet", "needs at least one kind of node", alternative.name)
        for part in parts_of(alternative):
            _check_one(part, scenario, alternative.name)


def _check_one(alternative: Single, scenario: Scenario, name: str) -> None:
    check_figures(alternative.figures, name)
    have = scenario.figures.keys() | alternative.figures.keys()
    needed: tuple[str, ...] = REQUIRED[type(alternative)]
    if isinstance(alternative, RentedFleet):
        _check_nodes(alternative, name)
        if alternative.term_months is not None:
            _check_count("term_months", alternative.term_months, LONGEST_HORIZON_MONTHS, name)
        if not 0.0 <= alternative.upfront_fraction <= 1.0:
            raise CostInputError("upfront_fraction", "must be between 0 and 1", name)
        if alternative.follows_demand and (alternative.term_months is not None or scenario.hourly_profile is None):
            raise CostInputError("follows_demand", "needs an hourly profile and no commitment", name)
        _check_count("interrupted_together", alternative.interrupted_together, MOST_NODES, name)
        if alternative.follows_demand and alternative.busy_fraction is not None:
            raise CostInputError("follows_demand", "jobs that end have no hourly profile", name)
        if alternative.interruptible:
            needed += SPOT_REQUIRED
        if "egress_gb_per_month" in have:
            needed += ("egress_usd_per_gb",)
        if "commitment_used_fraction" in have and alternative.term_months is None:
            raise CostInputError("commitment_used_fraction", "is of a commitment", name)
    elif isinstance(alternative, PurchasedFleet):
        _check_nodes(alternative, name)
        if not 0 <= alternative.lead_time_months <= LONGEST_HORIZON_MONTHS:
            raise CostInputError("lead_time_months", f"must be between 0 and {LONGEST_HORIZON_MONTHS}", name)
        _check_count("depreciation_months", alternative.life_months, LONGEST_HORIZON_MONTHS, name)
        if alternative.finance_term_months is not None:
            _check_count("finance_term_months", alternative.finance_term_months, LONGEST_HORIZON_MONTHS, name)
            needed += ("finance_fraction_per_year",)
        needed += _check_terms(alternative, name)
        if "residual_fraction" not in have:
            needed += ("residual_fraction_after_3_years", "residual_fraction_after_5_years")
    for figure in needed:
        if figure not in have:
            raise FigureMissingError(name, figure)


def _check_terms(fleet: PurchasedFleet, name: str) -> tuple[str, ...]:
    """The figures that a lease or machines held from before need on top. Raises CostInputError."""
    needed: tuple[str, ...] = ()
    if fleet.lease is not None:
        _check_count("lease.term_months", fleet.lease.term_months, LONGEST_HORIZON_MONTHS, name)
        if fleet.finance_term_months is not None or fleet.held is not None:
            raise CostInputError(
                "lease", "machines are leased, bought with a loan, or there already: one of them", name
            )
        if fleet.life_months < fleet.lease.term_months or (
            not fleet.lease.bought_out and fleet.life_months != fleet.lease.term_months
        ):
            raise CostInputError(
                "depreciation_months", "leased machines last for the lease, or longer if bought out", name
            )
        needed += ("lease_usd_per_node_month", *(("buyout_usd_per_node",) if fleet.lease.bought_out else ()))
    if fleet.held is not None:
        _check_count("owned.nodes", fleet.held.nodes, fleet.nodes, name)
        _check_count("owned.age_months", fleet.held.age_months, fleet.life_months - 1, name)
        needed += ("held_usd_per_node",)
    return needed


def _check_nodes(fleet: RentedFleet | PurchasedFleet, name: str) -> None:
    _check_count("nodes", fleet.nodes, MOST_NODES, name)
    _check_count("devices_per_node", fleet.devices_per_node, MOST_NODES, name)
    _check_count("nodes_per_step", fleet.nodes_per_step, MOST_NODES, name)
    if fleet.busy_fraction is not None and not 0.0 < fleet.busy_fraction <= 1.0:
        raise CostInputError("busy_fraction", f"must be above 0 and at most 1; got {fleet.busy_fraction:g}", name)
    if not 1.0 <= fleet.carries <= MOST_GROWTH:
        raise CostInputError("carries", f"must be between 1 and {MOST_GROWTH:g}; got {fleet.carries:g}", name)


def _check_count(field_name: str, value: int, most: int, alternative: str) -> None:
    if not 1 <= value <= most:
        raise CostInputError(field_name, f"must be between 1 and {most}; got {value}", alternative)
