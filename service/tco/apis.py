"""What an API costs: prices of the request's own, or those of the catalog for a model it names."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from catalog.read_api_prices import ApiPriceRow, sellers_of
from service.api_prices.stored import api_prices
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.tco.defaults import Default, Origin
from service.wire.tco import ApiIn
from solver.tco.figures import Figure, exactly
from solver.tco.tokens import TokenDemand

INPUT, CACHED, OUTPUT = (f"api_usd_per_million_{kind}_tokens" for kind in ("input", "cached", "output"))


@dataclass(frozen=True, slots=True)
class ApiTerms:
    """figures: of the cost model. defaults: those that are the catalog's. seller: ``provider/model``, where one was named."""

    figures: dict[str, Figure]
    defaults: dict[str, Default]
    notes: tuple[str, ...]
    seller: str | None


def api_terms(asked: ApiIn, demand: TokenDemand, day: dt.date, pointer: str) -> ApiTerms:
    """Raises InvalidFieldsError for a model nobody lists, or lists with a price for replies."""
    notes: list[str] = []
    row = None if asked.model is None else _seller(asked.model, demand, day, pointer, notes)
    stated = {
        INPUT: asked.usd_per_million_input_tokens,
        OUTPUT: asked.usd_per_million_output_tokens,
        CACHED: asked.usd_per_million_cached_tokens,
    }
    defaults: dict[str, Default] = {}
    if row is not None:
        listed = {
            INPUT: row.usd_per_million_input_tokens,
            OUTPUT: row.usd_per_million_output_tokens,
            CACHED: row.usd_per_million_cached_tokens,
        }
        origin = _origin(row)
        for name, usd in listed.items():
            if stated[name] is None and usd is not None:
                defaults[name] = Default(exactly(float(usd)), "USD per million tokens", (origin,), row.id)
    table = {name: exactly(float(usd)) for name, usd in stated.items() if usd is not None}
    table |= {name: default.figure for name, default in defaults.items()}
    if CACHED not in table:
        table[CACHED] = table[INPUT]
        notes.append("no price of cached input is stated: it costs as much as other input")
    return ApiTerms(table, defaults, tuple(notes), None if row is None else row.id)


def _seller(name: str, demand: TokenDemand, day: dt.date, pointer: str, notes: list[str]) -> ApiPriceRow:
    prices = api_prices()
    found = sellers_of(prices, name)
    if not found:
        raise InvalidFieldsError([FieldError(unknown_name("model", name, prices.rows), pointer=pointer)])
    open_still = [row for row in found if row.serves_on(day) and row.usd_per_million_output_tokens is not None]
    if not open_still:
        ended = ", ".join(f"{row.id} ({row.ends or 'no price of replies'})" for row in found[:3])
        raise InvalidFieldsError([FieldError(f"nobody serves {name!r} any more: {ended}", pointer=pointer)])
    paid = [row for row in open_still if usd_per_request(row, demand) > 0] or open_still
    row = min(paid, key=lambda row: (usd_per_request(row, demand), row.id))
    if len(paid) > 1:
        dearest = max(usd_per_request(other, demand) for other in paid) / usd_per_request(row, demand)
        notes.append(
            f"{len(paid)} sellers list {name}; {row.id} is the cheapest for these requests, the dearest costs "
            f"{dearest:.1f} times as much; name one as provider/model"
        )
    if row.valid_from is None:
        notes.append(f"the price of {row.id} was seen by {row.seen_on}; since when it holds is not known")
    if row.ends is not None:
        when = f"on {row.ends}" if isinstance(row.ends, dt.date) else "some day: it is deprecated"
        notes.append(f"{row.id} ends {when}")
    if row.notes:
        notes.append(f"{row.id}: {row.notes}")
    return row


def usd_per_request(row: ApiPriceRow, demand: TokenDemand) -> Decimal:
    """A mean request's price, in millionths of a dollar; cached input at its own price where there is one."""
    fresh = Decimal(repr(demand.input_tokens * (1.0 - demand.cached_fraction)))
    cached = Decimal(repr(demand.input_tokens * demand.cached_fraction))
    listed = row.usd_per_million_cached_tokens
    replies = Decimal(repr(demand.output_tokens)) * (row.usd_per_million_output_tokens or Decimal(0))
    usual = row.usd_per_million_input_tokens
    return fresh * usual + cached * (usual if listed is None else listed) + replies


def _origin(row: ApiPriceRow) -> Origin:
    source = api_prices().sources[row.source]
    day = (row.valid_from or row.seen_on).isoformat()
    return Origin(f"{source}; {row.page}" if row.page else source, day, "data_set")
