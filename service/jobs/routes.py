"""Jobs (/v1/jobs): what long requests became. Jobs are made by the routes of what they compute."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response, status
from fastapi.responses import StreamingResponse

from service.access import Reader, Role
from service.database import ReadSession, WriteSession, database_of
from service.guarded_route import GuardedRoute
from service.jobs.lifecycle import cancel
from service.jobs.present import present_job, present_summary
from service.jobs.queries import TERMINAL, job_by_id, list_jobs
from service.jobs.stream import event_stream
from service.jobs.tables import JobTable
from service.paging import Limit, Next, cut_page, last_id
from service.problems import FieldError, ForbiddenError, InvalidFieldsError, NotFoundError
from service.wire.jobs import JobOut, JobState, JobSummaryOut
from service.wire.pages import Page

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=GuardedRoute)
LastEventId = Annotated[str | None, Header(max_length=20)]
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events `state` and `progress`", "content": {"text/event-stream": {}}},
    204: {"description": "The job has ended and its last event was received: do not come back"},
}


@router.get("", summary="Jobs, newest first")
def get_jobs(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    state: JobState | None = None,
    kind: Annotated[str | None, Query(max_length=40)] = None,
) -> Page[JobSummaryOut]:
    found = list_jobs(session, before=last_id("next", after), limit=limit + 1, state=state, kind=kind)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_summary(row) for row in page], next=cursor, total=found.total)


@router.get("/{job_id}", summary="One job: its state, its progress, its result")
def get_job(_caller: Reader, session: ReadSession, job_id: str) -> JobOut:
    return present_job(_job(job_by_id(session, job_id), job_id))


@router.get("/{job_id}/events", summary="A job's events as they happen", response_class=Response, responses=EVENTS)
def get_job_events(
    request: Request, _caller: Reader, session: ReadSession, job_id: str, last_event_id: LastEventId = None
) -> Response:
    row = _job(job_by_id(session, job_id), job_id)
    after = _event_number(last_event_id, row)
    if row.state in TERMINAL and after == row.events:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    worker = request.app.state.job_worker
    return StreamingResponse(
        event_stream(database_of(request), job_id, after, lambda: worker.is_stopping),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.post(
    "/{job_id}/cancel", summary="Cancel a job", responses={202: {"model": JobOut, "description": "It is being stopped"}}
)
def post_job_cancel(request: Request, caller: Reader, session: WriteSession, job_id: str, response: Response) -> JobOut:
    owner = _job(job_by_id(session, job_id), job_id).caller
    if caller.name != owner and caller.role < Role.editor:
        raise ForbiddenError("another token made this job; cancelling it needs the role editor")
    row = cancel(session, job_id, request.app.state.clock())
    if row.state == "running":
        response.status_code = status.HTTP_202_ACCEPTED
    return present_job(row)


def _job(row: JobTable | None, job_id: str) -> JobTable:
    if row is None:
        raise NotFoundError(f"no job {job_id[:80]!r}")
    return row


def _event_number(given: str | None, row: JobTable) -> int:
    """The number of the last event a client has; 0 where it has none."""
    if given is None or given == "":
        return 0
    if not (given.isascii() and given.isdigit() and int(given) <= row.events):
        raise InvalidFieldsError([FieldError("not the id of an event of this job", parameter="last-event-id")])
    return int(given)
