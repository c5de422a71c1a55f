"""POST /v1/training/recommendations: read, plan, store, answer. The same body at the same instants has the same plan."""

import datetime as dt
import math
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool
from ulid import ULID

from service import VERSION
from service.database import Database
from service.idempotency.keys import Named, claim_or_stop, settle
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.names_meant import llm_name_meant
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.create import PlanningContext
from service.recommendations.from_rows import llm_from_row
from service.training.beside_fleet import Beside, read_beside
from service.training.inputs import training_model
from service.training.measured import MeasuredRun, measured_runs
from service.training.present_plan import present_plan
from service.training.recommend import LONGEST_DAYS, SECONDS_PER_DAY, Planned, plan_training
from service.training.tables import TrainingPlanTable
from service.wire.recommendations import InputsOut
from service.wire.training_plans import TrainingRecommendationIn, TrainingRecommendationOut
from solver.llm_shape import LlmShape


@dataclass(frozen=True)
class PreparedPlan:
    """A request with all that a plan of it rests on."""

    asked: TrainingRecommendationIn
    shapes: dict[str, LlmShape]
    snapshot: CatalogSnapshot
    runs: tuple[MeasuredRun, ...]
    beside: Beside
    starts_at: dt.datetime
    price_as_of: dt.datetime

    @property
    def shapes_by_job(self) -> dict[str, LlmShape]:
        return {job.name: self.shapes[job.llm] for job in self.asked.jobs}

    @property
    def inputs(self) -> InputsOut:
        return InputsOut(
            price_as_of=self.price_as_of, catalog_digest=self.snapshot.digest, correction_set=None, version=VERSION
        )


async def create_training_plan(
    asked: TrainingRecommendationIn, context: PlanningContext, named: Named | None = None
) -> TrainingRecommendationOut:
    """Raises InvalidFieldsError for unknown models, a deadline that has passed, and jobs that nothing can be computed for;
    StoredBeforeError when the same request under the same key was stored meanwhile.
    """
    now = context.clock()
    prepared = await run_in_threadpool(prepare_plan, asked, context, now)
    planned = await context.pool.run("training plan", lambda: planned_of(prepared))
    context.metrics.count_outcome("training_plan", "infeasible" if planned.chosen.columns is None else "optimal")
    return await run_in_threadpool(_store, prepared, planned, context.database, now, named)


def planned_of(prepared: PreparedPlan) -> Planned:
    return plan_training(
        prepared.asked, prepared.shapes, prepared.snapshot.offers, training_model(), prepared.starts_at, prepared.runs,
        beside=prepared.beside,
    )  # fmt: skip


def prepare_plan(asked: TrainingRecommendationIn, context: PlanningContext, now: dt.datetime) -> PreparedPlan:
    """Read in one transaction. now: by when measured runs were stored, and the instant of what the request leaves open."""
    starts_at, as_of = asked.starts_at or now, asked.price_as_of or now
    late = [
        FieldError(
            f"{job.deadline.isoformat()} is not after the beginning, {starts_at.isoformat()}",
            pointer=f"/jobs/{n}/deadline",
        )
        for n, job in enumerate(asked.jobs)
        if job.deadline is not None and job.deadline <= starts_at
    ]
    if late:
        raise InvalidFieldsError(late)
    with context.database.reading() as session:
        snapshot = context.snapshots.at(session, as_of)
        hub_names = hub_names_by_id(session)
        jobs = tuple(job.model_copy(update={"llm": llm_name_meant(job.llm, hub_names)}) for job in asked.jobs)
        shapes = {row.id: llm_from_row(row.row) for row in llms_by_ids(session, {job.llm for job in jobs})}
        known = llm_ids(session) if len(shapes) < len({job.llm for job in jobs}) else []
        runs = measured_runs(session, shapes, now)
        beside = read_beside(session, asked.beside_fleet, snapshot.nodes, _latest_s(asked, starts_at))
    wrong = [
        FieldError(unknown_name("llm", job.llm, known), pointer=f"/jobs/{n}/llm")
        for n, job in enumerate(jobs)
        if job.llm not in shapes
    ]
    if wrong:
        raise InvalidFieldsError(wrong)
    return PreparedPlan(asked.model_copy(update={"jobs": jobs}), shapes, snapshot, runs, beside, starts_at, as_of)


def _latest_s(asked: TrainingRecommendationIn, starts_at: dt.datetime) -> float:
    """After which no job runs: seconds to the last deadline, unless some job has none."""
    ends = [math.inf if job.deadline is None else (job.deadline - starts_at).total_seconds() for job in asked.jobs]
    return min(max(ends), LONGEST_DAYS * SECONDS_PER_DAY)


def _store(
    prepared: PreparedPlan, planned: Planned, database: Database, now: dt.datetime, named: Named | None
) -> TrainingRecommendationOut:
    """The instants that the request left open are stored with it: asked again, it is the same."""
    plan_id, model = f"train_{ULID()}", training_model()
    result = present_plan(planned, prepared.shapes_by_job, prepared.starts_at, prepared.inputs, model, (plan_id, now))
    fixed = prepared.asked.model_copy(update={"starts_at": prepared.starts_at, "price_as_of": prepared.price_as_of})
    row = TrainingPlanTable(
        id=plan_id,
        created_at=now,
        outcome=result.outcome,
        jobs=[{"name": job.name, "llm": job.llm, "method": job.method} for job in prepared.asked.jobs],
        usd=result.solve.usd,
        price_as_of=prepared.price_as_of,
        catalog_digest=prepared.snapshot.digest,
        training_digest=model.catalog.digest,
        version=VERSION,
        request=fixed.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
    with database.writing() as session:
        claim_or_stop(session, named, now)
        session.add(row)
        session.flush()
        settle(session, named, plan_id)
    return result
