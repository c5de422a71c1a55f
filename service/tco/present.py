"""Results of the cost model → wire."""

from collections.abc import Mapping
from decimal import Decimal

from service.tco.defaults import Default
from service.tco.notes import service_notes
from service.tco.prepare import PreparedComparison
from service.tco.prices import AT_RATIO
from service.tco.refusals import where_stated
from service.tco.resolve import Resolved
from service.tco.summary import MEASURE, summary_of, why_not
from service.tco.tables import ComparisonTable
from service.tco.trained import TrainingDemand
from service.wire.tco import ComparisonIn, CurrencyIn
from service.wire.tco_answers import (
    AlternativeCostOut,
    BreakEvenOut,
    CheapestOut,
    ComparisonInputsOut,
    ComparisonOut,
    ComparisonResultOut,
    ComputedFromOut,
    CostLineOut,
    CrossingsOut,
    DefaultOut,
    DemandOut,
    DepreciationOut,
    OriginOut,
    SpreadOut,
    SwingOut,
    TrainedOut,
    UncertaintyOut,
    UsedInputOut,
    WantedOut,
)
from solver.tco.alternatives import PurchasedFleet, Scenario, parts_of
from solver.tco.break_even import Crossings
from solver.tco.compare import AlternativeCost, CostComparison, PartUsed, Spread, kind_of
from solver.tco.money import MICRO_PER_USD, decimal_usd, in_currency

MOST_WANTED = 3
SIX_PLACES = Decimal("0.000001")


def link_of(comparison_id: str) -> str:
    return f"/v1/tco/comparisons/{comparison_id}"


def present_comparison(row: ComparisonTable) -> ComparisonOut:
    """A stored comparison, as it was answered."""
    return ComparisonOut(
        **row.result,
        id=row.id,
        link=link_of(row.id),
        created_at=row.created_at,
        inputs=ComparisonInputsOut(
            price_as_of=row.price_as_of,
            catalog_digest=row.catalog_digest,
            cost_catalog_digest=row.cost_catalog_digest,
            version=row.version,
        ),
        request=ComparisonIn.model_validate(row.request),
    )


def present_result(
    asked: ComparisonIn, comparison: CostComparison, prepared: PreparedComparison
) -> ComparisonResultOut:
    resolved, shared = prepared.resolved, prepared.shared
    service = service_notes(resolved, comparison.alternatives)
    costs = [
        _alternative(asked, cost, own, comparison, notes, prepared)
        for cost, own, notes in zip(comparison.alternatives, resolved, service, strict=True)
    ]
    demand = shared.scenario.demand
    at_ratio = {cost.name for cost in costs if any(part.rent_basis == AT_RATIO for part in cost.parts)}
    return ComparisonResultOut(
        summary=summary_of(comparison, asked.horizon_months, at_ratio),
        warnings=prepared.warnings,
        demand=DemandOut(
            requests_per_s=demand.requests_per_s,
            input_tokens=demand.input_tokens,
            output_tokens=demand.output_tokens,
            cached_fraction=demand.cached_fraction,
            utilisation_fraction=shared.scenario.figures["utilisation_fraction"].typical,
            trained=None if prepared.trained is None else _trained(prepared.trained, shared.scenario),
        ),
        alternatives=costs,
        cheapest=_cheapest(comparison),
        wanted=_wanted(comparison, prepared),
        defaults=[
            *present_defaults(None, shared.defaults),
            *(d for r in resolved for d in present_defaults(r.asked.name, r.defaults)),
        ],
    )


def _trained(what: TrainingDemand, scenario: Scenario) -> TrainedOut:
    busy = scenario.figures["utilisation_fraction"].typical
    return TrainedOut(
        jobs=list(what.jobs),
        tokens_per_run=what.tokens_per_run,
        hours_per_run=what.hours_per_run,
        runs=busy * what.runs_per_month_at_most * scenario.horizon_months,
        runs_per_month_at_most=what.runs_per_month_at_most,
    )


def _cheapest(comparison: CostComparison) -> CheapestOut:
    found = comparison.verdict
    return CheapestOut(
        name=found.name,
        measure=MEASURE,
        npv_usd=decimal_usd(found.npv_micro),
        runner_up=found.runner_up,
        lead_usd=None if found.lead_micro is None else decimal_usd(found.lead_micro),
        chance=found.chance,
        most_often_cheapest=found.most_often,
        most_often_chance=found.most_often_chance,
        value_at_stake_usd=_usd(found.value_at_stake_usd),
        value_at_stake_p90_usd=_usd(found.value_at_stake_p90_usd),
        agrees=found.agrees,
        why_not=why_not(comparison),
    )


def _wanted(comparison: CostComparison, prepared: PreparedComparison) -> list[WantedOut]:
    """The figures that a statement would make the choice surer by, most first."""
    wanted = []
    for doubt in comparison.doubts[:MOST_WANTED]:
        ranges = {
            default.figure
            for table in (prepared.shared.defaults, *(own.defaults for own in prepared.resolved))
            for name, default in table.items()
            if name == doubt.input
        }
        figure = ranges.pop() if len(ranges) == 1 else None  # machines of an alternative have ranges of their own
        wanted.append(
            WantedOut(
                input=doubt.input,
                state=where_stated(doubt.input),
                low=None if figure is None else figure.low,
                typical=None if figure is None else figure.typical,
                high=None if figure is None else figure.high,
                lead_usd_at_low=_exactly(doubt.usd_at_low),
                lead_usd_at_high=_exactly(doubt.usd_at_high),
                effect_usd=_exactly(doubt.effect_usd),
            )
        )
    return wanted


def _alternative(
    asked: ComparisonIn,
    cost: AlternativeCost,
    own: Resolved,
    comparison: CostComparison,
    notes: list[str],
    prepared: PreparedComparison,
) -> AlternativeCostOut:
    footprint, unit = cost.footprint, cost.unit
    total, npv = decimal_usd(cost.total), decimal_usd(cost.npv)
    return AlternativeCostOut(
        name=cost.name,
        kind=cost.kind,
        acquisition=own.acquisition,
        recommendation=own.asked.recommendation,
        training_plan=own.asked.training_plan,
        parts=own.parts,
        computed_from=[_computed_from(used, own, prepared, number) for number, used in enumerate(cost.parts)],
        lines=[
            CostLineOut(
                line=line.name,
                total_usd=decimal_usd(line.total),
                present_value_usd=decimal_usd(line.present_value),
                usd_by_month=[decimal_usd(flow) for flow in line.flows],
            )
            for line in cost.lines
        ],
        usd_by_month=[decimal_usd(flow) for flow in cost.flows],
        total_usd=total,
        npv_usd=npv,
        total_in_currency=_converted(total, asked.currency),
        npv_in_currency=_converted(npv, asked.currency),
        usd_per_million_input_tokens=_usd(unit.usd_per_million_input_tokens),
        usd_per_million_output_tokens=_usd(unit.usd_per_million_output_tokens),
        usd_per_million_tokens=_usd(unit.usd_per_million_tokens),
        usd_per_request=_usd(unit.usd_per_request),
        undefined_because=unit.undefined_because,
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        it_energy_kwh=footprint.it_kwh,
        energy_kwh=footprint.facility_kwh,
        co2e_kg=footprint.kg_co2e,
        water_l=footprint.water_l,
        break_even=_break_even(cost.name, comparison),
        sensitivity=[
            SwingOut(
                input=swing.input,
                low=swing.low,
                high=swing.high,
                npv_usd_at_low=_exactly(swing.npv_usd_at_low),
                npv_usd_at_high=_exactly(swing.npv_usd_at_high),
                effect_usd=_exactly(swing.effect_usd),
            )
            for swing in cost.swings
        ],
        uncertainty=_uncertainty(asked, cost),
        depreciation=_depreciation(own, cost, asked.horizon_months),
        sunk_usd=own.sunk_usd,
        precision=list(own.precision),
        survives=own.survives,
        notes=[*own.notes, *notes, *_spread_note(cost)],
    )


def _uncertainty(asked: ComparisonIn, cost: AlternativeCost) -> UncertaintyOut | None:
    found = cost.uncertainty
    if found is None:
        return None
    return UncertaintyOut(
        draws=asked.monte_carlo.draws,
        seed=asked.monte_carlo.seed,
        npv_usd=_spread(found.npv_usd),
        total_usd=_spread(found.total_usd),
        usd_per_million_tokens=None if found.usd_per_million_tokens is None else _spread(found.usd_per_million_tokens),
        cheapest_fraction=found.cheapest_fraction,
        stated_in_middle_half=found.npv_usd.holds(cost.npv / MICRO_PER_USD),
    )


def _spread_note(cost: AlternativeCost) -> list[str]:
    """A stated case outside the middle half of its own draws says so: its inputs' ranges lie mostly to one side."""
    found = cost.uncertainty
    if found is None or found.npv_usd.holds(cost.npv / MICRO_PER_USD):
        return []
    side = "below" if cost.npv / MICRO_PER_USD < found.npv_usd.p25 else "above"
    return [f"the stated case is {side} the middle half of its own draws: read the median"]


def _break_even(name: str, comparison: CostComparison) -> list[BreakEvenOut]:
    """Every pair this alternative is in, seen from its side."""
    pairs = zip(comparison.break_even_months, comparison.break_even_utilisations, strict=True)
    return [
        BreakEvenOut(
            against=month.second if month.first == name else month.first,
            until_month=month.until_month,
            undiscounted=_crossings(month.if_ended),
            discounted=_crossings(month.discounted),
            cash=_crossings(month.cash),
            utilisation_fraction=utilisation.utilisation_fraction,
            cheaper_below=utilisation.cheaper_below,
            cheaper_above=utilisation.cheaper_above,
            utilisation_reason=utilisation.reason,
        )
        for month, utilisation in pairs
        if name in (month.first, month.second)
    ]


def _computed_from(used: PartUsed, own: Resolved, prepared: PreparedComparison, number: int) -> ComputedFromOut:
    part = used.part
    lease, held = getattr(part, "lease", None), getattr(part, "held", None)
    name = own.asked.name if not own.parts else own.parts[number].node
    catalog = own.defaults.keys() | prepared.shared.defaults.keys()
    return ComputedFromOut(
        name=name,
        kind=kind_of(part),
        nodes_by_month=list(used.nodes),
        started_by_month=list(used.started),
        devices_per_node=getattr(part, "devices_per_node", None),
        term_months=getattr(part, "term_months", None),
        upfront_fraction=getattr(part, "upfront_fraction", None),
        interruptible=getattr(part, "interruptible", False),
        follows_demand=getattr(part, "follows_demand", False),
        busy_fraction=getattr(part, "busy_fraction", None),
        interrupted_together=getattr(part, "interrupted_together", None),
        life_months=getattr(part, "life_months", None),
        finance_months=getattr(part, "finance_term_months", None),
        lead_time_months=getattr(part, "lead_time_months", None),
        needed_by_month=list(used.needed),
        in_advance=getattr(part if lease is None else lease, "in_advance", False),
        lease_months=getattr(lease, "term_months", None),
        bought_out=getattr(lease, "bought_out", False),
        held_nodes=0 if held is None else held.nodes,
        held_age_months=None if held is None else held.age_months,
        inputs=[
            UsedInputOut(
                input=name, low=figure.low, typical=figure.typical, high=figure.high, stated=name not in catalog
            )
            for name, figure in sorted(used.figures.items())
        ],
        usd_by_line={line: [_exactly(usd) for usd in flows] for line, flows in used.lines.items() if any(flows)},
    )


def _crossings(found: Crossings) -> CrossingsOut:
    return CrossingsOut(
        month=found.month,
        crossings=list(found.months),
        cheaper_at_start=found.cheaper_at_start,
        cheaper_at_horizon=found.cheaper_at_horizon,
    )


def _depreciation(own: Resolved, cost: AlternativeCost, months: int) -> DepreciationOut | None:
    """What the machines at hand are worth month by month, renewed and added ones included."""
    fleets = [part for part in parts_of(own.alternative) if isinstance(part, PurchasedFleet)]
    if not fleets:
        return None
    worth = cost.standing.market + cost.standing.fresh
    worth[months] = cost.standing.market[months]  # what the horizon ends is not bought any more
    return DepreciationOut(
        method=fleets[0].depreciation,
        months=fleets[0].life_months,
        book_value_usd_by_month=[_exactly(value) for value in cost.standing.book[: months + 1]],
        market_value_usd_by_month=[_exactly(value) for value in worth[: months + 1]],
    )


def present_defaults(alternative: str | None, defaults: Mapping[str, Default]) -> list[DefaultOut]:
    """Figures of the catalog that were used, with their sources."""
    return [
        DefaultOut(
            alternative=alternative,
            input=name,
            low=default.figure.low,
            typical=default.figure.typical,
            high=default.figure.high,
            unit=default.unit,
            how=default.how,
            origins=[OriginOut(source=o.source, as_of=o.as_of, checked=o.checked) for o in default.origins],
        )
        for name, default in sorted(defaults.items())
    ]


def _spread(spread: Spread) -> SpreadOut:
    return SpreadOut(
        p10=_exactly(spread.p10),
        p25=_exactly(spread.p25),
        p50=_exactly(spread.p50),
        p75=_exactly(spread.p75),
        p90=_exactly(spread.p90),
    )


def _exactly(usd: float) -> Decimal:
    return Decimal(repr(float(usd))).quantize(SIX_PLACES)


def _usd(usd: float | None) -> Decimal | None:
    return None if usd is None else _exactly(usd)


def _converted(usd: Decimal, currency: CurrencyIn | None) -> Decimal | None:
    return None if currency is None else in_currency(usd, currency.usd_per_unit)
