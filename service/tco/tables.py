"""Stored comparisons: immutable, with the request and all inputs echoed in the result."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class ComparisonTable(SQLModel, table=True):
    __tablename__ = "tco_comparison"

    id: str = Field(primary_key=True, max_length=60)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    price_as_of: dt.datetime = Field(sa_type=UtcInstant)
    catalog_digest: str = Field(max_length=64)
    cost_catalog_digest: str = Field(max_length=64)
    version: str = Field(max_length=40)
    request: dict[str, Any] = Field(sa_type=JSON)
    result: dict[str, Any] = Field(sa_type=JSON)
