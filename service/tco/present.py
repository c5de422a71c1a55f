"""Results of the cost model → wire."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from service.tco.circumstances import Circumstances
from service.tco.defaults import Default
from service.tco.resolve import Resolved
from service.tco.tables import ComparisonTable
from service.wire.tco import ComparisonIn, CurrencyIn
from service.wire.tco_answers import (
    AlternativeCostOut,
    BreakEvenOut,
    ComparisonInputsOut,
    ComparisonOut,
    ComparisonResultOut,
    CostLineOut,
    DefaultOut,
    DemandOut,
    DepreciationOut,
    OriginOut,
    SpreadOut,
    SwingOut,
    UncertaintyOut,
)
from solver.tco.alternatives import PurchasedFleet, parts_of
from solver.tco.capital import residual_fraction_at
from solver.tco.compare import AlternativeCost, Comparison, Spread
from solver.tco.depreciation import book_values_usd
from solver.tco.figures import Array
from solver.tco.money import decimal_usd, in_currency

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
    asked: ComparisonIn, comparison: Comparison, resolved: Sequence[Resolved], shared: Circumstances
) -> ComparisonResultOut:
    costs = [
        _alternative(asked, cost, own, comparison, shared)
        for cost, own in zip(comparison.alternatives, resolved, strict=True)
    ]
    demand = shared.scenario.demand
    cheapest = min(comparison.alternatives, key=lambda cost: cost.npv)
    return ComparisonResultOut(
        demand=DemandOut(
            requests_per_s=demand.requests_per_s,
            input_tokens=demand.input_tokens,
            output_tokens=demand.output_tokens,
            cached_fraction=demand.cached_fraction,
            utilisation_fraction=shared.scenario.figures["utilisation_fraction"].typical,
        ),
        alternatives=costs,
        cheapest=cheapest.name,
        defaults=[
            *present_defaults(None, shared.defaults),
            *(d for r in resolved for d in present_defaults(r.asked.name, r.defaults)),
        ],
    )


def _alternative(
    asked: ComparisonIn, cost: AlternativeCost, own: Resolved, comparison: Comparison, shared: Circumstances
) -> AlternativeCostOut:
    footprint, unit = cost.footprint, cost.unit
    total, npv = decimal_usd(cost.total), decimal_usd(cost.npv)
    return AlternativeCostOut(
        name=cost.name,
        kind=cost.kind,
        acquisition=own.acquisition,
        recommendation=own.asked.recommendation,
        parts=own.parts,
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
        depreciation=_depreciation(own, shared, asked.horizon_months),
        notes=own.notes,
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
    )


def _break_even(name: str, comparison: Comparison) -> list[BreakEvenOut]:
    """Every pair this alternative is in, seen from its side."""
    pairs = zip(comparison.break_even_months, comparison.break_even_utilisations, strict=True)
    return [
        BreakEvenOut(
            against=month.second if month.first == name else month.first,
            month=month.month,
            crossings=list(month.crossings),
            cheaper_at_start=month.cheaper_at_start,
            cheaper_at_horizon=month.cheaper_at_horizon,
            utilisation_fraction=utilisation.utilisation_fraction,
            cheaper_below=utilisation.cheaper_below,
            cheaper_above=utilisation.cheaper_above,
            utilisation_reason=utilisation.reason,
        )
        for month, utilisation in pairs
        if name in (month.first, month.second)
    ]


def _depreciation(own: Resolved, shared: Circumstances, months: int) -> DepreciationOut | None:
    """Book value of the machines bought at the start, network, storage and spares included."""
    fleets = [part for part in parts_of(own.alternative) if isinstance(part, PurchasedFleet)]
    if not fleets:
        return None
    values = [_book_values(fleet, shared, months) for fleet in fleets]
    total = [sum(month) for month in zip(*(v.tolist() for v in values), strict=True)]
    return DepreciationOut(
        method=fleets[0].depreciation,
        months=fleets[0].life_months,
        book_value_usd_by_month=[_exactly(value) for value in total],
    )


def _book_values(fleet: PurchasedFleet, shared: Circumstances, months: int) -> Array:
    figures = {name: f.typical for name, f in {**shared.scenario.figures, **fleet.figures}.items()}
    machines = fleet.nodes * figures["purchase_usd_per_node"] * (1.0 + figures["spare_fraction"])
    price = machines + fleet.nodes * (figures["network_usd_per_node"] + figures["storage_usd_per_node"])
    if "residual_fraction" in figures:
        left = figures["residual_fraction"]
    else:
        left = float(
            residual_fraction_at(
                fleet.life_months,
                figures["residual_fraction_after_3_years"],
                figures["residual_fraction_after_5_years"],
            )
        )
    return book_values_usd(fleet, price, machines * left, months)


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
    return SpreadOut(p10=_exactly(spread.p10), p50=_exactly(spread.p50), p90=_exactly(spread.p90))


def _exactly(usd: float) -> Decimal:
    return Decimal(repr(float(usd))).quantize(SIX_PLACES)


def _usd(usd: float | None) -> Decimal | None:
    return None if usd is None else _exactly(usd)


def _converted(usd: Decimal, currency: CurrencyIn | None) -> Decimal | None:
    return None if currency is None else in_currency(usd, currency.usd_per_unit)
