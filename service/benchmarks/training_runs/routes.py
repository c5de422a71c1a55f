"""POST and GET /v1/benchmarks/training-runs, /{id}, /{id}/retract."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session

from service.access import Agent, Caller, Editor, Reader
from service.benchmarks.training_runs.create import prepared_run, retract, store_training_run
from service.benchmarks.training_runs.present import present_training_run
from service.benchmarks.training_runs.queries import list_training_runs, training_run_by_id
from service.benchmarks.training_runs.tables import TrainingRunTable
from service.database import ReadSession, WriteSession
from service.guarded_route import GuardedRoute
from service.idempotency.keys import (
    STORED_BEFORE,
    IdempotencyKey,
    Named,
    StoredBeforeError,
    claim_or_stop,
    new_request,
    settle,
)
from service.paging import Limit, Next, cut_page, last_id
from service.problems import NotFoundError
from service.wire.pages import Page
from service.wire.training_runs import TrainingRunIn, TrainingRunOut

router = APIRouter(prefix="/v1/benchmarks/training-runs", tags=["benchmarks"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=200)]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Upload a measured training run, or the log of one",
    responses={200: {"model": TrainingRunOut, "description": f"{STORED_BEFORE}, or the same run"}},
)
async def post_training_run(
    request: Request, response: Response, caller: Agent, asked: TrainingRunIn, idempotency_key: IdempotencyKey = None
) -> TrainingRunOut:
    try:
        named = await new_request(request, caller, idempotency_key, asked, request.app.state.database)
        run, is_new = await run_in_threadpool(_store, request, caller, asked, named)
    except StoredBeforeError as before:
        run, is_new = await run_in_threadpool(_stored, request, before.resource), False
    if not is_new:
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = run.link
    return run


def _store(request: Request, caller: Caller, asked: TrainingRunIn, named: Named | None) -> tuple[TrainingRunOut, bool]:
    state = request.app.state
    now = state.clock()
    with state.database.reading() as session:
        snapshot = state.snapshots.at(session, now)
    with state.database.writing() as session:
        claim_or_stop(session, named, now)
        run, is_new = store_training_run(session, snapshot, asked, caller, now)
        settle(session, named, run.id)
    return run, is_new


def _stored(request: Request, run_id: str) -> TrainingRunOut:
    with request.app.state.database.reading() as session:
        return _run_by_id(request, session, run_id)


@router.get("", summary="Measured training runs, by id")
def get_training_runs(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    llm: Filter = None,
    device: Filter = None,
) -> Page[TrainingRunOut]:
    found = list_training_runs(session, after=last_id("next", after), limit=limit + 1, llm=llm, device=device)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[_presented(request, session, row) for row in page], next=cursor, total=found.total)


@router.get("/{run_id}", summary="One measured training run, beside what is predicted of it")
def get_training_run(request: Request, _caller: Reader, session: ReadSession, run_id: str) -> TrainingRunOut:
    return _run_by_id(request, session, run_id)


def _run_by_id(request: Request, session: Session, run_id: str) -> TrainingRunOut:
    row = training_run_by_id(session, run_id)
    if row is None:
        raise NotFoundError(f"no training run {run_id[:80]!r}")
    return _presented(request, session, row)


@router.post("/{run_id}/retract", summary="Withdraw a training run; it stays stored and corrects nothing any more")
def post_retract(request: Request, _caller: Editor, session: WriteSession, run_id: str) -> TrainingRunOut:
    return _presented(request, session, retract(session, run_id, request.app.state.clock()))


def _presented(request: Request, session: Session, row: TrainingRunTable) -> TrainingRunOut:
    state = request.app.state
    return present_training_run(row, *prepared_run(session, state.snapshots.at(session, state.clock()), row))
