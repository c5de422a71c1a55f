"""Jobs → wire."""

from service.jobs.tables import JobEventTable, JobTable
from service.wire.jobs import JobEventOut, JobOut, JobSummaryOut, ProgressOut
from service.wire.problems import ProblemOut


def address(row: JobTable) -> str:
    return f"/v1/jobs/{row.id}"


def present_job(row: JobTable) -> JobOut:
    return JobOut(**dict(present_summary(row)), request=row.request)


def present_summary(row: JobTable) -> JobSummaryOut:
    return JobSummaryOut(
        id=row.id,
        kind=row.kind,
        state=row.state,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        expires_at=row.expires_at,
        attempts=row.attempts,
        cancel_requested=row.cancel_requested_at is not None,
        progress=None if row.progress is None else ProgressOut.model_validate(row.progress),
        result=row.result,
        problem=None if row.problem is None else ProblemOut.model_validate(row.problem),
        events=f"{address(row)}/events",
    )


def present_event(row: JobEventTable) -> JobEventOut:
    return JobEventOut(number=row.number, at=row.at, event=row.event, data=row.data)
