"""Stored recommendations."""

from decimal import Decimal

from sqlmodel import Field

from service.answers.tables import StoredAnswer
from service.database import Usd


class RecommendationTable(StoredAnswer, table=True):
    __tablename__ = "recommendation"

    objective: str = Field(max_length=20)
    usd_per_hour: Decimal | None = Field(default=None, sa_type=Usd)
