"""Answering a request for a plan: now, later as a job, or as it was answered before under the same key."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi import Request, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from service.access import Caller
from service.answers.store import answer_named
from service.answers.tables import StoredAnswer
from service.database import Database
from service.idempotency.keys import Named, StoredBeforeError, claim_or_stop, new_request, settle
from service.jobs.accepted import accepted, accepted_before
from service.jobs.create import enqueue
from service.jobs.kind import JobKind
from service.jobs.tables import JobTable
from service.prefer import Preference
from service.recommendations.create import PlanningContext, planning_context
from service.settings import Settings
from service.wire.fleet_answers import FleetOut
from service.wire.fleets import FleetIn
from service.wire.recommendations import RecommendationIn, RecommendationOut
from service.wire.training_plans import TrainingRecommendationIn, TrainingRecommendationOut

Asked = TypeVar("Asked", RecommendationIn, FleetIn, TrainingRecommendationIn)
Out = TypeVar("Out", RecommendationOut, FleetOut, TrainingRecommendationOut)
Row = TypeVar("Row", bound=StoredAnswer)


@dataclass(frozen=True)
class AnswerKind(Generic[Asked, Row, Out]):
    """What is asked for at one address. create: computes and stores. checked: the request as it is queued, refused as ``create``
    refuses it. streams: how many kinds of requests it plans for, where more of them take longer."""

    noun: str
    address: str
    table: type[Row]
    job: JobKind[Asked]
    present: Callable[[Row], Out]
    create: Callable[[Asked, PlanningContext, Named | None], Awaitable[Out]]
    checked: Callable[[Asked, PlanningContext], Asked]
    streams: Callable[[Asked], int] = lambda _: 1


async def answered(
    kind: AnswerKind[Asked, Row, Out],
    request: Request,
    caller: Caller,
    prefer: Preference,
    asked: Asked,
    response: Response,
    idempotency_key: str | None,
) -> Out | JSONResponse:
    """201 with the answer, 202 with the job that will have it, 200 with what was stored before."""
    context, settings = planning_context(request), request.app.state.settings
    try:
        named = await new_request(request, caller, idempotency_key, asked, context.database)
        if is_answered_later(asked.time_limit_s, kind.streams(asked), prefer, settings):
            return accepted(await run_in_threadpool(queue, kind, asked, caller, context, settings, named), prefer)
        made = await kind.create(asked, context, named)
    except StoredBeforeError as before:
        later = await run_in_threadpool(accepted_before, context.database, before.resource, prefer)
        if later is not None:
            return later
        made = await run_in_threadpool(_read, kind, context.database, before.resource)
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = f"{kind.address}/{made.id}"
    return made


def _read(kind: AnswerKind[Asked, Row, Out], database: Database, answer_id: str) -> Out:
    with database.reading() as session:
        return kind.present(answer_named(session, kind.table, kind.noun, answer_id))


def is_answered_later(time_limit_s: float, streams: int, preference: Preference, settings: Settings) -> bool:
    """Whether a request becomes a job: the client prefers it, or states a size or a time that may take long.

    A client that would rather wait says so (``Prefer: wait=60``); that counts where it covers the time limit.
    """
    if preference.respond_async:
        return True
    if preference.wait_s is not None and preference.wait_s >= time_limit_s:
        return False
    return time_limit_s > settings.synchronous_time_limit_s or streams > settings.synchronous_workloads


def queue(
    kind: AnswerKind[Asked, Row, Out],
    asked: Asked,
    caller: Caller,
    context: PlanningContext,
    settings: Settings,
    named: Named | None = None,
) -> JobTable:
    """Checks what the synchronous route checks, so that a mistake is answered now and not by a failed job.

    Raises StoredBeforeError when the same request under the same key was queued or stored meanwhile.
    """
    now = context.clock()
    body = kind.checked(asked, context).model_dump(mode="json")
    with context.database.writing() as session:
        claim_or_stop(session, named, now)
        row = enqueue(session, kind.job, body, caller, settings, now)
        settle(session, named, row.id)
        session.expunge(row)
        return row
