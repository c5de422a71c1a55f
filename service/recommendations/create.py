"""Make a recommendation: read, solve, store. Two short transactions; none is open while solving."""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session
from ulid import ULID

from service import VERSION
from service.answers.store import stored
from service.clock import Clock
from service.database import Database
from service.idempotency.keys import Named
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.metrics import Metrics
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.check import check_names, check_traffic
from service.recommendations.current import running_nodes
from service.recommendations.from_rows import llm_from_row
from service.recommendations.plan import PlanningInputs, plan
from service.recommendations.present import present_recommendation
from service.recommendations.published import PublishedMachine
from service.recommendations.resolve_names import with_names_meant
from service.recommendations.solved_requests import SolvedRequestCache
from service.recommendations.spaces import SpaceCache
from service.recommendations.tables import RecommendationTable
from service.solver_pool import SolverPool
from service.wire.recommendations import InputsOut, RecommendationIn, RecommendationOut, ResultOut


@dataclass(frozen=True)
class PlanningContext:
    """What making a recommendation needs besides the request."""

    database: Database
    snapshots: SnapshotCache
    pool: SolverPool
    metrics: Metrics
    clock: Clock
    spaces: SpaceCache
    plan: Callable[[PlanningInputs], ResultOut] = plan
    solved_requests: SolvedRequestCache | None = None


def planning_context(request: Request) -> PlanningContext:
    """The application's own."""
    state = request.app.state
    return PlanningContext(
        state.database, state.snapshots, state.solver_pool, state.metrics, state.clock, state.spaces,
        solved_requests=state.solved_requests,
    )  # fmt: skip


class Caches(Protocol):
    """What is kept between requests: of the service, or of a worker."""

    @property
    def snapshots(self) -> SnapshotCache: ...
    @property
    def spaces(self) -> SpaceCache: ...


async def create_recommendation(
    asked: RecommendationIn, context: PlanningContext, named: Named | None = None
) -> RecommendationOut:
    """Stored whole or not at all.

    Raises InvalidFieldsError for unknown names, UnavailableError when the service ends first, StoredBeforeError when the
    same request under the same key was stored meanwhile.
    """
    inputs = await run_in_threadpool(_read_inputs, asked, context)
    result = await context.pool.run("recommendation", lambda: context.plan(inputs))
    context.metrics.count_outcome("recommendation", result.outcome)
    # Once the answer is there it is stored, even when the client has gone: shield the write from cancellation.
    return await asyncio.shield(run_in_threadpool(_store, inputs, result, context, named))


def _read_inputs(asked: RecommendationIn, context: PlanningContext) -> PlanningInputs:
    price_as_of = asked.price_as_of or context.clock()
    with context.database.reading() as session:
        return replace(read_inputs(session, asked, price_as_of, context), solved_requests=context.solved_requests)


def read_inputs(
    session: Session,
    asked: RecommendationIn,
    price_as_of: dt.datetime,
    caches: Caches,
    own_places: Iterable[tuple[str, str]] = (),
    buys: bool = True,
) -> PlanningInputs:
    """Catalog, prices and shapes at one instant; the request's names are checked against them.

    own_places: providers and regions beyond the catalog's, where the request lets nodes be bought. buys: devices that it names
    and nobody rents out are taken at what it costs to own them.
    """
    snapshot = caches.snapshots.at(session, price_as_of)
    own = list(own_places)
    if own:
        providers, regions = ({place[i] for place in own} for i in (0, 1))
        snapshot = replace(snapshot, providers=snapshot.providers | providers, regions=snapshot.regions | regions)
    named = {w.llm for w in asked.workloads}
    rows = llms_by_ids(session, named)
    hub_names: dict[str, str | None] = {row.id: None for row in rows}
    if len(rows) < len(named):
        hub_names = hub_names_by_id(session)
    asked = with_names_meant(asked, snapshot, hub_names)
    rows = llms_by_ids(session, {w.llm for w in asked.workloads}) if len(rows) < len(named) else rows
    shapes = {row.id: llm_from_row(row.row) for row in rows}
    missing = any(w.llm not in shapes for w in asked.workloads)
    check_names(asked, snapshot, shapes, llm_ids(session) if missing else [])
    machines: tuple[PublishedMachine, ...] = ()
    if buys and asked.limits.devices is not None:
        from service.tco.bought import published_machines, with_bought  # comparisons of costs read recommendations

        snapshot = with_bought(session, snapshot, asked.limits.devices)
        if asked.objective == "cost" and asked.current is None:
            machines = published_machines(session, asked.limits.devices)
    return PlanningInputs(
        asked,
        snapshot,
        shapes,
        check_traffic(asked, shapes),
        price_as_of,
        correction_set=snapshot.corrections.number if snapshot.corrections else None,
        spaces=caches.spaces,
        running=running_nodes(session, asked, snapshot, price_as_of),
        machines=machines,
    )


def _store(
    inputs: PlanningInputs, result: ResultOut, context: PlanningContext, named: Named | None
) -> RecommendationOut:
    row = recommendation_row(inputs.request, result, provenance(inputs), context.clock())
    return stored(context.database, row, named, present_recommendation)


def provenance(inputs: PlanningInputs) -> InputsOut:
    """What a plan was computed from."""
    return InputsOut(
        price_as_of=inputs.price_as_of,
        catalog_digest=inputs.snapshot.digest,
        correction_set=inputs.correction_set,
        version=VERSION,
    )


def recommendation_row(
    asked: RecommendationIn, result: ResultOut, inputs: InputsOut, now: dt.datetime
) -> RecommendationTable:
    """The row that a result is stored as."""
    return RecommendationTable(
        id=f"rec_{ULID()}",
        created_at=now,
        outcome=result.outcome,
        objective=asked.objective,
        usd_per_hour=result.totals.usd_per_hour if result.totals else None,
        price_as_of=inputs.price_as_of,
        catalog_digest=inputs.catalog_digest,
        correction_set=inputs.correction_set,
        version=inputs.version,
        request=asked.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
