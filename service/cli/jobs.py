"""``clusterwright jobs``, and waiting for the job that a long request became."""

import argparse
import time
from collections.abc import Callable
from typing import Any

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.settings import Settings

LOOK_EVERY_S = 0.5
LIVE = ("queued", "running")


def jobs_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """List jobs, show one, or cancel one."""
    from service.cli.ask import list_command
    from service.cli.output import print_json

    if not arguments.cancel:
        return list_command(arguments, settings)
    if arguments.id is None:
        raise CommandError("which job? clusterwright jobs ID --cancel", ExitCode.bad_input)
    print_json(Client(settings, arguments.url).post(f"/v1/jobs/{arguments.id}/cancel"))
    return ExitCode.ok


def is_job(answer: dict[str, Any]) -> bool:
    """Whether a request was answered with a job instead of its result."""
    return "state" in answer and "events" in answer


def result_of(client: Client, job: dict[str, Any], observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Waits until the job has ended. Raises CommandError where it has no result."""
    while job["state"] in LIVE:
        time.sleep(LOOK_EVERY_S)
        job = client.get(f"/v1/jobs/{job['id']}")
        observe(job)
    if job["result"] is None:
        why = (job["problem"] or {}).get("detail", "")
        raise CommandError(f"job {job['id']} {job['state']}" + (f": {why}" if why else ""))
    return client.get(job["result"])


def progress_line(job: dict[str, Any]) -> str:
    """
    >>> progress_line({"id": "job_1", "state": "queued", "progress": None})
    'job_1: queued'
    >>> progress_line({"id": "job_1", "state": "running",
    ...                "progress": {"stage": "solving", "usd_per_hour": "25.590000", "gap_fraction": 0.012}})
    'job_1: solving, 25.59 USD/h so far, at most 1.2 % above the best'
    """
    progress = job["progress"] or {}
    line = f"{job['id']}: {progress.get('stage', job['state'])}"
    if progress.get("usd_per_hour") is not None:
        line += f", {float(progress['usd_per_hour']):.2f} USD/h so far"
    if progress.get("gap_fraction"):
        line += f", at most {progress['gap_fraction']:.1%} above the best".replace("%", " %")
    return line
