"""Fleets as jobs: the same plan, computed by a worker."""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.access import Caller
from service.fleets.create import fleet_row, read
from service.fleets.plan import plan
from service.fleets.prepare import read_fleet_inputs
from service.idempotency.keys import Named, claim_or_stop, settle
from service.jobs.create import enqueue
from service.jobs.kind import Attempt, JobKind, Progress
from service.jobs.tables import JobTable
from service.prefer import Preference
from service.recommendations.create import PlanningContext, provenance
from service.settings import Settings
from service.wire.fleet_answers import FleetResultOut
from service.wire.fleets import FleetIn
from service.wire.recommendations import InputsOut
from solver.units import HOURS_PER_MONTH


def answered_later(asked: FleetIn, preference: Preference, settings: Settings) -> bool:
    """Whether a request becomes a job: the client prefers it, or its time limit says that it may take long."""
    if preference.respond_async:
        return True
    if preference.wait_s is not None and preference.wait_s >= asked.time_limit_s:
        return False
    return asked.time_limit_s > settings.synchronous_time_limit_s


def queue_fleet(
    asked: FleetIn, caller: Caller, context: PlanningContext, settings: Settings, named: Named | None = None
) -> JobTable:
    """Checks what the synchronous route checks, so that a mistake is answered now and not by a failed job.

    Raises StoredBeforeError when the same request under the same key was queued or stored meanwhile.
    """
    read(asked, context)
    now = context.clock()
    with context.database.writing() as session:
        claim_or_stop(session, named, now)
        row = enqueue(session, FLEET_JOB, asked.model_dump(mode="json"), caller, settings, now)
        settle(session, named, row.id)
        session.expunge(row)
        return row


def _compute(asked: FleetIn, attempt: Attempt) -> dict[str, Any]:
    with attempt.bench.database.reading() as session:
        inputs = read_fleet_inputs(session, asked, asked.price_as_of or attempt.asked_at, attempt.bench)
    from solver.horizon.plan import relative_gap

    hours = asked.horizon.months * HOURS_PER_MONTH

    def observe(stage: str, usd: float | None, bound: float | None) -> None:
        """A job's progress is in USD per hour: the mean over the horizon."""
        gap = None if usd is None or bound is None else relative_gap(usd, bound)
        attempt.report(
            Progress(stage, None if usd is None else usd / hours, None if bound is None else bound / hours, gap)
        )

    result = plan(inputs, observe)
    return {"result": result.model_dump(mode="json"), "inputs": provenance(inputs.planning).model_dump(mode="json")}


def _store(session: Session, asked: FleetIn, answer: dict[str, Any], now: dt.datetime) -> str:
    row = fleet_row(
        asked, FleetResultOut.model_validate(answer["result"]), InputsOut.model_validate(answer["inputs"]), now
    )
    session.add(row)
    session.flush()
    return row.id


FLEET_JOB = JobKind(
    name="fleet",
    request=FleetIn,
    compute=_compute,
    store=_store,
    result_address="/v1/fleets/{id}",
)
