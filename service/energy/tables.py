"""Electricity: tariff and carbon intensity by place."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class EnergyTable(SQLModel, table=True):
    __tablename__ = "energy"

    region: str = Field(primary_key=True, max_length=120)
    row: dict[str, Any] = Field(sa_type=JSON)
