"""Language models' architectures."""

from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class LlmTable(SQLModel, table=True):
    __tablename__ = "llm"

    id: str = Field(primary_key=True, max_length=120)
    family: str = Field(max_length=120)
    origin: str = Field(max_length=10)
    """``catalog``: from the catalog files; ``user``: posted. A new catalog release never overwrites a user's row."""
    row: dict[str, Any] = Field(sa_type=JSON)
