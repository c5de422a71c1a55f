"""SQL about traces."""

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from service.traces.tables import TraceTable


def trace_by_id(session: Session, trace_id: str) -> TraceTable | None:
    """Without the file, which may be large."""
    wanted = select(TraceTable).where(col(TraceTable.id) == trace_id).options(defer(TraceTable.body))  # type: ignore[arg-type]
    return session.exec(wanted).first()
