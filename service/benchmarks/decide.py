"""Release or retract a stored result: an event is appended, the result stays as it was."""

import datetime as dt

from sqlmodel import Session
from ulid import ULID

from service.benchmarks.own_runs import OF_CATALOG
from service.benchmarks.queries import benchmark_for_update, current_status, events_of
from service.benchmarks.tables import BenchmarkEventTable, BenchmarkTable
from service.problems import ConflictError, NotFoundError

ALLOWED_FROM = {"release": ("quarantined", "retracted"), "retract": ("accepted", "quarantined")}


def decide(
    session: Session, benchmark_id: str, action: str, reason: str, actor: str, now: dt.datetime
) -> BenchmarkTable:
    """Append the decision. Raises NotFoundError, or ConflictError when the result already has the status, or is one of
    the catalog's own: its correction set holds what they taught, so a decision here would say what is not so."""
    run = benchmark_for_update(session, benchmark_id)
    if run is None:
        raise NotFoundError(f"no benchmark {benchmark_id!r}")
    if run.tool == OF_CATALOG:
        raise ConflictError(f"cannot {action} benchmark {benchmark_id!r}: it belongs to the catalog's release")
    status = current_status(run, events_of(session, [benchmark_id]).get(benchmark_id, []))
    if status not in ALLOWED_FROM[action]:
        raise ConflictError(f"cannot {action} benchmark {benchmark_id!r}: it is {status}")
    session.add(
        BenchmarkEventTable(
            id=f"evt_{ULID()}", benchmark_id=benchmark_id, action=action, reason=reason, actor=actor, recorded_at=now
        )
    )
    session.flush()
    return run
