"""Sellers of machine hours: what they are, and which of their regions name a place."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class ProviderTable(SQLModel, table=True):
    __tablename__ = "provider"

    id: str = Field(primary_key=True, max_length=120)
    provider_class: str = Field(max_length=20)
    row: dict[str, Any] = Field(sa_type=JSON)
