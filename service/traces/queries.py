"""SQL about traces."""

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from service.traces.tables import TraceTable

LARGE = ("body",)
"""Columns that no answer shows."""


def trace_by_id(session: Session, trace_id: str) -> TraceTable | None:
    """Without what is large of it."""
    left = [defer(getattr(TraceTable, name)) for name in LARGE]
    return session.exec(select(TraceTable).where(col(TraceTable.id) == trace_id).options(*left)).first()
