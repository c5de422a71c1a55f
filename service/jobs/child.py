"""The process in which jobs are computed: started by a worker, killed by it, and ended when the worker is gone.

It reads requests from one pipe and writes what becomes of them to another, one JSON document a line. It only reads the
database. Solvers are libraries that cannot be trusted to stop when asked; a process can be killed.
"""

import contextlib
import importlib
import json
import logging
import math
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.clock import rfc3339, system_clock
from service.database import Database
from service.jobs.kind import Attempt, JobKind, Progress, WorkerContext
from service.problem_handlers import as_problem
from service.problems import problem_document
from service.process_memory import hold_together
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.spaces import SpaceCache
from service.wire.jobs import JobIn

log = logging.getLogger("clusterwright.jobs")

GIVES_WAY = 10  # of 19: on a machine short of processors, who reads or uploads is answered before plans are computed


def main() -> None:
    """``python -m service.jobs.child READ WRITE``: numbers of the pipes' descriptors."""
    _give_way()
    hold_together()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the worker decides
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    reading = os.fdopen(int(sys.argv[1]), encoding="utf-8")
    answering = os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
    threading.Thread(target=_listen, args=(reading, requests), daemon=True).start()
    told = json.loads(requests.get())
    logging.basicConfig(level=told["log_level"].upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    kinds = importlib.import_module(told["registry"]).KINDS
    database = Database(told["database_url"], pool_size=1, lock_timeout_s=told["lock_timeout_s"])
    bench = WorkerContext(database, SnapshotCache(), SpaceCache())
    while True:
        job = JobIn.model_validate_json(requests.get())
        _tell(answering, _outcome(kinds[job.kind], job, bench, answering))


def _give_way() -> None:
    """Linux weighs sessions against each other before processes within one, and this process has a session of its own."""
    os.nice(GIVES_WAY)
    with contextlib.suppress(OSError):  # another system, or a kernel without groups by session
        Path("/proc/self/autogroup").write_text(f"{os.nice(0)}")


def _listen(reading: TextIO, requests: "queue.SimpleQueue[str]") -> None:
    """When the worker is gone its end of the pipe closes: nobody would hear the answer. Children of a solver go too."""
    for line in reading:
        requests.put(line)
    os.killpg(0, signal.SIGKILL)


def _outcome(kind: JobKind[Any], job: JobIn, bench: WorkerContext, answering: TextIO) -> dict[str, Any]:
    """``answer``, ``problem``, or ``again`` where the database could not be reached."""
    attempt = Attempt(job.id, job.asked_at, bench, lambda progress: _tell(answering, progress_document(progress)))
    try:
        return {"answer": kind.compute(kind.request.model_validate(job.request), attempt)}
    except (OperationalError, PoolTimeoutError) as error:
        return {"again": f"the database could not be read: {type(error).__name__}"}
    except Exception as error:  # whatever it is belongs to the job
        problem = as_problem(error)
        if problem.slug == "internal":
            log.error("unexpected failure, job %s", job.id, exc_info=error)
        return {"problem": problem_document(problem)}


def progress_document(progress: Progress) -> dict[str, Any]:
    """As it is stored: amounts as decimal text, null where a solver has no finite figure."""
    return {
        "progress": {
            "stage": progress.stage,
            "usd_per_hour": _usd_text(progress.usd_per_hour),
            "bound_usd_per_hour": _usd_text(progress.bound_usd_per_hour),
            "gap_fraction": progress.gap_fraction if _is_figure(progress.gap_fraction) else None,
            "at": rfc3339(system_clock()),
        }
    }


def _usd_text(amount: float | None) -> str | None:
    return f"{amount:.6f}" if amount is not None and _is_figure(amount) else None


def _is_figure(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _tell(answering: TextIO, document: dict[str, Any]) -> None:
    answering.write(json.dumps(document, allow_nan=False) + "\n")
    answering.flush()


if __name__ == "__main__":
    main()
