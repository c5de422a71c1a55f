"""Which list is this?"""

import csv
import json
from typing import Any

from service.prices_import.csv_lists import (
    GPUHUNT_COLUMNS,
    OWN_COLUMNS,
    OWN_OFFER_COLUMNS,
    SKYPILOT_COLUMNS,
    columns_of,
    read_gpuhunt,
    read_own,
    read_skypilot,
)
from service.prices_import.json_lists import is_karpenter, is_vantage, read_karpenter, read_vantage
from service.prices_import.quote import Quote, cheapest, unreadable
from service.problems import FieldError, InvalidFieldsError
from service.wire.prices_import import ListFormat

COLUMNS: tuple[tuple[ListFormat, frozenset[str]], ...] = (
    ("own", OWN_COLUMNS),
    ("own", OWN_OFFER_COLUMNS),
    ("skypilot", SKYPILOT_COLUMNS),
    ("gpuhunt", GPUHUNT_COLUMNS),
)
IN_CSV: frozenset[ListFormat] = frozenset(("own", "skypilot", "gpuhunt"))


def recognised(payload: Any, stated: ListFormat) -> tuple[ListFormat, Any]:
    """The format, and the payload as that format's reader takes it. Raises InvalidFieldsError."""
    body = _decoded(payload)
    if stated != "auto":
        return stated, body
    if isinstance(body, str):
        columns = columns_of(body)
        for name, needed in COLUMNS:
            if needed <= columns:
                return name, body
        raise unreadable(
            "no known price list: CSV of SkyPilot, gpuhunt or your own columns; JSON of Karpenter or Vantage"
        )
    if is_vantage(body):
        return "vantage", body
    if is_karpenter(body):
        return "karpenter", body
    raise unreadable(
        "no known price list in JSON: neither Karpenter's table of regions nor Vantage's list of instances"
    )


def read_quotes(payload: Any, stated: ListFormat, provider: str | None) -> tuple[ListFormat, list[Quote]]:
    """Every priced line, the cheapest zone of each region. Raises InvalidFieldsError."""
    try:
        name, body = recognised(payload, stated)
        if isinstance(body, str) != (name in IN_CSV):
            raise unreadable(f"a list of {name} is {'JSON' if isinstance(body, str) else 'CSV'}")
        return name, cheapest(_read(name, body, provider))
    except csv.Error as error:
        raise unreadable(f"not CSV: {error}") from None


def _read(name: ListFormat, body: Any, provider: str | None) -> list[Quote]:
    if name == "own":
        return read_own(body)
    if name == "gpuhunt" and "provider" in columns_of(body):
        return read_gpuhunt(body, provider or "")
    if provider is None:
        raise InvalidFieldsError(
            [FieldError(f"a list of {name} does not say whose prices they are", pointer="/provider")]
        )
    if name == "skypilot":
        return read_skypilot(body, provider)
    if name == "gpuhunt":
        return read_gpuhunt(body, provider)
    return read_karpenter(body, provider) if name == "karpenter" else read_vantage(body, provider)


def _decoded(payload: Any) -> Any:
    """Text that is JSON counts as JSON."""
    if isinstance(payload, str) and payload.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise unreadable(f"not JSON: {error}") from None
    return payload
