"""Stored fleets over time."""

from decimal import Decimal
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field

from service.answers.tables import StoredAnswer
from service.database import Usd


class FleetTable(StoredAnswer, table=True):
    __tablename__ = "fleet"

    months: int
    workloads: list[dict[str, Any]] = Field(sa_type=JSON)
    """Names and models: lists need not read whole requests."""
    usd: Decimal | None = Field(default=None, sa_type=Usd)
