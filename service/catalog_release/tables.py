"""Which facts the database holds: one row, changed in the same transaction as any catalog write."""

import datetime as dt

from sqlalchemy import CheckConstraint
from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class CatalogReleaseTable(SQLModel, table=True):
    __tablename__ = "catalog_release"
    __table_args__ = (CheckConstraint("id = 1", name="single_row"),)

    id: int = Field(default=1, primary_key=True)
    revision: int
    """Counts catalog writes; caches are keyed by it."""
    digest: str = Field(max_length=64)
    """What is known: the seeded catalog release's digest, chained with every later write."""
    seeded_digest: str = Field(max_length=64)
    """Digest of the catalog files last seeded."""
    changed_at: dt.datetime = Field(sa_type=UtcInstant)
