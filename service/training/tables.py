"""Stored training plans: immutable, with everything needed to replay them."""

from decimal import Decimal
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field

from service.answers.tables import StoredAnswer
from service.database import Usd


class TrainingPlanTable(StoredAnswer, table=True):
    __tablename__ = "training_plan"

    jobs: list[dict[str, Any]] = Field(sa_type=JSON)
    """Names, models and methods: lists need not read whole requests."""
    usd: Decimal | None = Field(default=None, sa_type=Usd)
    training_digest: str = Field(max_length=64)
