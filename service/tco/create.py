"""Compare alternatives: read, check that the comparison is fair, compute, store. No transaction is open meanwhile."""

import asyncio
import datetime as dt
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session

from catalog.read_costs import CostCatalog, read_costs
from catalog.rows import EnergyRow
from service import VERSION
from service.clock import Clock
from service.database import Database
from service.edition.queries import require_edition
from service.nodes.queries import node_ids
from service.problems import FieldError, InvalidInput, unknown_name
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.create import read_inputs
from service.recommendations.plan import PlanningInputs, plan
from service.solver_pool import SolverPool
from service.tco.circumstances import Circumstances, circumstances, sampling_of
from service.tco.defaults import CostDefaults, Default, MachineFacts, defaults_for
from service.tco.fairness import (
    agreed_workloads,
    check_fleet,
    fleet_planning,
    token_demand,
    usable_recommendations,
)
from service.tco.present import present_comparison, present_result
from service.tco.prices import PriceBook, under
from service.tco.queries import (
    energy_by_region,
    energy_regions,
    machines_by_ids,
    priced_offers,
    recommendations_by_ids,
)
from service.tco.resolve import PURCHASE, Resolved, nodes_of, resolve
from service.tco.tables import ComparisonTable
from service.wire.recommendations import LimitsIn, RecommendationIn, ResultOut, WorkloadIn
from service.wire.tco import ComparisonIn
from service.wire.tco_answers import ComparisonOut
from solver.errors import FigureMissingError
from solver.tco.compare import compare
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure, exactly

DEFAULT_REGION = "us"
"""Whose average tariff and carbon are taken when neither a place nor a tariff is stated."""
ID_BYTES = 16
"""128 random bits: the id of a comparison is a link that cannot be guessed."""


@dataclass(frozen=True)
class Workshop:
    """What making a comparison needs besides the request."""

    database: Database
    snapshots: SnapshotCache
    pool: SolverPool
    clock: Clock
    plan: Callable[[PlanningInputs], ResultOut] = plan


@dataclass
class Prepared:
    """Everything read from the database, and the alternatives made of it."""

    price_as_of: dt.datetime
    catalog_digest: str
    costs: CostCatalog
    resolved: list[Resolved]
    shared: Circumstances
    planning: list[tuple[int, PlanningInputs]] = field(default_factory=list)
    """Explicit fleets still to be checked against the workload, by position."""


@cache
def cost_catalog() -> CostCatalog:
    """Read once: the files do not change while the service runs."""
    return read_costs()


async def create_comparison(asked: ComparisonIn, workshop: Workshop) -> ComparisonOut:
    """Raises InvalidInput for what is unknown, contradictory or cannot serve the workload. Stored whole or not at all."""
    prepared = await run_in_threadpool(_prepare, asked, workshop)
    for position, planning in prepared.planning:
        alternative = asked.alternatives[position]
        await workshop.pool.run(
            "comparison", lambda a=alternative, p=position, q=planning: check_fleet(a, p, q, workshop.plan)
        )
    return await asyncio.shield(run_in_threadpool(_compute_and_store, asked, prepared, workshop))


def _prepare(asked: ComparisonIn, workshop: Workshop) -> Prepared:
    costs = cost_catalog()
    _check_currency(asked, costs)
    _check_names(asked)
    price_as_of = asked.price_as_of or workshop.clock()
    with workshop.database.reading() as session:
        return _read(session, asked, price_as_of, costs, workshop)


def _read(
    session: Session, asked: ComparisonIn, price_as_of: dt.datetime, costs: CostCatalog, workshop: Workshop
) -> Prepared:
    try:
        defaults = defaults_for(costs, asked.operator)
    except CostInputError as error:
        raise InvalidInput([FieldError(str(error), pointer="/operator")]) from error
    stored = recommendations_by_ids(session, (a.recommendation for a in asked.alternatives if a.recommendation))
    usable = usable_recommendations(asked, stored)
    workloads = agreed_workloads(asked, usable)
    demand = token_demand(workloads)
    plans = {name: result for name, (_, result) in usable.items()}
    machines = _machines(session, asked, plans)
    prices = PriceBook(priced_offers(session, _offers(asked, plans), price_as_of), defaults)
    _check_offers(asked, prices)
    resolved = [
        resolve(alternative, position, nodes_of(alternative, position, plans, machines), prices)
        for position, alternative in enumerate(asked.alternatives)
    ]
    found = _place(session, asked, defaults)
    shared = _circumstances(asked, demand, found)
    return Prepared(
        price_as_of=price_as_of,
        catalog_digest=require_edition(session).digest,
        costs=costs,
        resolved=[_with_colocation(asked, own) for own in resolved],
        shared=shared,
        planning=_fleet_checks(session, asked, workloads, price_as_of, workshop),
    )


def _fleet_checks(
    session: Session, asked: ComparisonIn, workloads: list[WorkloadIn], price_as_of: dt.datetime, workshop: Workshop
) -> list[tuple[int, PlanningInputs]]:
    fleets = [position for position, a in enumerate(asked.alternatives) if a.fleet is not None]
    if not fleets:
        return []
    question = RecommendationIn(workloads=workloads, limits=LimitsIn(commitments=None), alternatives=0)
    inputs = read_inputs(session, question, price_as_of, workshop.snapshots)
    return [(p, fleet_planning(asked.alternatives[p], workloads, inputs, p)) for p in fleets]


def _circumstances(asked: ComparisonIn, demand: object, found: dict[str, Default]) -> Circumstances:
    from solver.tco.tokens import TokenDemand

    assert isinstance(demand, TokenDemand)
    try:
        return circumstances(asked, demand, found)
    except CostInputError as error:
        raise _pointed(asked, error) from error


def _place(session: Session, asked: ComparisonIn, defaults: CostDefaults) -> dict[str, Default]:
    """Shared figures of the operator, and those of the place where the request names one or no tariff at all."""
    region = asked.electricity.region
    if region is None and asked.electricity.usd_per_kwh is None:
        region = DEFAULT_REGION
    if region is None:
        found = defaults.scenario("", None)
        return {name: default for name, default in found.items() if name != "grid_kg_co2e_per_kwh"}
    row = energy_by_region(session, region)
    if row is None:
        detail = unknown_name("electricity region", region, energy_regions(session))
        raise InvalidInput([FieldError(detail, pointer="/electricity/region")])
    return defaults.scenario(region, EnergyRow.model_validate(row.row))


def _with_colocation(asked: ComparisonIn, own: Resolved) -> Resolved:
    """A price of space stated for all takes the catalog's place in what is bought."""
    if asked.colocation_usd_per_kw_month is None or own.asked.acquisition != PURCHASE:
        return own
    from dataclasses import replace

    from solver.tco.alternatives import MixedFleet, parts_of

    stated = {"colocation_usd_per_kw_month": exactly(float(asked.colocation_usd_per_kw_month))}
    parts = tuple(replace(part, figures={**part.figures, **stated}) for part in parts_of(own.alternative))
    own.alternative = parts[0] if len(parts) == 1 else MixedFleet(own.asked.name, parts)  # type: ignore[arg-type]
    own.defaults.pop("colocation_usd_per_kw_month", None)
    return own
