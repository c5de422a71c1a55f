"""POST and GET /v1/benchmarks, /import, /{id}, /{id}/release, /{id}/retract."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from service.access import Editor, Reader, RecentAgent
from service.benchmarks.decide import decide
from service.benchmarks.intake import Submission, canonical_run, imported_runs
from service.benchmarks.preparing import MOST_BYTES_AT_ONCE, loop_of, prepared, prepared_at_once
from service.benchmarks.present import (
    present_import,
    present_receipt,
    present_stored,
    present_summary,
    stored_upload,
)
from service.benchmarks.queries import benchmark_by_id, events_of, list_benchmarks, upload_by_id
from service.benchmarks.storing import Pending, Taken
from service.clock import Clock
from service.database import ReadSession, WriteSession
from service.group_commit import GroupCommit
from service.guarded_route import GuardedRoute
from service.idempotency.keys import IdempotencyKey
from service.paging import Limit, Next, cut_page, last_id
from service.problems import NotFoundError
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

router = APIRouter(prefix="/v1/benchmarks", tags=["benchmarks"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=120)]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Upload a measured result",
    responses={200: {"model": BenchmarkReceipt, "description": "It was stored before"}},
)
async def post_benchmark(
    request: Request,
    caller: RecentAgent,
    upload: BenchmarkUpload,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> BenchmarkReceipt:
    received_at = _clock(request)()

    def submission() -> Submission:
        return Submission(caller.name, idempotency_key, upload.model_dump(mode="json"), received_at)

    def read() -> Pending:
        return prepared(request.app, caller, submission(), lambda _known: canonical_run(upload))

    pending = prepared_at_once(request.app, caller, submission(), upload) if _is_short(request) else None
    if pending is None:
        pending = await run_in_threadpool(read)
    receipt = present_receipt((await _stored_upload(request, pending, response)).runs[0])
    response.headers["Location"] = f"/v1/benchmarks/{receipt.id}"
    return receipt


@router.post(
    "/import",
    status_code=status.HTTP_201_CREATED,
    summary="Upload a benchmark tool's own output",
    responses={200: {"model": ImportReceipt, "description": "It was stored before"}},
)
async def post_import(
    request: Request,
    caller: RecentAgent,
    asked: BenchmarkImport,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> ImportReceipt:
    received_at = _clock(request)()

    def read() -> Pending:
        submission = Submission(caller.name, idempotency_key, asked.model_dump(mode="json"), received_at)
        return prepared(
            request.app, caller, submission, lambda known: imported_runs(asked, known, request.app.state.apart)
        )

    receipt = present_import(await _stored_upload(request, await run_in_threadpool(read), response))
    response.headers["Location"] = f"/v1/benchmarks/{receipt.id}"  # of the first run; `runs` has all
    return receipt


@router.get("", summary="List measured results: uploads oldest first, then the catalog's own")
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
    found = list_benchmarks(
        session, after=last_id("next", after), limit=limit + 1,
        status=status, device=device, llm=llm, engine=engine, tool=tool,
    )  # fmt: skip
    page, cursor = cut_page(found.rows, limit)
    events = events_of(session, [run.id for run in page])
    return Page(items=[present_summary(run, events.get(run.id, ())) for run in page], next=cursor, total=found.total)


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


def _is_short(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isdigit() and int(length) <= MOST_BYTES_AT_ONCE


async def _stored_upload(request: Request, pending: Pending, response: Response) -> Taken:
    """Committed, together with the uploads that came meanwhile."""
    uploads: GroupCommit[Pending, Taken] = request.app.state.uploads
    taken = await uploads.add(pending)
    if not taken.is_new:
        response.status_code = status.HTTP_200_OK
    return taken


def _after_decision(request: Request, session: Session, benchmark_id: str) -> None:
    loop = loop_of(request.app)
    if loop.changed is not None:
        loop.changed(session, [benchmark_id])


def _stored(request: Request, session: Session, benchmark_id: str) -> StoredBenchmark:
    run = benchmark_by_id(session, benchmark_id)
    if run is None:
        raise NotFoundError(f"no benchmark {benchmark_id[:80]!r}")
    upload = upload_by_id(session, run.upload_id)
    predict = loop_of(request.app).predict_now
    predicted = predict(session, stored_upload(run)) if predict is not None else None
    return present_stored(run, upload.digest, events_of(session, [run.id]).get(run.id, ()), predicted)
