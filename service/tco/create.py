"""Compare alternatives: read, check that the comparison is fair, compute, store. No transaction is open meanwhile."""

import asyncio
import secrets
from functools import partial

from fastapi.concurrency import run_in_threadpool

from service import VERSION
from service.recommendations.create import Workshop
from service.tco.circumstances import sampling_of
from service.tco.fairness import check_fleet
from service.tco.prepare import Prepared, prepare
from service.tco.present import present_comparison, present_result
from service.tco.refusals import pointed
from service.tco.tables import ComparisonTable
from service.wire.tco import ComparisonIn
from service.wire.tco_answers import ComparisonOut
from solver.errors import FigureMissingError
from solver.tco.compare import compare
from solver.tco.errors import CostInputError

ID_BYTES = 16
"""128 random bits: the id of a comparison is a link that cannot be guessed."""


async def create_comparison(asked: ComparisonIn, workshop: Workshop) -> ComparisonOut:
    """Raises InvalidFieldsError for what is unknown or cannot serve the workload. Stored whole or not at all."""
    prepared = await run_in_threadpool(_prepare, asked, workshop)
    for position, planning in prepared.planning:
        check = partial(check_fleet, asked.alternatives[position], position, planning, workshop.plan)
        await workshop.pool.run("comparison", check)
    return await asyncio.shield(run_in_threadpool(_compute_and_store, asked, prepared, workshop))


def _prepare(asked: ComparisonIn, workshop: Workshop) -> Prepared:
    price_as_of = asked.price_as_of or workshop.clock()
    with workshop.database.reading() as session:
        return prepare(session, asked, price_as_of, workshop)


def _compute_and_store(asked: ComparisonIn, prepared: Prepared, workshop: Workshop) -> ComparisonOut:
    alternatives = [own.alternative for own in prepared.resolved]
    try:
        comparison = compare(alternatives, prepared.shared.scenario, sampling_of(asked))
    except (CostInputError, FigureMissingError) as error:
        raise pointed(asked, error) from error
    result = present_result(asked, comparison, prepared.resolved, prepared.shared)
    row = ComparisonTable(
        id=f"tco_{secrets.token_hex(ID_BYTES)}",
        created_at=workshop.clock(),
        price_as_of=prepared.price_as_of,
        catalog_digest=prepared.catalog_digest,
        cost_catalog_digest=prepared.cost_catalog_digest,
        version=VERSION,
        request=asked.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
    with workshop.database.writing() as session:
        session.add(row)
        session.flush()
        return present_comparison(row)
