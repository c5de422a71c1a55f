"""Stored training plans: immutable, with everything needed to replay them."""

import datetime as dt
from decimal import Decimal
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import Usd, UtcInstant


class TrainingPlanTable(SQLModel, table=True):
    __tablename__ = "training_plan"

    id: str = Field(primary_key=True, max_length=60)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    outcome: str = Field(max_length=20)
    jobs: list[dict[str, Any]] = Field(sa_type=JSON)
    """Names, models and methods: lists need not read whole requests."""
    usd: Decimal | None = Field(default=None, sa_type=Usd)
    price_as_of: dt.datetime = Field(sa_type=UtcInstant)
    catalog_digest: str = Field(max_length=64)
    training_digest: str = Field(max_length=64)
    version: str = Field(max_length=40)
    request: dict[str, Any] = Field(sa_type=JSON)
    result: dict[str, Any] = Field(sa_type=JSON)
