"""The shapes of cost rows: ranges with their source, operator classes, currency codes.

Units are the trade's own (USD per kWh, USD per kW-month, kW per device) and stand in every name.
"""

import datetime as dt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from catalog.rows import Row

CostChecked = Literal["read", "data_set", "derived", "mixed", "memory", "assumption", "measured"]
"""As for other rows; ``mixed``: parts of the range were read and parts are defaults, the source says which."""

PricePoint = Literal["low", "typical", "high"]
Subject = Annotated[str, Field(pattern=r"^(\*|[a-z0-9][a-z0-9.\-_]*)(:[a-z0-9][a-z0-9.\-_]*)?$")]
FigureName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class CostFigureRow(Row):
    """One cost input as a range. ``subject`` says whose it is: a device, a region, an operator class, ``*`` for all."""

    name: FigureName
    subject: Subject
    devices: int | None = Field(default=None, ge=1)
    """How many devices the figure covers, where it is for a whole server, rack or system."""
    low: float = Field(ge=-1, allow_inf_nan=False)
    typical: float = Field(ge=-1, allow_inf_nan=False)
    high: float = Field(ge=-1, allow_inf_nan=False)
    unit: str = Field(min_length=1)
    as_of: str = Field(pattern=r"^\d{4}(-(\d{2}(-\d{2})?|H[12]|\d{4}))?$")
    source: str = Field(min_length=3)
    retrieved_on: dt.date
    checked: CostChecked
    notes: str = ""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.typical <= self.high:
            raise ValueError(f"low {self.low:g}, typical {self.typical:g}, high {self.high:g} are not in order")
        if self.low < 0 and not self.name.endswith("_change_fraction_per_year"):
            raise ValueError(f"{self.low:g} is negative; only a change of price may be")
        return self


class OperatorRow(Row):
    """A class of owner: which end of a range it pays and which subjects of shared figures are its own."""

    id: FigureName
    name: str
    purchase_price_point: PricePoint
    pays_oem_margin: bool
    cost_of_capital: str
    colocation: str
    power_usage_effectiveness: str
    staff: Literal["small", "large"]
    network: Literal["small_cluster", "large_cluster"]
    maintenance_price_point: PricePoint
    notes: str = ""


class CurrencyRows(Row):
    """The currency codes a request may name."""

    source: str = Field(min_length=3)
    retrieved_on: dt.date
    checked: CostChecked
    codes: list[Annotated[str, Field(pattern=r"^[A-Z]{3}$")]]
