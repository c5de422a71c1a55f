"""Alternatives side by side: the whole comparison in one deterministic call."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations
from typing import Literal

import numpy as np

from solver.tco import position
from solver.tco.alternatives import (
    MOST_GROWTH,
    Alternative,
    ApiAccess,
    PurchasedFleet,
    RentedFleet,
    Scenario,
    Single,
    check_alternatives,
    parts_of,
)
from solver.tco.break_even import (
    BreakEvenMonth,
    BreakEvenUtilisation,
    break_even_utilisation,
    crossings,
)
from solver.tco.by_month import Values, demand_factor, nodes_needed
from solver.tco.capital import discount_factors, present_value
from solver.tco.cash_flows import LINES, Flows, Line, added, cash_flows, nodes_started, served_tokens
from solver.tco.electricity import water_l
from solver.tco.figures import Array, Figure
from solver.tco.money import MICRO_PER_USD, micro_dollars
from solver.tco.sampling import (
    BUSY_ROW,
    FIRST_SWING_ROW,
    IDLE_ROW,
    STATED_ROW,
    Samples,
    Sampling,
    inputs_used,
    sample,
)
from solver.tco.tokens import usd_per_million
from solver.tco.verdict import Verdict, cheapest_fractions, verdict

Kind = Literal["rent", "purchase", "lease", "api", "mixed"]
_KINDS: dict[type[Single], Kind] = {RentedFleet: "rent", PurchasedFleet: "purchase", ApiAccess: "api"}
NO_TOKENS = "no tokens are served at this utilisation, so a cost per token is undefined"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line, in whole micro-dollars. flows: start, then each month's end; their sum is ``total``."""

    name: Line
    flows: tuple[int, ...]
    total: int
    present_value: int


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """The whole cost divided by each kind of token and by requests; None with ``undefined_because``."""

    usd_per_million_input_tokens: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens: float | None
    usd_per_request: float | None
    undefined_because: str | None = None


@dataclass(frozen=True, slots=True)
class Footprint:
    """Over the horizon; None where an input is not known (an API's machines are not disclosed)."""

    it_kwh: float | None
    facility_kwh: float | None
    kg_co2e: float | None
    water_l: float | None


@dataclass(frozen=True, slots=True)
class Swing:
    """Net present value with one input at either end, all others as stated.

    low, high: the ends; None where the parts of a mixed fleet have values of their own, moved together.
    """

    input: str
    low: float | None
    high: float | None
    npv_usd_at_low: float
    npv_usd_at_high: float

    @property
    def effect_usd(self) -> float:
        return abs(self.npv_usd_at_high - self.npv_usd_at_low)


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles over the draws."""

    p10: float
    p25: float
    p50: float
    p75: float
    p90: float

    def holds(self, usd: float) -> bool:
        """Whether a value lies in the middle half of the draws, to the cent."""
        return self.p25 - 0.005 <= usd <= self.p75 + 0.005


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Monte Carlo over the ranges of the inputs. The unit cost is None where no tokens are served."""

    npv_usd: Spread
    total_usd: Spread
    usd_per_million_tokens: Spread | None
    cheapest_fraction: float
    """Share of draws in which this alternative has the lowest net present value."""


@dataclass(frozen=True, slots=True)
class PartUsed:
    """What the stated case of one part was computed from. nodes: paid for in each month; started: bought or committed in
    it; needed: those that demand needs; empty for an API. figures: every input that enters."""

    part: Single
    nodes: tuple[float, ...]
    started: tuple[float, ...]
    needed: tuple[float, ...]
    figures: Mapping[str, Figure]
    lines: Mapping[Line, tuple[float, ...]]
    """USD by column, where the alternative has several parts; empty where its own lines are the part's."""


@dataclass(frozen=True, slots=True)
class AlternativeCost:
    """Everything about one alternative. Money in whole micro-dollars where an int."""

    name: str
    kind: Kind
    lines: tuple[CostLine, ...]
    flows: tuple[int, ...]
    total: int
    npv: int
    input_tokens: float
    output_tokens: float
    unit: UnitCosts
    footprint: Footprint
    swings: tuple[Swing, ...]
    uncertainty: Uncertainty | None
    """None when no draws were asked for."""
    standing: position.FinancialPosition = field(compare=False)
    parts: tuple[PartUsed, ...] = ()
    """Month by month, to ``LOOK_AHEAD_MONTHS`` or the horizon."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One input at either end of its own range, all others as stated: what it does to the lead of the cheapest alternative
    over the runner-up, or, of a single alternative, to its net present value."""

    input: str
    usd_at_low: float
    usd_at_high: float

    @property
    def effect_usd(self) -> float:
        return abs(self.usd_at_high - self.usd_at_low)


@dataclass(frozen=True, slots=True)
class CostComparison:
    """Alternatives in the order given, and every pair's break-even points."""

    alternatives: tuple[AlternativeCost, ...]
    verdict: Verdict
    doubts: tuple[Doubt, ...]
    """Inputs that have a range, the one that matters most to the choice first."""
    break_even_months: tuple[BreakEvenMonth, ...]
    break_even_utilisations: tuple[BreakEvenUtilisation, ...]


@dataclass(frozen=True, slots=True)
class _Evaluated:
    alternative: Alternative
    samples: Samples
    values: Values
    """Those of the first part; the scenario's inputs are the same in all."""
    flows: Flows
    part_flows: tuple[Flows, ...]
    total_usd: Array
    npv_usd: Array
    tokens: Array


LOOK_AHEAD_MONTHS = 120
"""How far break-even is looked for whatever the horizon: twice the usual life of machines."""
AS_STATED = Sampling()


def compare(
    alternatives: Sequence[Alternative],
    scenario: Scenario,
    sampling: Sampling = AS_STATED,
) -> CostComparison:
    """Costs of all alternatives at the same demand.

    Raises CostInputError naming the field, FigureMissingError where an input has no value.
    """
    check_alternatives(alternatives, scenario)
    evaluated = [_evaluate(alternative, scenario, sampling) for alternative in alternatives]
    draws = sampling.draws
    npv_draws = np.stack([e.npv_usd[-draws:] for e in evaluated]) if draws else None
    chances = [0.0] * len(evaluated) if npv_draws is None else cheapest_fractions(npv_draws)
    until = _look_ahead(scenario)
    costs = tuple(_cost(e, scenario, sampling, share, until) for e, share in zip(evaluated, chances, strict=True))
    pairs = list(combinations(range(len(costs)), 2))
    found = verdict([cost.name for cost in costs], [cost.npv for cost in costs], npv_draws)
    return CostComparison(
        alternatives=costs,
        verdict=found,
        doubts=_doubts({e.alternative.name: e for e in evaluated}, found),
        break_even_months=tuple(_break_even(costs[a], costs[b], scenario, until) for a, b in pairs),
        break_even_utilisations=tuple(_utilisation(evaluated[a], evaluated[b]) for a, b in pairs),
    )


def _doubts(evaluated: dict[str, _Evaluated], found: Verdict) -> tuple[Doubt, ...]:
    first = evaluated[found.name]
    second = None if found.runner_up is None else evaluated[found.runner_up]
    names = set(first.samples.inputs) | set(() if second is None else second.samples.inputs)

    def npv(one: _Evaluated, name: str, end: int) -> float:
        rows = one.samples.range_rows(name)
        return float(one.npv_usd[STATED_ROW if rows is None else rows[end]])

    def stake(name: str, end: int) -> float:
        return npv(first, name, end) if second is None else npv(second, name, end) - npv(first, name, end)

    doubts = [Doubt(name, stake(name, 0), stake(name, 1)) for name in sorted(names)]
    return tuple(sorted((d for d in doubts if d.effect_usd > 0.005), key=lambda doubt: -doubt.effect_usd))


def _look_ahead(scenario: Scenario) -> int:
    """Months over which break-even is looked for: at least LOOK_AHEAD_MONTHS, as far as growth stays plausible."""
    rate = math.log1p(max(0.0, scenario.figures["growth_fraction_per_month"].typical))
    sensible = (
        LOOK_AHEAD_MONTHS if rate * LOOK_AHEAD_MONTHS < math.log(MOST_GROWTH) else math.log(MOST_GROWTH) / rate - 1
    )
    return max(scenario.horizon_months, min(LOOK_AHEAD_MONTHS, int(sensible)))


def _standing(evaluated: _Evaluated, scenario: Scenario, until: int) -> position.FinancialPosition:
    ahead = replace(scenario, horizon_months=until)
    parts = zip(parts_of(evaluated.alternative), evaluated.samples.values, strict=True)
    found = [
        position.standing(part, ahead, {name: column[STATED_ROW : STATED_ROW + 1] for name, column in values.items()})
        for part, values in parts
    ]
    return position.added(found)


def _used(evaluated: _Evaluated, number: int, scenario: Scenario) -> PartUsed:
    part = parts_of(evaluated.alternative)[number]
    figures = inputs_used(part, scenario)
    if isinstance(part, ApiAccess):
        return PartUsed(part, (), (), (), figures, {})
    values = {name: column[STATED_ROW : STATED_ROW + 1] for name, column in evaluated.samples.values[number].items()}
    nodes, started = nodes_started(part, scenario, values)
    needed = nodes_needed(part, demand_factor(scenario, values))
    several = len(evaluated.part_flows) > 1
    lines = evaluated.part_flows[number].lines if several else {}
    return PartUsed(
        part,
        tuple(nodes[0].tolist()),
        tuple(started[0].tolist()),
        tuple(needed[0].tolist()),
        figures,
        {line: tuple(flow[STATED_ROW].tolist()) for line, flow in lines.items()},
    )


def _break_even(first: AlternativeCost, second: AlternativeCost, scenario: Scenario, until: int) -> BreakEvenMonth:
    rate = scenario.figures["discount_fraction_per_year"].typical
    horizon, one, other = scenario.horizon_months, first.standing, second.standing
    names = first.name, second.name
    return BreakEvenMonth(
        *names,
        until_month=until,
        if_ended=crossings(*names, one.if_ended, other.if_ended, horizon),
        discounted=crossings(*names, one.present_value_if_ended(rate), other.present_value_if_ended(rate), horizon),
        cash=crossings(*names, one.cash, other.cash, horizon),
    )


def _evaluate(alternative: Alternative, scenario: Scenario, sampling: Sampling) -> _Evaluated:
    samples = sample(alternative, scenario, sampling)
    parts = zip(parts_of(alternative), samples.values, strict=True)
    part_flows = tuple(cash_flows(part, scenario, part_values) for part, part_values in parts)
    flows = added(part_flows)
    values = samples.values[0]
    rows = len(values["utilisation_fraction"])
    total = np.zeros((rows, scenario.horizon_months + 1))
    for flow in flows.lines.values():
        total += flow
    demand = scenario.demand
    tokens = served_tokens(scenario, values, demand.input_tokens + demand.output_tokens).sum(axis=-1)
    npv = present_value(total, values["discount_fraction_per_year"])
    return _Evaluated(alternative, samples, values, flows, part_flows, total.sum(axis=-1), npv, tokens)


def _cost(
    evaluated: _Evaluated, scenario: Scenario, sampling: Sampling, cheapest_fraction: float, until: int
) -> AlternativeCost:
    values = evaluated.values
    name, discount = evaluated.alternative.name, float(values["discount_fraction_per_year"][STATED_ROW, 0])
    lines = _cost_lines(name, evaluated.flows, discount)
    total = sum(line.total for line in lines)
    stated = {name: column[STATED_ROW : STATED_ROW + 1] for name, column in values.items()}
    input_tokens = float(served_tokens(scenario, stated, scenario.demand.input_tokens).sum())
    output_tokens = float(served_tokens(scenario, stated, scenario.demand.output_tokens).sum())
    requests = float(served_tokens(scenario, stated, 1.0).sum())
    columns = range(scenario.horizon_months + 1)
    return AlternativeCost(
        name=evaluated.alternative.name,
        kind=_kind(evaluated.alternative),
        lines=lines,
        flows=tuple(sum(line.flows[column] for line in lines) for column in columns),
        total=total,
        npv=sum(line.present_value for line in lines),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        unit=_unit_costs(total / MICRO_PER_USD, input_tokens, output_tokens, requests),
        footprint=_footprint(evaluated),
        swings=_swings(evaluated),
        uncertainty=_uncertainty(evaluated, sampling.draws, cheapest_fraction),
        standing=_standing(evaluated, scenario, until),
        parts=tuple(_used(evaluated, number, scenario) for number in range(len(evaluated.samples.values))),
    )


def _kind(alternative: Alternative) -> Kind:
    kinds = {kind_of(part) for part in parts_of(alternative)}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def kind_of(part: Single) -> Kind:
    """How one part is had."""
    return "lease" if isinstance(part, PurchasedFleet) and part.lease is not None else _KINDS[type(part)]


def _cost_lines(alternative: str, flows: Flows, discount_fraction_per_year: float) -> tuple[CostLine, ...]:
    """The stated case in whole micro-dollars, lines without any flow left out.

    Present values multiply decimals: at a rate of 0 they are the integer sum itself, however large.
    """
    lines = []
    for name in LINES:
        if name not in flows.lines:
            continue
        micro = tuple(int(m) for m in micro_dollars(flows.lines[name][STATED_ROW], alternative))
        if any(micro):
            factors = discount_factors(discount_fraction_per_year, len(micro) - 1)
            worth = sum((m * Decimal(float(f)) for m, f in zip(micro, factors, strict=True) if m), start=Decimal(0))
            lines.append(CostLine(name, micro, sum(micro), int(worth.to_integral_value())))
    return tuple(lines)


def _unit_costs(total_usd: float, input_tokens: float, output_tokens: float, requests: float) -> UnitCosts:
    per_million_requests = usd_per_million(total_usd, requests)
    return UnitCosts(
        usd_per_million_input_tokens=usd_per_million(total_usd, input_tokens),
        usd_per_million_output_tokens=usd_per_million(total_usd, output_tokens),
        usd_per_million_tokens=usd_per_million(total_usd, input_tokens + output_tokens),
        usd_per_request=None if per_million_requests is None else per_million_requests / 1e6,
        undefined_because=None if input_tokens + output_tokens > 0 else NO_TOKENS,
    )


def _footprint(evaluated: _Evaluated) -> Footprint:
    flows, values = evaluated.flows, evaluated.values
    if flows.it_kwh is None or flows.facility_kwh is None:
        return Footprint(None, None, None, None)
    it_kwh = float(flows.it_kwh[STATED_ROW].sum())
    facility_kwh = float(flows.facility_kwh[STATED_ROW].sum())
    water = values.get("water_l_per_kwh")
    return Footprint(
        it_kwh=it_kwh,
        facility_kwh=facility_kwh,
        kg_co2e=None if flows.kg_co2e is None else float(flows.kg_co2e[STATED_ROW].sum()),
        water_l=None if water is None else float(water_l(it_kwh, water[STATED_ROW, 0])),
    )


def _swings(evaluated: _Evaluated) -> tuple[Swing, ...]:
    """Tornado: largest effect first; inputs that move nothing are left out."""
    npv = evaluated.npv_usd
    swings = []
    for number, name in enumerate(evaluated.samples.inputs):
        row = FIRST_SWING_ROW + 2 * number
        low, high = evaluated.samples.ends[number] or (None, None)
        swing = Swing(name, low, high, float(npv[row]), float(npv[row + 1]))
        if swing.effect_usd > 0:
            swings.append(swing)
    return tuple(sorted(swings, key=lambda swing: (-swing.effect_usd, swing.input)))


def _uncertainty(evaluated: _Evaluated, draws: int, cheapest_fraction: float) -> Uncertainty | None:
    if not draws:
        return None
    total, tokens = evaluated.total_usd[-draws:], np.broadcast_to(evaluated.tokens, evaluated.total_usd.shape)[-draws:]
    return Uncertainty(
        npv_usd=_spread(evaluated.npv_usd[-draws:]),
        total_usd=_spread(total),
        usd_per_million_tokens=_spread(total / tokens * 1e6) if (tokens > 0).all() else None,
        cheapest_fraction=cheapest_fraction,
    )


def _spread(samples: Array) -> Spread:
    return Spread(*(float(p) for p in np.percentile(samples, (10, 25, 50, 75, 90))))


def _utilisation(first: _Evaluated, second: _Evaluated) -> BreakEvenUtilisation:
    names = first.alternative.name, second.alternative.name
    parts = (*parts_of(first.alternative), *parts_of(second.alternative))
    if any(isinstance(part, RentedFleet) and part.follows_demand for part in parts):
        return BreakEvenUtilisation(
            *names, None, None, None, "a fleet that follows an hourly profile has its utilisation"
        )
    ends = [(float(e.npv_usd[IDLE_ROW]), float(e.npv_usd[BUSY_ROW])) for e in (first, second)]
    return break_even_utilisation(*names, ends[0], ends[1])
