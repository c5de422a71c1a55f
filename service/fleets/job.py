"""Fleets as jobs: the same plan, computed by a worker."""

import datetime as dt
from typing import Any

from sqlmodel import Session

from service.answers.post import AnswerKind
from service.answers.store import added
from service.fleets.create import create_fleet, fleet_row, read
from service.fleets.plan import plan
from service.fleets.prepare import read_fleet_inputs
from service.fleets.present import present_fleet
from service.fleets.tables import FleetTable
from service.jobs.kind import Attempt, JobKind, Progress
from service.recommendations.create import PlanningContext, provenance
from service.wire.fleet_answers import FleetResultOut
from service.wire.fleets import FleetIn
from service.wire.recommendations import InputsOut
from solver.units import HOURS_PER_MONTH


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
    result, inputs = FleetResultOut.model_validate(answer["result"]), InputsOut.model_validate(answer["inputs"])
    return added(session, fleet_row(asked, result, inputs, now))


FLEET_JOB = JobKind(
    name="fleet",
    request=FleetIn,
    compute=_compute,
    store=_store,
    result_address="/v1/fleets/{id}",
)


def _checked(asked: FleetIn, context: PlanningContext) -> FleetIn:
    read(asked, context)
    return asked


FLEET = AnswerKind(
    noun="fleet",
    address="/v1/fleets",
    table=FleetTable,
    job=FLEET_JOB,
    present=present_fleet,
    create=create_fleet,
    checked=_checked,
)
