"""GET /v1/api-prices."""

import datetime as dt
from typing import Literal

from service.wire.quantities import Answer, Usd


class ApiPriceOut(Answer):
    """Prices of one model at one seller, base tier; null where the seller lists none.

    valid_from: the day it holds from, null where no source says; seen_on: the day by which the source had it. ends: a day,
    ``deprecated``, ``retired``, or null.
    """

    id: str
    provider: str
    model: str
    usd_per_million_input_tokens: Usd
    usd_per_million_output_tokens: Usd | None
    usd_per_million_cached_tokens: Usd | None
    valid_from: dt.date | None
    seen_on: dt.date
    ends: str | None
    confidence: Literal["high", "medium", "low"]
    source: str
    notes: str
