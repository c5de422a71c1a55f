"""Offers and their prices."""

import datetime as dt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.devices import DeviceClass
from service.wire.providers import ProviderClass
from service.wire.quantities import PART_PATTERN, Answer, Commitment, Instant, Name, Request, Slug, Usd, UsdOrNothingIn

Part = Annotated[str, Field(pattern=PART_PATTERN, max_length=80)]
Source = Annotated[str, Field(min_length=3, max_length=2000)]
Confidence = Literal["high", "medium", "low"]


class PriceIn(Request):
    """A price step: from ``valid_from`` on, a node-hour costs this. Null withdraws the offer from then on, and 0 is what an hour of a
    machine costs that is paid for and stands there anyway."""

    usd_per_hour: UsdOrNothingIn | None
    valid_from: Instant
    source: Source
    confidence: Confidence = "high"
    correction: bool = False
    """True replaces what is stored for the same instant; the earlier belief is kept beside it."""


class OfferIn(Request):
    """Own hardware or an own contract. The id is ``provider:instance:region:commitment``."""

    id: Name | None = None
    provider: Slug
    instance: Part
    region: Part
    commitment: Commitment
    node: Name
    max_nodes: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    notes: Annotated[str, Field(max_length=2000)] = ""
    price: PriceIn | None = None

    @property
    def stored_id(self) -> str:
        return f"{self.provider}:{self.instance}:{self.region}:{self.commitment}"

    @model_validator(mode="after")
    def _id_agrees(self) -> Self:
        if self.id is not None and self.id != self.stored_id:
            raise ValueError(f"the id of this offer is {self.stored_id!r}; leave `id` out or give that")
        return self


class PriceOut(Answer):
    """The step in force. ``age_days``: how long before the instant asked for its source stated it."""

    usd_per_hour: Usd | None
    valid_from: dt.datetime
    source: str
    retrieved_on: dt.date
    confidence: str
    recorded_at: dt.datetime
    age_days: int


class OfferOut(Answer):
    id: str
    provider: str
    provider_class: ProviderClass | None
    """Null for a provider the catalog has no row of."""
    instance: str
    region: str
    named_place: bool
    """Whether the region says where the machine stands: a city, a metropolitan area or a country."""
    commitment: str
    node: str
    device: str
    device_class: DeviceClass | None
    devices: int
    max_nodes: int | None
    notes: str
    origin: str
    price_as_of: dt.datetime
    price: PriceOut | None
    """Null where no price is known at that instant."""
    usd_per_device_hour: Usd | None


class UnpricedOut(Answer):
    """A commitment of ``term_years`` on a machine that is rented, of which no price is known.

    Neither does this say that the provider has none, nor that a plan has weighed it. The lists are of the regions where
    the machine has a price of any kind.
    """

    id: str
    provider: str
    instance: str
    node: str
    device: str
    devices: int
    term_years: int
    detail: str
    regions_without: list[str]
    regions_with: list[str]
    price_as_of: dt.datetime


class PriceStepOut(Answer):
    """A stored price step."""

    offer: str
    usd_per_hour: Usd | None
    valid_from: dt.datetime
    source: str
    retrieved_on: dt.date
    confidence: str
    recorded_at: dt.datetime


class PriceStepsOut(Answer):
    """Every step ever stored for an offer, oldest first."""

    items: list[PriceStepOut]
