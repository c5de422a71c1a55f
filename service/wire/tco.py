"""POST /v1/tco/comparisons, the request: alternatives that serve the same workload to the same targets."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.wire.quantities import Commitment, Fraction, Instant, Name, Request, UsdIn
from service.wire.recommendations import MOST_WORKLOADS, WorkloadIn

MOST_ALTERNATIVES = 20
MOST_NODE_KINDS = 20
MOST_MACHINES = 100
MOST_COUNT = 1_000_000
LONGEST_HORIZON_MONTHS = 240
MOST_DRAWS = 20_000
HOURS_PER_DAY = 24


def _decimal_or_zero(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise ValueError('money is a JSON string holding a decimal, such as "0.100000"')
    try:
        return Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        raise ValueError(f"{value[:40]!r} is not a decimal number") from None


UsdOrFree = Annotated[
    Decimal,
    BeforeValidator(_decimal_or_zero, json_schema_input_type=str),
    Field(ge=0, le=10_000_000, max_digits=14, decimal_places=6, allow_inf_nan=False),
]
"""An amount of US dollars that may be zero."""
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Months = Annotated[int, Field(ge=1, le=LONGEST_HORIZON_MONTHS)]
Acquisition = Literal[Commitment, "lease"]
"""A commitment to rent, ``purchase`` or ``lease``."""
PaymentTiming = Literal["in_arrears", "in_advance"]
Payment = Literal["no_upfront", "partial_upfront", "all_upfront"]


class ElectricityIn(Request):
    """A tariff of your own, or the catalog's for ``region``. A demand charge belongs to an energy-only tariff."""

    usd_per_kwh: UsdOrFree | None = None
    region: Name | None = None
    demand_charge_usd_per_kw_month: UsdOrFree | None = None
    grid_kg_co2e_per_kwh: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] | None = None


class CurrencyIn(Request):
    """Totals are shown in this currency too. No exchange rate is stored: state the one you use."""

    code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    usd_per_unit: UsdIn
    """What one unit of the currency is worth in US dollars."""

    @model_validator(mode="after")
    def _a_dollar_is_a_dollar(self) -> Self:
        if self.code == "USD" and self.usd_per_unit != 1:
            raise ValueError("a US dollar is worth one US dollar")
        return self


class PurchaseIn(Request):
    """Terms of buying; null takes the catalog's figure.

    usd_per_node, peak_kw_per_node: of every machine that is bought, so of a whole server where the plan has slices of one;
    ``machines`` of the request states them of nodes one by one.
    residual_fraction: resale value when the machines are written off, after ``depreciation_months``. finance_rate_percent:
    null pays cash; a loan runs ``finance_months`` (null: as long as the machines last). lead_time_months: how long before
    growth needs them machines are ordered and paid; those of the start stand ready. availability_fraction: share of the
    time that a machine works; so many more are bought that as many work on average; null counts none.
    decommissioning_usd_per_node: taking a machine out when it is sold; counted only where stated.
    """

    usd_per_node: UsdOrFree | None = None
    peak_kw_per_node: Annotated[float, Field(ge=1e-9, le=1e5, allow_inf_nan=False)] | None = None
    network_usd_per_node: UsdOrFree | None = None
    storage_usd_per_node: UsdOrFree | None = None
    software_usd_per_device_year: UsdOrFree = Decimal(0)
    staff_fte_per_node: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    maintenance_percent_per_year: Percent | None = None
    residual_fraction: Fraction | None = None
    depreciation_months: Months | None = None
    depreciation: Literal["straight_line", "declining_balance"] = "straight_line"
    finance_rate_percent: Percent | None = None
    finance_months: Months | None = None
    lead_time_months: Annotated[int, Field(ge=0, le=LONGEST_HORIZON_MONTHS)] = 0
    availability_fraction: Annotated[float, Field(ge=0.5, le=1, allow_inf_nan=False)] | None = None
    decommissioning_usd_per_node: UsdOrFree | None = None


class LeaseTermsIn(Request):
    """Somebody else's machines for ``term_months``, housed and run by oneself: power, space, people, upkeep and insurance are
    counted as for bought ones, by the ``purchase`` terms. It cannot be cancelled: rates that outlast the horizon are owed.

    usd_per_node_month: null computes the level rate that gives a lessor ``implicit_rate_percent`` (null: the catalog's) on
    the machine's price. buyout_usd_per_node: what each is bought for at the end; null: they go back and others are leased.
    """

    term_months: Months
    usd_per_node_month: UsdOrFree | None = None
    implicit_rate_percent: Percent | None = None
    buyout_usd_per_node: UsdOrFree | None = None

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        if self.usd_per_node_month is not None and self.implicit_rate_percent is not None:
            raise ValueError("state usd_per_node_month or implicit_rate_percent, not both")
        return self


class OwnedIn(Request):
    """Machines that are there already. What was paid for them is sunk; what they would fetch today counts, at the start.

    nodes: null: all of the alternative's. usd_paid_per_node: what resale and upkeep are counted on; null: the price of a new
    one. They last until they are as old as ``purchase.depreciation_months``, and are then replaced.
    """

    age_months: Months
    nodes: Annotated[int, Field(ge=1, le=MOST_COUNT)] | None = None
    usd_paid_per_node: UsdOrFree | None = None


Kilowatts = Annotated[float, Field(ge=1e-9, le=1e6, allow_inf_nan=False)]


class SiteIn(Request):
    """Where bought machines are to stand; what is left out is not checked.

    circuit_*: what one machine is plugged into. pcie_lanes: of one machine's board. feed_kw: at the meter, so PUE is in
    it. cooling_kw: heat the room takes away. rack_kw, nodes_per_rack: of each of ``racks``.
    """

    circuit_v: Annotated[float, Field(ge=1e-9, le=1000, allow_inf_nan=False)] | None = None
    circuit_a: Annotated[float, Field(ge=1e-9, le=10_000, allow_inf_nan=False)] | None = None
    circuit_phases: Literal[1, 3] = 1
    pcie_lanes: Annotated[int, Field(ge=1, le=4096)] | None = None
    feed_kw: Kilowatts | None = None
    cooling_kw: Kilowatts | None = None
    racks: Annotated[int, Field(ge=1, le=MOST_COUNT)] | None = None
    rack_kw: Kilowatts | None = None
    nodes_per_rack: Annotated[int, Field(ge=1, le=1000)] | None = None

    @model_validator(mode="after")
    def _whole_circuit(self) -> Self:
        if (self.circuit_v is None) != (self.circuit_a is None):
            raise ValueError("a circuit needs circuit_v and circuit_a")
        return self


class FleetPartIn(Request):
    """Nodes of one kind. ``usd_per_node_hour``: a rent of your own; otherwise ``offer`` names a stored price."""

    node: Name
    count: Annotated[int, Field(ge=1, le=MOST_COUNT)]
    offer: Name | None = None
    usd_per_node_hour: UsdIn | None = None


class MachineIn(Request):
    """Figures of one kind of node that the catalog lacks, or that you know better, wherever an alternative has it.

    Stated with a price, a node is bought as it is; otherwise slices of a server or rack are bought as whole ones.
    """

    node: Name
    usd_per_node: UsdOrFree | None = None
    peak_kw_per_node: Annotated[float, Field(ge=1e-9, le=1e5, allow_inf_nan=False)] | None = None
    network_usd_per_node: UsdOrFree | None = None
    storage_usd_per_node: UsdOrFree | None = None


class ApiIn(Request):
    """Prices of somebody's API: your own, or ``model`` as the catalog lists it (``provider/model``).

    Cached input costs as much as other input unless stated.
    """

    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    usd_per_million_input_tokens: UsdOrFree | None = None
    usd_per_million_output_tokens: UsdOrFree | None = None
    usd_per_million_cached_tokens: UsdOrFree | None = None

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.model is None and None in (self.usd_per_million_input_tokens, self.usd_per_million_output_tokens):
            raise ValueError("state model, or usd_per_million_input_tokens and usd_per_million_output_tokens")
        return self


class AlternativeIn(Request):
    """One way to serve the workload: the plan of a stored recommendation, an explicit fleet, or an API; or to train: a stored
    training plan.

    acquisition: null keeps each offer's own. payment: of a commitment. follows_demand: nodes on demand are released and
    taken again through the day; needs ``hourly_profile``. carries: how many times the demand of the start the nodes serve
    within their targets; null takes what the plan says, or the planner says of a fleet. Growth needs no node before.
    egress_gb_per_month, storage_usd_per_month: of rented nodes, data sent out at the start (it grows with demand) and disks;
    counted only where stated. payment_timing: of rent, instalments and lease rates, at the end or the start of each month;
    ``payment`` says what is paid upfront. commitment_used_fraction: share of a commitment that is used on average; so much
    more is committed, and counted only where stated.
    """

    name: Annotated[str, Field(min_length=1, max_length=120, pattern=r"\S")]
    recommendation: Name | None = None
    training_plan: Name | None = None
    fleet: Annotated[tuple[FleetPartIn, ...], Field(min_length=1, max_length=MOST_NODE_KINDS)] | None = None
    api: ApiIn | None = None
    acquisition: Acquisition | None = None
    payment: Payment = "no_upfront"
    payment_timing: PaymentTiming = "in_arrears"
    commitment_used_fraction: Annotated[float, Field(ge=0.01, le=1, allow_inf_nan=False)] | None = None
    lease: LeaseTermsIn | None = None
    owned: OwnedIn | None = None
    follows_demand: bool = False
    carries: Annotated[float, Field(ge=1, le=10_000, allow_inf_nan=False)] | None = None
    egress_gb_per_month: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    storage_usd_per_month: UsdOrFree | None = None
    purchase: PurchaseIn = PurchaseIn()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        stated = [n for n in ("recommendation", "training_plan", "fleet", "api") if getattr(self, n) is not None]
        if len(stated) != 1:
            raise ValueError("state exactly one of recommendation, training_plan, fleet, api")
        if self.training_plan is not None and (self.carries is not None or self.follows_demand):
            raise ValueError("carries and follows_demand are of machines that serve, not of jobs that end")
        if self.api is not None and (self.acquisition is not None or self.follows_demand):
            raise ValueError("an API has no acquisition and follows demand by itself")
        if (self.acquisition == "lease") != (self.lease is not None):
            raise ValueError("acquisition lease and the field lease, with its term, belong together")
        if self.owned is not None and self.acquisition != "purchase":
            raise ValueError("owned is of machines of one's own: acquisition purchase")
        rented = self.api is None and self.acquisition not in ("purchase", "lease")
        if self.payment_timing == "in_advance" and not rented and self.lease is None:
            raise ValueError("payment_timing is of rent and of leases")
        if self.commitment_used_fraction is not None and not rented:
            raise ValueError("commitment_used_fraction is of a commitment to rent")
        if not rented and (self.egress_gb_per_month is not None or self.storage_usd_per_month is not None):
            raise ValueError("egress_gb_per_month and storage_usd_per_month are of rented nodes")
        if self.fleet is not None and self.acquisition is None:
            raise ValueError("a fleet needs an acquisition")
        return self


class SensitivityIn(Request):
    """``step``: each input up and down by ``step_percent``. ``range``: to the low and high of its catalog row."""

    mode: Literal["step", "range"] = "step"
    step_percent: Annotated[float, Field(ge=1e-9, lt=100, allow_inf_nan=False)] = 20.0


class MonteCarloIn(Request):
    """Draws over the ranges of the catalog's figures, half on either side of typical; what you state does not vary."""

    draws: Annotated[int, Field(ge=0, le=MOST_DRAWS)] = 1_000
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


PercentPerYear = Annotated[float, Field(ge=-90, le=100, allow_inf_nan=False)]


class MarketIn(Request):
    """Where prices go, a year; null takes the catalog's figure with its range. Zero: as they are today."""

    rent_percent_per_year: PercentPerYear | None = None
    api_percent_per_year: PercentPerYear | None = None
    hardware_percent_per_year: PercentPerYear | None = None


class ComparisonIn(Request):
    """What is compared, and the circumstances that all alternatives share. Null takes the catalog's figure.

    utilisation_fraction: average demand over the demand of the peak hour, for which fleets are sized;
    hourly_profile states it hour by hour instead. Of training plans: the share of the hours in which the plan that takes
    longest would be training; training_runs_per_month states it as how often all jobs are done instead. ramp_months: demand
    rises evenly to that of the workloads over so many months. tax_percent: on what is bought;
    income_tax_percent: saved on expenses when they are paid and on machines as they are written off, counted only where
    stated. workloads: needed unless a recommendation brings them.
    """

    horizon_months: Months = 36
    discount_rate_percent: Annotated[float, Field(ge=-50, le=100, allow_inf_nan=False)] | None = None
    utilisation_fraction: Fraction | None = None
    hourly_profile: (
        Annotated[tuple[Fraction, ...], Field(min_length=HOURS_PER_DAY, max_length=HOURS_PER_DAY)] | None
    ) = None
    training_runs_per_month: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    growth_percent_per_month: Annotated[float, Field(ge=-50, le=100, allow_inf_nan=False)] = 0.0
    ramp_months: Annotated[int, Field(ge=0, le=LONGEST_HORIZON_MONTHS)] = 0
    inflation_percent_per_year: Annotated[float, Field(ge=-20, le=100, allow_inf_nan=False)] | None = None
    market: MarketIn = MarketIn()
    tax_percent: Percent | None = None
    income_tax_percent: Percent | None = None
    electricity: ElectricityIn = ElectricityIn()
    power_usage_effectiveness: Annotated[float, Field(ge=1, le=5, allow_inf_nan=False)] | None = None
    colocation_usd_per_kw_month: UsdOrFree | None = None
    site: SiteIn | None = None
    operator: Annotated[str, Field(max_length=40)] = "enterprise"
    currency: CurrencyIn | None = None
    price_as_of: Instant | None = None
    workloads: Annotated[tuple[WorkloadIn, ...], Field(min_length=1, max_length=MOST_WORKLOADS)] | None = None
    alternatives: Annotated[tuple[AlternativeIn, ...], Field(min_length=1, max_length=MOST_ALTERNATIVES)]
    machines: Annotated[tuple[MachineIn, ...], Field(max_length=MOST_MACHINES)] = ()
    sensitivity: SensitivityIn = SensitivityIn()
    monte_carlo: MonteCarloIn = MonteCarloIn()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        trains = [one.training_plan is not None for one in self.alternatives]
        if any(trains):
            return self._of_training(all(trains))
        if self.training_runs_per_month is not None:
            raise ValueError("training_runs_per_month is of training plans")
        if (self.utilisation_fraction is None) == (self.hourly_profile is None):
            raise ValueError("state either utilisation_fraction or hourly_profile")
        return self

    def _of_training(self, nothing_else: bool) -> Self:
        if not nothing_else:
            raise ValueError(
                "training plans are compared with training plans: what serves and what trains do not do the same"
            )
        if (self.utilisation_fraction is None) == (self.training_runs_per_month is None):
            raise ValueError("of training plans, state either utilisation_fraction or training_runs_per_month")
        if self.workloads is not None or self.hourly_profile is not None:
            raise ValueError("workloads and hourly_profile are of what serves, not of training plans")
        if self.growth_percent_per_month or self.ramp_months:
            raise ValueError(
                "growth_percent_per_month and ramp_months are of demand that serves, not of training plans"
            )
        return self
