"""202: the answer to a request that became a job."""

from typing import Any

from fastapi import status
from fastapi.responses import JSONResponse

from service.jobs.present import address, present_job
from service.jobs.tables import JobTable
from service.prefer import Preference
from service.wire.jobs import JobOut

ACCEPTED: dict[int | str, dict[str, Any]] = {
    status.HTTP_202_ACCEPTED: {
        "model": JobOut,
        "description": "A job: `Location` says where to follow it (docs/jobs.md)",
    }
}
POLL_AFTER_S = 1


def accepted(row: JobTable, prefer: Preference) -> JSONResponse:
    """The job's body, its address, and when to look again."""
    headers = {"Location": address(row), "Retry-After": str(POLL_AFTER_S)}
    if prefer.respond_async:
        headers["Preference-Applied"] = "respond-async"
    return JSONResponse(present_job(row).model_dump(mode="json"), status_code=status.HTTP_202_ACCEPTED, headers=headers)
