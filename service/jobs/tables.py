"""Jobs and their events."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class JobTable(SQLModel, table=True):
    """A piece of long work. Changed only under a lock on its row."""

    __tablename__ = "job"
    __table_args__ = (Index("ix_job_state_id", "state", "id"), Index("ix_job_caller_state", "caller", "state"))

    id: str = Field(primary_key=True, max_length=40)
    kind: str = Field(max_length=40)
    state: str = Field(max_length=16)
    """queued, running, succeeded, failed, cancelled, expired."""
    caller: str = Field(max_length=200)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    expires_at: dt.datetime = Field(sa_type=UtcInstant)
    started_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    finished_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    attempts: int = 0
    lease_id: str | None = Field(default=None, max_length=40)
    """Of the newest attempt. Only its holder may change the job."""
    lease_expires_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    worker: str | None = Field(default=None, max_length=200)
    cancel_requested_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    request: dict[str, Any] = Field(sa_type=JSON)
    progress: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    result: str | None = Field(default=None, max_length=200)
    """Address of the stored result."""
    problem: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    events: int = 0
    """Number of the last event."""


class JobEventTable(SQLModel, table=True):
    """What happened to a job, numbered from 1. Inserted, never changed."""

    __tablename__ = "job_event"

    job_id: str = Field(foreign_key="job.id", primary_key=True, max_length=40)
    number: int = Field(primary_key=True)
    at: dt.datetime = Field(sa_type=UtcInstant)
    event: str = Field(max_length=16)
    """state or progress."""
    data: dict[str, Any] = Field(sa_type=JSON)
