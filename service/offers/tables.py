"""Offers and their price steps.

The price at t is the last step with ``valid_from <= t``; a step without a price withdraws the offer. Steps are only
ever appended: a correction is a second step for the same ``valid_from`` with a later ``recorded_at``, so "what did we
believe on 3 May" stays answerable.
"""

import datetime as dt
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Integer, UniqueConstraint
from sqlmodel import Field, SQLModel

from service.database import Usd, UtcInstant


class OfferTable(SQLModel, table=True):
    __tablename__ = "offer"

    id: str = Field(primary_key=True, max_length=300)
    provider: str = Field(max_length=120, index=True)
    instance: str = Field(max_length=120)
    region: str = Field(max_length=120, index=True)
    commitment: str = Field(max_length=40)
    node_id: str = Field(foreign_key="node.id", max_length=120, index=True)
    max_nodes: int | None = None
    notes: str = Field(default="", max_length=2000)
    origin: str = Field(max_length=10)
    provider_class: str | None = Field(default=None, max_length=20)
    """As the provider's row says; None where there is no such row."""
    named_place: bool = Field(default=True)
    """Whether the region says where the machine stands."""


class PriceStepTable(SQLModel, table=True):
    __tablename__ = "price_step"
    __table_args__ = (
        UniqueConstraint("offer_id", "valid_from", "recorded_at"),
        Index("ix_price_step_valid_from", "valid_from"),
    )

    id: int | None = Field(
        default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer(), "sqlite")
    )  # fmt: skip
    offer_id: str = Field(foreign_key="offer.id", max_length=300)
    valid_from: dt.datetime = Field(sa_type=UtcInstant)
    usd_per_hour: Decimal | None = Field(default=None, sa_type=Usd)
    source: str = Field(max_length=2000)
    retrieved_on: dt.date
    confidence: str = Field(max_length=10)
    recorded_at: dt.datetime = Field(sa_type=UtcInstant)
