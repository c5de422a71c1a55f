"""One price as some list states it, before it is matched with what is stored."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from service.problems import FieldError, InvalidFieldsError

PART = re.compile(r"^[A-Za-z0-9][A-Za-z0-9.\-_]{0,79}$")
"""As in the id of an offer."""
SIX_PLACES = Decimal("0.000001")
MOST_USD_PER_HOUR = Decimal(10_000_000)


@dataclass(frozen=True, slots=True)
class Quote:
    """USD per node-hour of an instance type in a region under a commitment."""

    provider: str
    instance: str
    region: str
    commitment: str
    usd_per_hour: Decimal

    @property
    def offer(self) -> str:
        return f"{self.provider}:{self.instance}:{self.region}:{self.commitment}"

    @property
    def is_well_formed(self) -> bool:
        """Whether its parts can be the id of an offer (zones such as ``eu (frankfurt)`` cannot)."""
        return all(PART.match(part) for part in (self.provider, self.instance, self.region))


def quoted_price(value: object) -> Decimal | None:
    """A price above zero with six decimal places; None for what lists put where there is none (empty, 0, N/A, NaN).

    >>> quoted_price("4.0495899999"), quoted_price(""), quoted_price("0"), quoted_price("nan"), quoted_price(-1)
    (Decimal('4.049590'), None, None, None, None)
    """
    try:
        price = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    if not price.is_finite() or price <= 0 or price > MOST_USD_PER_HOUR:
        return None
    rounded = price.quantize(SIX_PLACES)
    return rounded if rounded > 0 else None


def unreadable(detail: str) -> InvalidFieldsError:
    """The payload is not what it was said or seemed to be."""
    return InvalidFieldsError([FieldError(detail, pointer="/payload")])


def cheapest(quotes: list[Quote]) -> list[Quote]:
    """One quote per offer: lists quote each zone of a region, and a renter chooses the zone."""
    best: dict[str, Quote] = {}
    for quote in quotes:
        known = best.get(quote.offer)
        if known is None or quote.usd_per_hour < known.usd_per_hour:
            best[quote.offer] = quote
    return list(best.values())
