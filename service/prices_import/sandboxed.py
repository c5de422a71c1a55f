"""Reading a price list in a process of its own (``service.sandboxed_reading``)."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from service.prices_import.quote import Quote
from service.prices_import.recognise import read_quotes
from service.sandboxed_reading import ReadingApart, is_small
from service.wire.prices_import import ListFormat

_QUOTES = TypeAdapter(list[Quote])


def quotes_of(
    payload: Any, stated: ListFormat, provider: str | None, apart: ReadingApart
) -> tuple[ListFormat, list[Quote]]:
    """The list's format and quotes. Raises InvalidFieldsError for anything wrong with it, UnavailableError when busy."""
    if is_small(payload):
        return read_quotes(payload, stated, provider)
    name, quotes = apart.read("service.prices_import.sandboxed:read", {"format": stated, "provider": provider}, payload)
    return name, _QUOTES.validate_python(quotes)


def read(options: Mapping[str, Any], payload: Any) -> Any:
    """In the list's own process."""
    name, quotes = read_quotes(payload, options["format"], options["provider"])
    return [name, _QUOTES.dump_python(quotes, mode="json")]
