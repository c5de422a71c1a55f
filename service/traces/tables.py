"""Stored traces: the file as it came, once, and what it says."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class TraceTable(SQLModel, table=True):
    """Inserted and never changed."""

    __tablename__ = "trace"

    id: str = Field(primary_key=True, max_length=80)
    """``trace_`` and the SHA-256 of what was sent."""
    caller: str = Field(max_length=200)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
    body: bytes
    """What was sent as canonical JSON, zlib."""
    description: dict[str, Any] = Field(sa_type=JSON)
