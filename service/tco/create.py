"""Compare alternatives: read, check that the comparison is fair, compute, store. No transaction is open meanwhile."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fastapi.concurrency import run_in_threadpool

from service import VERSION
from service.idempotency.keys import Named, claim_or_stop, settle
from service.recommendations.create import PlanningContext
from service.tco.circumstances import sampling_of
from service.tco.fairness import check_fleet
from service.tco.prepare import PreparedComparison, prepare
from service.tco.present import present_comparison, present_result
from service.tco.refusals import pointed
from service.tco.resolve import Resolved
from service.tco.stored_plan import capacity, formats
from service.tco.tables import ComparisonTable
from service.wire.recommendations import ResultOut, WorkloadIn
from service.wire.tco import ComparisonIn
from service.wire.tco_answers import ComparisonOut
from solver.errors import FigureMissingError
from solver.tco.alternatives import MOST_GROWTH, ApiAccess, MixedFleet, parts_of
from solver.tco.compare import compare
from solver.tco.errors import CostInputError

ID_BYTES = 16
"""128 random bits: the id of a comparison is a link that cannot be guessed."""


async def create_comparison(asked: ComparisonIn, context: PlanningContext, named: Named | None = None) -> ComparisonOut:
    """Stored whole or not at all.

    Raises InvalidFieldsError for what is unknown or cannot serve the workload, StoredBeforeError when the same request
    under the same key was stored meanwhile.
    """
    prepared = await run_in_threadpool(_prepare, asked, context)
    for position, planning in prepared.planning:
        check = partial(check_fleet, asked.alternatives[position], position, planning, context.plan)
        result = await context.pool.run("comparison", check)
        _fit(prepared.resolved[position], result, prepared.workloads)
    return await asyncio.shield(run_in_threadpool(_compute_and_store, asked, prepared, context, named))


def _fit(own: Resolved, planned: ResultOut, workloads: Sequence[WorkloadIn]) -> None:
    """A fleet carries what the planner says: what the nodes it uses have to spare, and the nodes it does without."""
    lines = [line.model_dump(mode="json") for line in planned.plan]
    own.precision = tuple(sorted({formats(line) for line in lines} - {""}))
    if own.asked.carries is not None:
        return
    spare, step = capacity(lines, workloads)
    fleets = [part for part in parts_of(own.alternative) if not isinstance(part, ApiAccess)]
    used = sum(line.nodes for line in planned.plan)
    if len(fleets) == 1 and used:
        spare *= sum(part.count for part in own.asked.fleet or ()) / used
    fitted = tuple(
        replace(part, carries=min(part.carries * spare, MOST_GROWTH), nodes_per_step=step) for part in fleets
    )
    own.alternative = fitted[0] if len(fitted) == 1 else MixedFleet(own.alternative.name, fitted)
    own.parts = [
        shown.model_copy(update={"carries": part.carries, "nodes_per_step": part.nodes_per_step})
        for shown, part in zip(own.parts, fitted, strict=True)
    ]


def _prepare(asked: ComparisonIn, context: PlanningContext) -> PreparedComparison:
    price_as_of = asked.price_as_of or context.clock()
    with context.database.reading() as session:
        return prepare(session, asked, price_as_of, context)


def _compute_and_store(
    asked: ComparisonIn, prepared: PreparedComparison, context: PlanningContext, named: Named | None
) -> ComparisonOut:
    alternatives = [own.alternative for own in prepared.resolved]
    try:
        comparison = compare(alternatives, prepared.shared.scenario, sampling_of(asked))
    except (CostInputError, FigureMissingError) as error:
        raise pointed(asked, error) from error
    result = present_result(asked, comparison, prepared)
    row = ComparisonTable(
        id=f"tco_{secrets.token_hex(ID_BYTES)}",
        created_at=context.clock(),
        price_as_of=prepared.price_as_of,
        catalog_digest=prepared.catalog_digest,
        cost_catalog_digest=prepared.cost_catalog_digest,
        version=VERSION,
        request=asked.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
    with context.database.writing() as session:
        claim_or_stop(session, named, row.created_at)
        session.add(row)
        session.flush()
        settle(session, named, row.id)
        return present_comparison(row)
