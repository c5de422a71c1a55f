"""POST /v1/training/recommendations: read, plan, store, answer. The same body at the same instants has the same plan."""

import asyncio
import datetime as dt
import math
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool
from ulid import ULID

from service import VERSION
from service.answers.store import stored
from service.fleets.own import Owned
from service.idempotency.keys import Named
from service.jobs.kind import WorkerContext
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.names_meant import llm_name_meant
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.check import unknown_in_limits
from service.recommendations.create import PlanningContext
from service.recommendations.from_rows import llm_from_row
from service.recommendations.resolve_names import limits_meant
from service.training.beside_fleet import Beside, read_beside
from service.training.inputs import check_model_takes, checked_to_train, training_model
from service.training.measured import MeasuredRun, measured_runs
from service.training.own import read_training_owned
from service.training.predict import REFUSED_FIELDS, stated_degrees
from service.training.present import present_stored
from service.training.present_plan import present_plan
from service.training.recommend import LONGEST_DAYS, SECONDS_PER_DAY, limits_of, plan_training
from service.training.said import tokens_of
from service.training.serving import Serving, read_serving
from service.training.tables import TrainingPlanTable
from service.wire.recommendations import InputsOut
from service.wire.training_plans import (
    TrainingJobIn,
    TrainingRecommendationIn,
    TrainingRecommendationOut,
    TrainingResultOut,
)
from solver.errors import UnsupportedError
from solver.llm_shape import LlmShape

CLOCKS_APART = dt.timedelta(hours=1)
"""Who asks to begin now states an instant that has passed when it is read; nodes are paid by the hour."""


@dataclass(frozen=True)
class PreparedPlan:
    """A request with all that a plan of it rests on."""

    asked: TrainingRecommendationIn
    shapes: dict[str, LlmShape]
    snapshot: CatalogSnapshot
    runs: tuple[MeasuredRun, ...]
    beside: Beside
    serving: Serving | None
    owned: Owned
    starts_at: dt.datetime
    price_as_of: dt.datetime

    @property
    def shapes_by_job(self) -> dict[str, LlmShape]:
        return {job.name: self.shapes[job.llm] for job in self.asked.jobs}

    @property
    def fixed(self) -> TrainingRecommendationIn:
        """With the instants that the request left open: asked again, it is the same."""
        return self.asked.model_copy(update={"starts_at": self.starts_at, "price_as_of": self.price_as_of})

    @property
    def inputs(self) -> InputsOut:
        return InputsOut(
            price_as_of=self.price_as_of, catalog_digest=self.snapshot.digest, correction_set=None, version=VERSION
        )


async def create_training_plan(
    asked: TrainingRecommendationIn, context: PlanningContext, named: Named | None
) -> TrainingRecommendationOut:
    """Raises InvalidFieldsError for unknown models, a deadline that has passed, and jobs that nothing can be computed for;
    StoredBeforeError when the same request under the same key was stored meanwhile.
    """
    now = context.clock()
    check_beginning(asked, now)
    prepared = await run_in_threadpool(prepare_plan, asked, context, now)
    result = await context.pool.run("training plan", lambda: result_of(prepared))
    context.metrics.count_outcome("training_plan", result.outcome)
    row = plan_row(prepared.fixed, result, now)
    # Once the answer is there it is stored, even when the client has gone.
    return await asyncio.shield(run_in_threadpool(stored, context.database, row, named, present_stored))


def check_beginning(asked: TrainingRecommendationIn, now: dt.datetime) -> None:
    """Raises InvalidFieldsError for jobs that were to begin before they are asked about, or before the instant of their prices.

    Only when a plan is asked for: a stored one is looked at again after its jobs have begun.
    """
    earliest = min(now, asked.price_as_of or now) - CLOCKS_APART
    if asked.starts_at is not None and asked.starts_at < earliest:
        problem = (
            f"{asked.starts_at.isoformat()} is past; leave it out to begin now, or state price_as_of to plan as of then"
        )
        raise InvalidFieldsError([FieldError(problem, pointer="/starts_at")])


def result_of(prepared: PreparedPlan) -> TrainingResultOut:
    """Runs in a solver thread or a job's process; no database connection is held."""
    planned = plan_training(
        prepared.asked, prepared.shapes, prepared.snapshot.offers, training_model(), prepared.starts_at, prepared.runs,
        beside=prepared.beside, serving=prepared.serving, owned=prepared.owned, machines=prepared.snapshot.nodes,
    )  # fmt: skip
    return present_plan(
        planned, prepared.asked, prepared.shapes_by_job, prepared.starts_at, prepared.inputs, training_model()
    )


def prepare_plan(
    asked: TrainingRecommendationIn, context: PlanningContext | WorkerContext, now: dt.datetime
) -> PreparedPlan:
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
        asked = _limits_meant(asked, snapshot)
        hub_names = hub_names_by_id(session)
        jobs = tuple(job.model_copy(update={"llm": llm_name_meant(job.llm, hub_names)}) for job in asked.jobs)
        shapes = {row.id: llm_from_row(row.row) for row in llms_by_ids(session, {job.llm for job in jobs})}
        known = llm_ids(session) if len(shapes) < len({job.llm for job in jobs}) else []
        runs = measured_runs(session, shapes, now)
        beside = read_beside(session, asked.beside_fleet, snapshot.nodes, _latest_s(asked, starts_at))
        owned = read_training_owned(session, asked, snapshot, _latest_s(asked, starts_at))
        serving = read_serving(session, asked.serving, asked.serving_hourly_profile, starts_at, snapshot.nodes)
    wrong = _wrong_limits(asked, snapshot) + [
        FieldError(unknown_name("llm", job.llm, known), pointer=f"/jobs/{n}/llm")
        for n, job in enumerate(jobs)
        if job.llm not in shapes
    ]
    wrong += [error for n, job in enumerate(jobs) if job.llm in shapes for error in _wrong_job(n, job, shapes[job.llm])]
    if wrong:
        raise InvalidFieldsError(wrong)
    fixed = asked.model_copy(update={"jobs": jobs})
    return PreparedPlan(fixed, shapes, snapshot, runs, beside, serving, owned, starts_at, as_of)


def _limits_meant(asked: TrainingRecommendationIn, snapshot: CatalogSnapshot) -> TrainingRecommendationIn:
    meant = limits_meant(limits_of(asked), snapshot)
    names = {name: getattr(meant, name) for name in ("devices", "providers", "regions")}
    return asked.model_copy(update={"limits": asked.limits.model_copy(update=names)})


def _wrong_limits(asked: TrainingRecommendationIn, snapshot: CatalogSnapshot) -> list[FieldError]:
    """Names that nobody knows, and devices of which nothing says that they train where no other is named."""
    wrong = unknown_in_limits(limits_of(asked), snapshot, frozenset(site.region for site in asked.own))
    named = asked.limits.devices or ()
    idle = []
    for position, name in enumerate(named):
        if name in snapshot.devices:
            try:
                checked_to_train(snapshot.devices[name], training_model())
            except UnsupportedError as error:
                idle.append(FieldError(str(error), pointer=f"/limits/devices/{position}"))
    return wrong + (idle if len(idle) == len(named) else [])


def _wrong_job(position: int, job: TrainingJobIn, shape: LlmShape) -> list[FieldError]:
    """What its model does not take on any device, and a batch that holds more than there is to train on."""
    stated = stated_degrees(job.layout, job.micro_batch_sequences)
    try:
        check_model_takes(training_model(), shape, job.sequence_tokens, stated)
    except UnsupportedError as error:
        return [FieldError(str(error), pointer=f"/jobs/{position}/{REFUSED_FIELDS.get(error.reason, 'layout')}")]
    sequence, batch = job.sequence_tokens, job.global_batch_sequences
    if sequence and batch and batch * sequence > tokens_of(job):
        most = int(tokens_of(job) // sequence)
        said = (
            f"a step of {batch} sequences of {sequence} tokens holds more than the {tokens_of(job):g} tokens of the job, which are "
            f"{most} sequences"
        )
        return [FieldError(said, pointer=f"/jobs/{position}/global_batch_sequences")]
    return []


def _latest_s(asked: TrainingRecommendationIn, starts_at: dt.datetime) -> float:
    """After which no job runs: seconds to the last deadline, unless some job has none."""
    ends = [math.inf if job.deadline is None else (job.deadline - starts_at).total_seconds() for job in asked.jobs]
    return min(max(ends), LONGEST_DAYS * SECONDS_PER_DAY)


def plan_row(asked: TrainingRecommendationIn, result: TrainingResultOut, now: dt.datetime) -> TrainingPlanTable:
    """The row that a result is stored as."""
    return TrainingPlanTable(
        id=f"train_{ULID()}",
        created_at=now,
        outcome=result.outcome,
        jobs=[{"name": job.name, "llm": job.llm, "method": job.method} for job in asked.jobs],
        usd=result.solve.usd,
        price_as_of=result.inputs.price_as_of,
        catalog_digest=result.inputs.catalog_digest,
        training_digest=result.training_digest,
        version=result.inputs.version,
        request=asked.model_dump(mode="json"),
        result=result.model_dump(mode="json"),
    )
