"""Wanted measurements, the leases on them, and agents."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class MeasurementTable(SQLModel, table=True):
    """A wanted measurement. Changed only under a lock on its row."""

    __tablename__ = "measurement"

    id: str = Field(primary_key=True, max_length=40)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    caller: str = Field(max_length=200)
    device_id: str = Field(foreign_key="device.id", max_length=120, index=True)
    devices: int
    llm_id: str = Field(foreign_key="llm.id", max_length=120)
    priority: int
    most_attempts: int
    status: str = Field(max_length=16, index=True)
    attempts: int = 0
    lease_id: str | None = Field(default=None, max_length=40)
    lease_expires_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    wanted: dict[str, Any] = Field(sa_type=JSON)
    benchmarks: list[str] = Field(default_factory=list, sa_type=JSON)


class LeaseTable(SQLModel, table=True):
    """One agent's attempt at a measurement."""

    __tablename__ = "measurement_lease"

    id: str = Field(primary_key=True, max_length=40)
    measurement_id: str = Field(foreign_key="measurement.id", max_length=40, index=True)
    agent_id: str = Field(max_length=200)
    started_at: dt.datetime = Field(sa_type=UtcInstant)
    ended_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    outcome: str = Field(default="running", max_length=16)
    """running, done, failed, expired."""
    detail: str = Field(default="", max_length=2_000)


class AgentTable(SQLModel, table=True):
    """An agent that reported itself."""

    __tablename__ = "agent"

    id: str = Field(primary_key=True, max_length=200)
    version: str = Field(max_length=100)
    hostname: str = Field(max_length=200)
    device: str | None = Field(default=None, max_length=120)
    devices: int = 0
    probe: dict[str, Any] = Field(sa_type=JSON)
    first_seen_at: dt.datetime = Field(sa_type=UtcInstant)
    last_seen_at: dt.datetime = Field(sa_type=UtcInstant)


class DeviceMeasurementTable(SQLModel, table=True):
    """Micro-measurements of a device. Inserted, never changed."""

    __tablename__ = "device_measurement"

    id: str = Field(primary_key=True, max_length=40)
    digest: str = Field(max_length=64, unique=True)
    caller: str = Field(max_length=200)
    device_id: str = Field(foreign_key="device.id", max_length=120, index=True)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
    status: str = Field(max_length=16)
    reasons: list[str] = Field(sa_type=JSON)
    document: dict[str, Any] = Field(sa_type=JSON)
