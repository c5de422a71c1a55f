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
    """Nodes of one kind in an alternative, and where the price comes from."""

    node: str
    device: str
    nodes: int
    devices: int
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
    p50: Usd
    p90: Usd


class UncertaintyOut(Answer):
    """``cheapest_fraction``: share of draws in which this alternative has the lowest net present value."""

    draws: int
    seed: int
    npv_usd: SpreadOut
    total_usd: SpreadOut
    usd_per_million_tokens: SpreadOut | None
    cheapest_fraction: float


class DepreciationOut(Answer):
    """Book value of what was bought at the start: at the start, then at the end of each month. Moves no cash."""

    method: str
    months: int
    book_value_usd_by_month: list[Usd]


class BreakEvenOut(Answer):
    """Against one other alternative.

    month: first crossing of cumulative costs, null without one; crossings: all of them. utilisation_fraction: where
    net present values are equal, null (with ``utilisation_reason``) where there is none.
    """

    against: str
    month: float | None
    crossings: list[float]
    cheaper_at_start: str | None
    cheaper_at_horizon: str | None
    utilisation_fraction: float | None
    cheaper_below: str | None
    cheaper_above: str | None
    utilisation_reason: str | None


class AlternativeCostOut(Answer):
    """Unit costs divide the whole cost by each kind of token; null with ``undefined_because`` where none is served."""

    name: str
    kind: str
    acquisition: str | None
    recommendation: str | None
    parts: list[PartOut]
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


class DemandOut(Answer):
    """What every alternative serves: the peak hour's requests and mean tokens of a request."""

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


class ComparisonResultOut(Answer):
    """What was computed: stored as it is."""

    demand: DemandOut
    alternatives: list[AlternativeCostOut]
    cheapest: str
    """Lowest net present value."""
    defaults: list[DefaultOut]


class ComparisonOut(ComparisonResultOut):
    """``link``: to hand on. Its id cannot be guessed; where tokens are in use, opening it needs one of any role."""

    id: str
    link: str
    created_at: dt.datetime
    inputs: ComparisonInputsOut
    request: ComparisonIn
    """The request with every default of the API filled in."""
