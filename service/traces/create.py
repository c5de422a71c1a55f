"""Take in a trace: described, then stored once under its digest."""

import hashlib
import json
import zlib

from service.access import Caller
from service.benchmarks.queries import insert_unless_stored
from service.clock import Clock
from service.database import Database
from service.idempotency.keys import Named, claim_or_stop, settle
from service.problems import not_found
from service.sandboxed_reading import ReadingApart
from service.traces.present import with_cache
from service.traces.queries import trace_by_id
from service.traces.sandboxed import description_of
from service.traces.tables import TraceTable
from service.wire.traces import TraceDescription, TraceIn, TraceOut


def create_trace(
    asked: TraceIn, caller: Caller, database: Database, apart: ReadingApart, clock: Clock, named: Named | None
) -> tuple[TraceOut, bool]:
    """The stored trace, and whether this request stored it. What was stored before is not read again."""
    content = json.dumps(asked.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    encoded = content.encode("utf-8", "surrogatepass")
    trace_id = f"trace_{hashlib.sha256(encoded).hexdigest()}"
    with database.reading() as session:
        found = trace_by_id(session, trace_id)
        before = None if found is None else present_trace(found)
    row = None
    if before is None:
        description = description_of(asked, apart).model_dump(mode="json")
        row = TraceTable(
            id=trace_id, caller=caller.name, recorded_at=clock(), body=zlib.compress(encoded, level=1), description=description
        )  # fmt: skip
    with database.writing() as session:
        claim_or_stop(session, named, clock())
        is_new = row is not None and insert_unless_stored(session, row)
        settle(session, named, trace_id)
    return before or stored_trace(database, trace_id), is_new


def stored_trace(database: Database, trace_id: str) -> TraceOut:
    with database.reading() as session:
        row = trace_by_id(session, trace_id)
        if row is None:
            raise not_found("trace", trace_id, ())
        return present_trace(row)


def present_trace(row: TraceTable, cache_tokens: int | None = None) -> TraceOut:
    description = with_cache(TraceDescription.model_validate(row.description), cache_tokens)
    return TraceOut(id=row.id, recorded_at=row.recorded_at, **dict(description))
