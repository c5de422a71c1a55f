"""Measured results: uploads as they came, the runs in them, and what was decided about a run afterwards.

Rows are inserted and never changed. A run's status is that of its last event, or the one it was given at intake.
"""

import datetime as dt
from typing import Any

from sqlalchemy import JSON, UniqueConstraint
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class BenchmarkUploadTable(SQLModel, table=True):
    """One upload: the request body as it came, compressed, under the digest of its content."""

    __tablename__ = "benchmark_upload"

    id: str = Field(primary_key=True, max_length=40)
    digest: str = Field(max_length=64, unique=True)
    tool: str = Field(max_length=40)
    caller: str = Field(max_length=200)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
    body: bytes
    """The JSON body, zlib."""


class IdempotencyKeyTable(SQLModel, table=True):
    """Which upload an ``Idempotency-Key`` of a caller stood for."""

    __tablename__ = "benchmark_idempotency_key"

    caller: str = Field(primary_key=True, max_length=200)
    key: str = Field(primary_key=True, max_length=200)
    digest: str = Field(max_length=64)
    upload_id: str = Field(foreign_key="benchmark_upload.id", max_length=40)


class BenchmarkTable(SQLModel, table=True):
    """One measured run in canonical form, with the checks it went through."""

    __tablename__ = "benchmark"
    __table_args__ = (UniqueConstraint("upload_id", "position"),)

    id: str = Field(primary_key=True, max_length=40)
    upload_id: str = Field(foreign_key="benchmark_upload.id", max_length=40)
    position: int
    """Place of the run in its upload."""
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
    measured_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    status: str = Field(max_length=16)
    """As given at intake: accepted or quarantined."""
    tool: str = Field(max_length=40)
    device_id: str = Field(foreign_key="device.id", max_length=120, index=True)
    devices: int
    llm_id: str = Field(foreign_key="llm.id", max_length=120, index=True)
    engine: str = Field(max_length=120)
    engine_version: str | None = Field(default=None, max_length=200)
    weights: str = Field(max_length=20)
    document: dict[str, Any] = Field(sa_type=JSON)
    checks: list[dict[str, Any]] = Field(sa_type=JSON)
    reasons: list[str] = Field(sa_type=JSON)
    warnings: list[str] = Field(sa_type=JSON)
    predicted_over_measured: dict[str, float] | None = Field(default=None, sa_type=JSON)
    correction_set: int | None = None
    """The set that was in force at upload."""


class BenchmarkEventTable(SQLModel, table=True):
    """A decision about a stored run."""

    __tablename__ = "benchmark_event"

    id: str = Field(primary_key=True, max_length=40)
    benchmark_id: str = Field(foreign_key="benchmark.id", max_length=40, index=True)
    action: str = Field(max_length=16)
    reason: str = Field(max_length=2_000)
    actor: str = Field(max_length=200)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
