"""A fleet request → what the solver takes: names, traffic, demand, terms; all that is wrong pointed at."""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmodel import Session

from catalog.read_costs import CostCatalog
from service.fleets.left_out import left_out
from service.fleets.own import PURCHASE, Owned, buying, read_owned, site_errors
from service.problems import FieldError, InvalidFieldsError
from service.recommendations.create import Caches, read_inputs
from service.recommendations.plan import PlanningInputs, planning_input
from service.tco.prepare import cost_catalog
from service.tco.prices import TERM_MONTHS
from service.wire.fleet_answers import CommitmentLeftOutOut, SpotUsedOut
from service.wire.fleets import FleetIn, FleetWorkloadIn, ProfileIn
from service.wire.operating import OperationIn
from service.wire.recommendations import LimitsIn, RecommendationIn, WorkloadIn
from service.wire.traffic import TrafficIn
from solver.errors import InvalidInputError
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

if TYPE_CHECKING:  # what plans loads libraries that listing the catalog does without
    from solver.horizon.assemble import FleetInput
    from solver.horizon.demand import Profile, Series
    from solver.horizon.operation import Operation

PERCENT = 100.0
OWN = "own"
"""Provider of bought nodes; as in ``solver.horizon.assemble``."""


@dataclass(frozen=True)
class FleetInputs:
    """Everything a fleet depends on, read in one transaction."""

    request: FleetIn
    planning: PlanningInputs
    spot: SpotUsedOut | None
    owned: Owned
    left_out: tuple[CommitmentLeftOutOut, ...]


def read_fleet_inputs(session: Session, asked: FleetIn, price_as_of: dt.datetime, caches: Caches) -> FleetInputs:
    """Raises InvalidFieldsError."""
    _check_horizon(asked)
    own_places = [(OWN, site.region) for site in asked.own]
    planning = read_inputs(session, _as_recommendation(asked), price_as_of, caches, own_places, buys=False)
    planning_input(planning)  # lengths and contexts that cannot be are a mistake, not a failed plan
    owned = read_owned(session, buying(asked), planning.snapshot, cost_catalog())
    missing = (*left_out(asked, planning.snapshot.offers), *owned.left_out)
    return FleetInputs(asked, planning, _spot(asked, cost_catalog()), owned, missing)


def fleet_input(inputs: FleetInputs) -> "FleetInput":
    """Raises InvalidFieldsError for demand that cannot be."""
    from solver.horizon.assemble import BatchDemand, FleetInput
    from solver.horizon.problem import SpotRule

    asked = inputs.request
    months = asked.horizon.months
    spot = SpotRule()
    if inputs.spot is not None:
        used = inputs.spot
        spot = SpotRule(used.max_fraction, used.unavailable_fraction, used.availability_fraction, used.reclaims_at_once)
    return FleetInput(
        planning=planning_input(inputs.planning),
        demands=tuple(None if w.demand is None else _demand(w) for w in asked.workloads),
        months=months,
        periods_per_month=asked.horizon.periods_per_month,
        terms=TERM_MONTHS,
        batch=tuple(
            BatchDemand(i, w.batch.requests, w.batch.from_month, w.batch.to_month or months)
            for i, w in enumerate(asked.workloads)
            if w.batch is not None
        ),
        spot=spot,
        purchases=inputs.owned.purchases(),
        shared_limits=tuple(inputs.owned.rooms),
        discount_fraction_per_year=inputs.owned.discount.percent_per_year / PERCENT,
        default_max_nodes=asked.limits.max_nodes_per_offer,
        beyond_horizon=asked.commitment_tail == "liability",
        operation=_operation(asked),
        time_limit_s=asked.time_limit_s,
        gap_fraction=asked.gap_fraction,
    )


def _operation(asked: FleetIn) -> "Operation":
    from solver.horizon.operation import Operation

    rules = asked.limits.operation
    if not isinstance(rules, OperationIn):
        return Operation()
    change = rules.max_change_percent_per_hour
    return Operation(rules.max_configurations, rules.min_up_hours or 1, None if change is None else change / PERCENT)


def _demand(workload: FleetWorkloadIn) -> "Profile | Series":
    from solver.horizon.demand import Profile, Series

    demand = workload.demand
    assert demand is not None
    growth = demand.growth_percent_per_month / PERCENT
    if isinstance(demand, ProfileIn):
        weekday = demand.weekday_requests_per_s
        weekend = demand.weekend_requests_per_s or weekday
        return Profile(weekday, weekend, demand.monthly_factors or (1.0,), growth)
    return Series(float(demand.step), demand.rates, growth)


def _as_recommendation(asked: FleetIn) -> RecommendationIn:
    """The same workloads at their peaks: names, lengths and offers are checked and read as a recommendation's are."""
    limits = asked.limits
    commitments = limits.commitments
    return RecommendationIn(
        workloads=tuple(
            WorkloadIn(
                name=w.name,
                llm=w.llm,
                context_tokens=w.context_tokens,
                traffic=TrafficIn(
                    requests_per_s=_peak(w), **{n: getattr(w.traffic, n) for n in type(w.traffic).model_fields}
                ),
                targets=w.targets,
                precision=w.precision,
                utilisation_limit_fraction=w.utilisation_limit_fraction,
                regions=w.regions,
                providers=w.providers,
                network_ms_by_region=w.network_ms_by_region,
            )
            for w in asked.workloads
        ),
        limits=LimitsIn(
            devices=limits.devices,
            providers=limits.providers,
            regions=limits.regions,
            commitments=commitments,
            offers=limits.offers,
            max_nodes_per_offer=limits.max_nodes_per_offer,
            sourcing=limits.sourcing,
        ),
        price_as_of=asked.price_as_of,
        alternatives=0,
    )


def _peak(workload: FleetWorkloadIn) -> float:
    if workload.demand is None:
        return 1.0  # batch work has no rate of its own
    if isinstance(workload.demand, ProfileIn):
        return max((*workload.demand.weekday_requests_per_s, *(workload.demand.weekend_requests_per_s or ())))
    return max(workload.demand.rates)


def _check_horizon(asked: FleetIn) -> None:
    """Demand, deadlines and terms against the horizon, and against each other."""
    months = asked.horizon.months
    errors: list[FieldError] = []
    hours: dict[int, float] = {}
    for i, workload in enumerate(asked.workloads):
        batch, demand = workload.batch, workload.demand
        if batch is not None:
            end = batch.to_month or months
            if end > months or batch.from_month >= end:
                errors.append(
                    FieldError(
                        f"the window is months {batch.from_month} to {end}; it must lie inside the {months} months of"
                        " the horizon and last at least one",
                        pointer=f"/workloads/{i}/batch",
                    )
                )
        elif demand is not None and not isinstance(demand, ProfileIn):
            hours[i] = len(demand.rates) * demand.step / SECONDS_PER_HOUR
            if hours[i] > months * HOURS_PER_MONTH + demand.step / SECONDS_PER_HOUR:
                errors.append(
                    FieldError(
                        f"the series covers {hours[i]:g} hours, the horizon of {months} months {months * HOURS_PER_MONTH:g}",
                        pointer=f"/workloads/{i}/demand",
                    )
                )
    lengths = sorted(set(hours.values()))
    if len(lengths) > 1:
        first = min(hours)
        other = next(i for i in hours if hours[i] != hours[first])
        errors.append(
            FieldError(
                f"series must cover the same time: {asked.workloads[first].name} covers {hours[first]:g} hours,"
                f" {asked.workloads[other].name} {hours[other]:g}",
                pointer=f"/workloads/{other}/demand",
            )
        )
    errors.extend(_terms(asked))
    errors.extend(site_errors(asked))
    if errors:
        raise InvalidFieldsError(errors)


def _terms(asked: FleetIn) -> list[FieldError]:
    """Commitments that are named, but whose term the horizon cannot hold."""
    months = asked.horizon.months
    errors = []
    for i, kind in enumerate(asked.limits.commitments or ()):
        pointer = f"/limits/commitments/{i}"
        if kind in TERM_MONTHS and TERM_MONTHS[kind] > months and asked.commitment_tail == "inside":
            errors.append(
                FieldError(
                    f"{kind} runs {TERM_MONTHS[kind]} months, the horizon has {months}: lengthen it, or state"
                    ' "commitment_tail": "liability" to count what is due after it',
                    pointer=pointer,
                )
            )
        elif kind not in TERM_MONTHS and kind not in ("on_demand", "spot", PURCHASE):
            errors.append(FieldError(f"{kind} is not planned over time", pointer=pointer))
    return errors


def _spot(asked: FleetIn, costs: CostCatalog) -> SpotUsedOut | None:
    if asked.spot is None:
        return None
    from solver.horizon.spot import unavailable_fraction

    sources: list[str] = []

    def figure(name: str, stated: float | None) -> float:
        if stated is not None:
            sources.append(f"{name}: the request")
            return stated
        row = costs.find(name)
        if row is None:
            raise InvalidFieldsError(
                [FieldError(f"the catalog has no {name}; state it", pointer=f"/spot/{name.removeprefix('spot_')}")]
            )
        sources.append(f"{name}: {row.source} ({row.as_of}, {row.checked})")
        return row.typical

    often = figure("spot_interruptions_per_node_month", asked.spot.interruptions_per_node_month)
    lost = figure("spot_lost_hours_per_interruption", asked.spot.lost_hours_per_interruption)
    try:
        away = unavailable_fraction(often, lost)
    except InvalidInputError as bad:
        raise InvalidFieldsError([FieldError(str(bad), pointer="/spot")]) from bad
    return SpotUsedOut(
        max_fraction=asked.spot.max_fraction,
        interruptions_per_node_month=often,
        lost_hours_per_interruption=lost,
        unavailable_fraction=away,
        availability_fraction=asked.spot.availability_fraction,
        reclaims_at_once=asked.spot.reclaims_at_once,
        sources=sources,
    )
