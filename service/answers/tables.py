"""Columns of every stored answer: immutable, with everything needed to replay it."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class StoredAnswer(SQLModel):
    id: str = Field(primary_key=True, max_length=40)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    outcome: str = Field(max_length=20)
    price_as_of: dt.datetime = Field(sa_type=UtcInstant)
    catalog_digest: str = Field(max_length=64)
    correction_set: int | None = None
    version: str = Field(max_length=40)
    request: dict[str, Any] = Field(sa_type=JSON)
    result: dict[str, Any] = Field(sa_type=JSON)
