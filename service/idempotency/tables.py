"""Which record an ``Idempotency-Key`` of a caller stands for. Uploads of benchmarks have a table of their own."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class StoredKeyTable(SQLModel, table=True):
    """Written in the transaction that stores the record, so that there is neither without the other."""

    __tablename__ = "idempotency_key"

    caller: str = Field(primary_key=True, max_length=200)
    """The token's id, or the address of a client without one."""
    key: str = Field(primary_key=True, max_length=200)
    digest: str = Field(max_length=64)
    """SHA-256 of what was asked: address and body."""
    resource: str = Field(max_length=320, index=True)
    """Id of the record; of the job, while that has none yet."""
    answer: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    """The answer itself, where no record holds it."""
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
