"""202: the answer to a request that became a job."""

from typing import Any

from fastapi import status
from fastapi.responses import JSONResponse

from service.database import Database
from service.jobs.present import address, present_job
from service.jobs.queries import job_by_id
from service.jobs.tables import JobTable
from service.prefer import Preference
from service.problems import NotFoundError
from service.wire.jobs import JobOut

ACCEPTED: dict[int | str, dict[str, Any]] = {
    status.HTTP_202_ACCEPTED: {
        "model": JobOut,
        "description": "A job: `Location` says where to follow it (docs/jobs.md)",
    }
}
POLL_AFTER_S = 1
JOB_ID_PREFIX = "job_"


def accepted(row: JobTable, prefer: Preference) -> JSONResponse:
    """The job's body, its address, and when to look again."""
    headers = {"Location": address(row), "Retry-After": str(POLL_AFTER_S)}
    if prefer.respond_async:
        headers["Preference-Applied"] = "respond-async"
    return JSONResponse(present_job(row).model_dump(mode="json"), status_code=status.HTTP_202_ACCEPTED, headers=headers)


def accepted_before(database: Database, resource: str, prefer: Preference) -> JSONResponse | None:
    """The job as it is now, where a key stands for one that has stored nothing yet; None where it stands for a record.

    Raises NotFoundError when the job was forgotten just now.
    """
    if not resource.startswith(JOB_ID_PREFIX):
        return None
    with database.reading() as session:
        row = job_by_id(session, resource)
        if row is None:
            raise NotFoundError(f"no job {resource!r}")
        return accepted(row, prefer)
