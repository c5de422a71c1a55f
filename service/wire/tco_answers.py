"""POST and GET /v1/tco/comparisons, the answer."""

import datetime as dt

from service.wire.quantities import Answer, Usd
from service.wire.tco import ComparisonIn


class CostLineOut(Answer):
    """``usd_by_month``: at the start, then at the end of each month. Received money is negative."""

    line: str
    total_usd: Usd
    present_value_usd: Usd
    usd_by_month: list[Usd]


class PartOut(Answer):
    """Nodes of one kind in an alternative, and where the price comes from.

    sold_as_devices: of the whole machine that is bought where ``node`` is a slice of one, and ``nodes`` and ``devices`` are
    then of whole machines; null otherwise. carries: the demand they serve, relative to that of the start; nodes_per_step:
    how many are added at a time. kg_co2e_per_kwh: of the grid where they stand, null where nobody says.
    """

    node: str
    device: str
    nodes: int
    devices: int
    sold_as_devices: int | None
    carries: float
    nodes_per_step: int
    region: str | None
    kg_co2e_per_kwh: float | None
    offer: str | None
    usd_per_node_hour: Usd | None
    rent_basis: str
    peak_kw_per_node: float | None


class SwingOut(Answer):
    """Net present value with one input at either end. Null ends: parts of a fleet have values of their own."""

    input: str
    low: float | None
    high: float | None
    npv_usd_at_low: Usd
    npv_usd_at_high: Usd
    effect_usd: Usd


class SpreadOut(Answer):
    p10: Usd
    p25: Usd
    p50: Usd
    p75: Usd
    p90: Usd


class UncertaintyOut(Answer):
    """``cheapest_fraction``: share of draws in which this alternative has the lowest net present value. stated_in_middle_half:
    whether the net present value at typical inputs lies between p25 and p75."""

    draws: int
    seed: int
    npv_usd: SpreadOut
    total_usd: SpreadOut
    usd_per_million_tokens: SpreadOut | None
    cheapest_fraction: float
    stated_in_middle_half: bool


class DepreciationOut(Answer):
    """What owned machines are worth at the start, then at the end of each month: to the accounts, network and storage
    included, and on the market, where only machines fetch anything. Moves no cash until they are sold."""

    method: str
    months: int
    book_value_usd_by_month: list[Usd]
    market_value_usd_by_month: list[Usd]


class CrossingsOut(Answer):
    """month: first crossing of two curves of cost so far, null without one; crossings: all of them."""

    month: float | None
    crossings: list[float]
    cheaper_at_start: str | None
    cheaper_at_horizon: str | None


class BreakEvenOut(Answer):
    """Against one other alternative, looked for to ``until_month`` whatever the horizon.

    undiscounted: cost had either ended in that month, machines sold at what they fetch then and debts paid. discounted:
    the same in present value (discounted payback). cash: payments alone, undiscounted, machines worth nothing until sold.
    utilisation_fraction: where net present values (discounted, over the horizon) are equal, null (with
    ``utilisation_reason``) where there is none.
    """

    against: str
    until_month: int
    undiscounted: CrossingsOut
    discounted: CrossingsOut
    cash: CrossingsOut
    utilisation_fraction: float | None
    cheaper_below: str | None
    cheaper_above: str | None
    utilisation_reason: str | None


class UsedInputOut(Answer):
    """One input of the cost model with the range that draws are taken from; ``stated`` ones have none."""

    input: str
    low: float
    typical: float
    high: float
    stated: bool


class ComputedFromOut(Answer):
    """All that the costs of one kind of node, or of an API, were computed from: enough to compute them again.

    nodes_by_month: paid for in each month; started_by_month: bought, leased or committed in it; needed_by_month: those that
    demand needs. Empty for an API. usd_by_line: by month, where the alternative has several kinds of node; empty where
    ``lines`` are those of the only one. in_advance: rent, instalments and rates are paid at the start of a month.
    busy_fraction: share of the demand's hours in which the nodes train, null of what serves; by the hour they are rented only
    then. interrupted_together: nodes that stop when one of them is interrupted. lease_months: null without a lease. held_nodes: there
    already, ``held_age_months`` old at the start.
    """

    name: str
    kind: str
    nodes_by_month: list[float]
    started_by_month: list[float]
    devices_per_node: int | None
    term_months: int | None
    upfront_fraction: float | None
    interruptible: bool
    follows_demand: bool
    busy_fraction: float | None = None
    interrupted_together: int | None = None
    life_months: int | None
    finance_months: int | None
    lead_time_months: int | None
    needed_by_month: list[float]
    in_advance: bool
    lease_months: int | None
    bought_out: bool
    held_nodes: int
    held_age_months: int | None
    inputs: list[UsedInputOut]
    usd_by_line: dict[str, list[Usd]]


class AlternativeCostOut(Answer):
    """Unit costs divide the whole cost by each kind of token; null with ``undefined_because`` where none is served."""

    name: str
    kind: str
    acquisition: str | None
    recommendation: str | None
    training_plan: str | None = None
    parts: list[PartOut]
    computed_from: list[ComputedFromOut]
    lines: list[CostLineOut]
    usd_by_month: list[Usd]
    total_usd: Usd
    npv_usd: Usd
    total_in_currency: Usd | None
    npv_in_currency: Usd | None
    usd_per_million_input_tokens: Usd | None
    usd_per_million_output_tokens: Usd | None
    usd_per_million_tokens: Usd | None
    usd_per_request: Usd | None
    undefined_because: str | None
    input_tokens: float
    output_tokens: float
    it_energy_kwh: float | None
    energy_kwh: float | None
    co2e_kg: float | None
    water_l: float | None
    break_even: list[BreakEvenOut]
    sensitivity: list[SwingOut]
    uncertainty: UncertaintyOut | None
    depreciation: DepreciationOut | None
    sunk_usd: Usd | None
    """Paid earlier for machines that are there already, in no line; null where none are."""
    precision: list[str]
    """Formats of weights and cache that the plan serves with; empty where nobody says."""
    survives: dict[str, int] | None
    """Losses after which the plan still serves all demand, by kind; null where nobody says."""
    notes: list[str]


class OriginOut(Answer):
    source: str
    as_of: str
    checked: str


class DefaultOut(Answer):
    """A figure taken from the catalog. ``alternative``: null where it holds for all."""

    alternative: str | None
    input: str
    low: float
    typical: float
    high: float
    unit: str
    how: str
    origins: list[OriginOut]


class TrainedOut(Answer):
    """What every training plan does. runs: how often all jobs are done over the horizon, at ``hours_per_run`` of the plan that
    takes longest; runs_per_month_at_most: back to back."""

    jobs: list[str]
    tokens_per_run: float
    hours_per_run: float
    runs: float
    runs_per_month_at_most: float


class DemandOut(Answer):
    """What every alternative serves: the peak hour's requests and mean tokens of a request.

    Of training plans a request is one run of all jobs, its input the tokens trained on, and the peak is runs back to back."""

    trained: TrainedOut | None = None
    """Null of what serves."""

    requests_per_s: float
    input_tokens: float
    output_tokens: float
    cached_fraction: float
    utilisation_fraction: float


class ComparisonInputsOut(Answer):
    price_as_of: dt.datetime
    catalog_digest: str
    cost_catalog_digest: str
    version: str


class CheapestOut(Answer):
    """The alternative with the lowest net present value at the typical value of every input (``measure``).

    lead_usd: how far ``runner_up`` is behind. Over the draws, null without any: chance of being cheapest;
    most_often_cheapest and its chance; value_at_stake_usd, the net present value lost on average by taking this one and not
    whichever turns out cheapest, and its 90th percentile. agrees: whether both measures name the same alternative; why_not:
    the reason where they do not.
    """

    name: str
    measure: str
    npv_usd: Usd
    runner_up: str | None
    lead_usd: Usd | None
    chance: float | None
    most_often_cheapest: str | None
    most_often_chance: float | None
    value_at_stake_usd: Usd | None
    value_at_stake_p90_usd: Usd | None
    agrees: bool | None
    why_not: str | None


class WantedOut(Answer):
    """A figure not stated, at either end of its catalog range: what that does to the lead of the cheapest alternative over
    the runner-up (of a single alternative, to its net present value). ``state``: where the request takes it."""

    input: str
    state: str | None
    low: float | None
    typical: float | None
    high: float | None
    lead_usd_at_low: Usd
    lead_usd_at_high: Usd
    effect_usd: Usd


class ComparisonResultOut(Answer):
    """What was computed: stored as it is.

    warnings: what in the request is free, or far from what anybody is known to pay. wanted: the three figures whose
    statement would make the choice surer than any other's.
    """

    summary: str
    warnings: list[str]
    demand: DemandOut
    alternatives: list[AlternativeCostOut]
    cheapest: CheapestOut
    wanted: list[WantedOut]
    defaults: list[DefaultOut]


class ComparisonOut(ComparisonResultOut):
    """``link``: to hand on. Its id cannot be guessed; where tokens are in use, opening it needs one of any role."""

    id: str
    link: str
    created_at: dt.datetime
    inputs: ComparisonInputsOut
    request: ComparisonIn
    """The request with every default of the API filled in."""
