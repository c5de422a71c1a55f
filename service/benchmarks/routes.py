"""POST and GET /v1/benchmarks, /import, /{id}, /{id}/release, /{id}/retract."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response, status
from sqlmodel import Session

from service.access import Agent, Editor, Reader
from service.benchmarks.comparison import Loop
from service.benchmarks.decide import decide
from service.benchmarks.intake import Checked, Submission, Taken, canonical_run, check, imported_runs, store
from service.benchmarks.known import KnownNames
from service.benchmarks.names import names_of
from service.benchmarks.normalise import Completed
from service.benchmarks.present import (
    present_import,
    present_receipt,
    present_stored,
    present_summary,
    stored_upload,
)
from service.benchmarks.queries import benchmark_by_id, events_of, list_benchmarks, upload_by_id
from service.benchmarks.tables import BenchmarkEventTable
from service.clock import Clock
from service.database import ReadSession, WriteSession, database_of
from service.paging import Limit, Next, cut_page, last_id
from service.problems import InvalidFieldsError, NotFoundError
from service.wire.benchmarks import (
    BenchmarkDecision,
    BenchmarkImport,
    BenchmarkReceipt,
    BenchmarkStatus,
    BenchmarkSummary,
    BenchmarkUpload,
    ImportReceipt,
    StoredBenchmark,
)
from service.wire.pages import Page

router = APIRouter(prefix="/v1/benchmarks", tags=["benchmarks"])
Filter = Annotated[str | None, Query(max_length=120)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$",
        description="The same key again answers with the first record; with another body it is a conflict.",
    ),
]  # fmt: skip


@router.post("", status_code=status.HTTP_201_CREATED, summary="Upload a measured result")
def post_benchmark(
    request: Request, caller: Agent, upload: BenchmarkUpload, response: Response, idempotency_key: IdempotencyKey = None
) -> BenchmarkReceipt:
    submission = Submission(caller.name, idempotency_key, upload.model_dump(mode="json"), _clock(request)())
    taken = _take(request, submission, lambda _known: canonical_run(upload), response)
    return present_receipt(taken.runs[0], _events(request, taken).get(taken.runs[0].id, ()))


@router.post("/import", status_code=status.HTTP_201_CREATED, summary="Upload a benchmark tool's own output")
def post_import(
    request: Request, caller: Agent, asked: BenchmarkImport, response: Response, idempotency_key: IdempotencyKey = None
) -> ImportReceipt:
    submission = Submission(caller.name, idempotency_key, asked.model_dump(mode="json"), _clock(request)())
    taken = _take(request, submission, lambda known: imported_runs(asked, known), response)
    return present_import(taken, _events(request, taken))


@router.get("", summary="List measured results: uploads oldest first, then the edition's own")
def get_benchmarks(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    status: BenchmarkStatus | None = None,
    device: Filter = None,
    llm: Filter = None,
    engine: Filter = None,
    tool: Filter = None,
) -> Page[BenchmarkSummary]:
    rows = list_benchmarks(
        session, after=last_id("next", after), limit=limit + 1,
        status=status, device=device, llm=llm, engine=engine, tool=tool,
    )  # fmt: skip
    page, cursor = cut_page(rows, limit)
    events = events_of(session, [run.id for run in page])
    return Page(items=[present_summary(run, events.get(run.id, ())) for run in page], next=cursor)


@router.get("/{benchmark_id}", summary="One measured result with its checks")
def get_benchmark(request: Request, _caller: Reader, session: ReadSession, benchmark_id: str) -> StoredBenchmark:
    return _stored(request, session, benchmark_id)


@router.post("/{benchmark_id}/release", summary="Accept a quarantined result after all")
def post_release(
    request: Request, caller: Editor, session: WriteSession, benchmark_id: str, asked: BenchmarkDecision
) -> StoredBenchmark:
    decide(session, benchmark_id, "release", asked.reason, caller.name, _clock(request)())
    _after_decision(request, session, benchmark_id)
    return _stored(request, session, benchmark_id)


@router.post("/{benchmark_id}/retract", summary="Withdraw a result; it stays stored and listed")
def post_retract(
    request: Request, caller: Editor, session: WriteSession, benchmark_id: str, asked: BenchmarkDecision
) -> StoredBenchmark:
    decide(session, benchmark_id, "retract", asked.reason, caller.name, _clock(request)())
    _after_decision(request, session, benchmark_id)
    return _stored(request, session, benchmark_id)


def _clock(request: Request) -> Clock:
    clock: Clock = request.app.state.clock
    return clock


def _loop(request: Request) -> Loop:
    """How results meet predictions; an application without a planner takes results in all the same."""
    loop: Loop = getattr(request.app.state, "benchmark_loop", None) or Loop()
    return loop


def _take(
    request: Request, submission: Submission, runs: Callable[[KnownNames], list[Completed]], response: Response
) -> Taken:
    """Check, then store in a short write transaction that commits before the answer."""
    database, loop, names = database_of(request), _loop(request), names_of(request.app)

    def checked_with(known: KnownNames) -> list[Checked]:
        completed = runs(known)
        if loop.predict is None:
            return check(None, completed, submission.received_at, known, loop)
        with database.reading() as session:
            return check(session, completed, submission.received_at, known, loop)

    recent = names.recent(database)
    try:
        checked = checked_with(recent)
    except InvalidFieldsError:
        fresh = names.fresh(database)
        if fresh is recent:
            raise
        checked = checked_with(fresh)
    with database.writing() as session:
        taken = store(session, checked, submission, loop)
        session.expunge_all()
    if not taken.is_new:
        response.status_code = status.HTTP_200_OK
    return taken


def _events(request: Request, taken: Taken) -> dict[str, list[BenchmarkEventTable]]:
    """Decisions about runs that were stored before; a new run has none."""
    if taken.is_new:
        return {}
    with database_of(request).reading() as session:
        return events_of(session, [run.id for run in taken.runs])


def _after_decision(request: Request, session: Session, benchmark_id: str) -> None:
    loop = _loop(request)
    if loop.changed is not None:
        loop.changed(session, [benchmark_id])


def _stored(request: Request, session: Session, benchmark_id: str) -> StoredBenchmark:
    run = benchmark_by_id(session, benchmark_id)
    if run is None:
        raise NotFoundError(f"no benchmark {benchmark_id[:80]!r}")
    upload = upload_by_id(session, run.upload_id)
    predict = _loop(request).predict_now
    predicted = predict(session, stored_upload(run)) if predict is not None else None
    return present_stored(run, upload.digest, events_of(session, [run.id]).get(run.id, ()), predicted)
