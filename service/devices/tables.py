"""Accelerators. What lists are filtered by is a column; the whole sourced row, in datasheet units, is a document."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class DeviceTable(SQLModel, table=True):
    __tablename__ = "device"

    id: str = Field(primary_key=True, max_length=120)
    vendor: str = Field(max_length=120, index=True)
    family: str = Field(max_length=120)
    category: str = Field(max_length=40)
    status: str = Field(max_length=20)
    device_class: str | None = Field(default=None, max_length=20)
    row: dict[str, Any] = Field(sa_type=JSON)
