"""GET /v1/api-prices."""

from typing import Annotated

from fastapi import APIRouter, Query

from catalog.read_api_prices import ApiPriceRow
from service.access import Reader
from service.api_prices.stored import api_prices
from service.guarded_route import GuardedRoute
from service.paging import Limit, Next, cut_page, last_id
from service.wire.api_prices import ApiPriceOut
from service.wire.pages import Page

router = APIRouter(prefix="/v1/api-prices", tags=["catalog"], route_class=GuardedRoute)
Name = Annotated[str | None, Query(max_length=200)]


@router.get(
    "",
    summary="What sellers of tokens ask, by seller and model; `model` matches any part of a name, however it is punctuated",
)
def get_api_prices(
    _caller: Reader, limit: Limit = 100, after: Next = None, provider: Name = None, model: Name = None
) -> Page[ApiPriceOut]:
    start = last_id("next", after) or ""
    rows = sorted(
        (
            row
            for row in api_prices().rows.values()
            if (provider is None or row.provider.lower() == provider.lower())
            and (model is None or _letters(model) in _letters(row.model))
        ),
        key=lambda row: row.id,
    )
    page, cursor = cut_page([row for row in rows if row.id > start][: limit + 1], limit)
    return Page(items=[present_api_price(row) for row in page], next=cursor, total=len(rows))


def _letters(name: str) -> str:
    """Letters and digits alone: sellers spell one model "Llama 3.1 70B" and "llama-3.1-70b-instruct"."""
    return "".join(character for character in name.lower() if character.isalnum())


def present_api_price(row: ApiPriceRow) -> ApiPriceOut:
    """As on the wire, its source spelled out."""
    source = api_prices().sources[row.source]
    return ApiPriceOut(
        id=row.id,
        provider=row.provider,
        model=row.model,
        usd_per_million_input_tokens=row.usd_per_million_input_tokens,
        usd_per_million_output_tokens=row.usd_per_million_output_tokens,
        usd_per_million_cached_tokens=row.usd_per_million_cached_tokens,
        valid_from=row.valid_from,
        seen_on=row.seen_on,
        ends=None if row.ends is None else str(row.ends),
        confidence=row.confidence,
        source=f"{source}; {row.page}" if row.page else source,
        notes=row.notes,
    )
