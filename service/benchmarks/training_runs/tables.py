"""Stored training runs."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON, Text
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class TrainingRunTable(SQLModel, table=True):
    """Inserted once; only ``retracted_at`` is ever set later."""

    __tablename__ = "training_run"

    id: str = Field(primary_key=True, max_length=60)
    """``trun_`` and part of the SHA-256 of what was sent."""
    caller: str = Field(max_length=200)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
    retracted_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
    llm: str = Field(max_length=200, index=True)
    device: str = Field(max_length=200)
    tokens_per_s_per_device: float
    peak_memory_gib: float | None = None
    steps: int | None = None
    run: dict[str, Any] = Field(sa_type=JSON)
    """As it was sent, with names as the catalog has them and without its log."""
    log: str | None = Field(default=None, sa_type=Text)
