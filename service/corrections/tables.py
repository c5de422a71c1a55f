"""Correction sets, immutable and numbered; what uploaded results leave unexplained; what waits for a new set."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class CorrectionSetTable(SQLModel, table=True):
    __tablename__ = "correction_set"

    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    made_at: dt.datetime = Field(sa_type=UtcInstant)
    origin: str = Field(max_length=20)
    """catalog: a whole set from the catalog's files. uploads: the cells that changed since the set before."""
    content: dict[str, Any] = Field(sa_type=JSON)


class BenchmarkResidualTable(SQLModel, table=True):
    """ln(measured / predicted) of an uploaded run by metric, predicted with the catalog release set ``base`` and no factors."""

    __tablename__ = "benchmark_residual"

    benchmark_id: str = Field(primary_key=True, foreign_key="benchmark.id", max_length=40)
    base: int = Field(primary_key=True)
    cell: str = Field(max_length=400, index=True)
    residuals: dict[str, float] = Field(sa_type=JSON)


class ChangedCellTable(SQLModel, table=True):
    """A note that a configuration's accepted results changed, until its factors are made anew.

    One note a change, not one a configuration: uploads to one configuration must not wait for each other.
    """

    __tablename__ = "changed_cell"

    id: str = Field(primary_key=True, max_length=100)
    cell: str = Field(max_length=400)
