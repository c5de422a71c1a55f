"""Plan a fleet over time: read, solve, store. Two short transactions; none is open while solving."""

import asyncio
import datetime as dt

from fastapi.concurrency import run_in_threadpool
from ulid import ULID

from service.answers.store import stored
from service.fleets.plan import plan
from service.fleets.prepare import FleetInputs, fleet_input, read_fleet_inputs
from service.fleets.present import present_fleet
from service.fleets.tables import FleetTable
from service.idempotency.keys import Named
from service.recommendations.create import PlanningContext, provenance
from service.wire.fleet_answers import FleetOut, FleetResultOut
from service.wire.fleets import FleetIn
from service.wire.recommendations import InputsOut


async def create_fleet(asked: FleetIn, context: PlanningContext, named: Named | None = None) -> FleetOut:
    """Stored whole or not at all.

    Raises InvalidFieldsError, UnavailableError when the service ends first, and StoredBeforeError when the same request
    under the same key was stored meanwhile.
    """
    inputs = await run_in_threadpool(read, asked, context)
    result = await context.pool.run("fleet", lambda: plan(inputs))
    context.metrics.count_outcome("fleet", result.outcome)
    # Once the answer is there it is stored, even when the client has gone: shield the write from cancellation.
    return await asyncio.shield(run_in_threadpool(_store, inputs, result, context, named))


def read(asked: FleetIn, context: PlanningContext) -> FleetInputs:
    """Raises InvalidFieldsError for everything that can be known to be wrong before solving."""
    with context.database.reading() as session:
        inputs = read_fleet_inputs(session, asked, asked.price_as_of or context.clock(), context)
    fleet_input(inputs)
    return inputs


def _store(inputs: FleetInputs, result: FleetResultOut, context: PlanningContext, named: Named | None) -> FleetOut:
    row = fleet_row(inputs.request, result, provenance(inputs.planning), context.clock())
    return stored(context.database, row, named, present_fleet)


def fleet_row(asked: FleetIn, result: FleetResultOut, inputs: InputsOut, now: dt.datetime) -> FleetTable:
    """The row that a result is stored as."""
    return FleetTable(
        id=f"fleet_{ULID()}",
        created_at=now,
        outcome=result.outcome,
        months=asked.horizon.months,
        workloads=[{"name": w.name, "llm": w.llm} for w in asked.workloads],
        usd=result.totals.usd if result.totals else None,
        price_as_of=inputs.price_as_of,
        catalog_digest=inputs.catalog_digest,
        correction_set=inputs.correction_set,
        version=inputs.version,
        request=asked.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
