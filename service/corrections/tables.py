"""Correction sets, immutable and numbered."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class CorrectionSetTable(SQLModel, table=True):
    __tablename__ = "correction_set"

    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    made_at: dt.datetime = Field(sa_type=UtcInstant)
    origin: str = Field(max_length=20)
    """edition: came with the catalog's files."""
    content: dict[str, Any] = Field(sa_type=JSON)
