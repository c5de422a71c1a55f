"""Constants of the performance model: efficiencies, overheads and power figures, each with its source."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class ConstantTable(SQLModel, table=True):
    __tablename__ = "constant"

    name: str = Field(primary_key=True, max_length=120)
    family: str = Field(primary_key=True, max_length=120)
    device: str = Field(primary_key=True, max_length=120)
    engine: str = Field(primary_key=True, max_length=120)
    llms: str = Field(primary_key=True, max_length=1000)
    """The models it is of, a blank between them; ``*``: of every model."""
    row: dict[str, Any] = Field(sa_type=JSON)
