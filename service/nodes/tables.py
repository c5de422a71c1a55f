"""Machines that can be bought or rented."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class NodeTable(SQLModel, table=True):
    __tablename__ = "node"

    id: str = Field(primary_key=True, max_length=120)
    device_id: str = Field(foreign_key="device.id", max_length=120, index=True)
    devices: int
    kind: str = Field(max_length=40)
    row: dict[str, Any] = Field(sa_type=JSON)
