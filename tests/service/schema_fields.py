"""Fields of a request as paths of names, from its JSON schema and from a body."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel


def fields_of(model: type[BaseModel]) -> set[str]:
    """Every field that holds no further ones: of all forms that a field may have, entries of lists without their numbers.

    >>> from service.wire.deployment import PrecisionIn
    >>> sorted(fields_of(PrecisionIn))
    ['kv_cache', 'weights']
    """
    schema = model.model_json_schema()
    return set(_of_schema(schema, schema.get("$defs", {})))


def _of_schema(schema: Mapping[str, Any], defined: Mapping[str, Any], here: str = "") -> Iterator[str]:
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    forms = schema.get("anyOf") or schema.get("oneOf") or ()
    objects = [list(_of_schema(form, defined, here)) for form in forms]
    deeper = {path for paths in objects for path in paths if path != here}
    if "properties" in schema:
        for name, field in schema["properties"].items():
            yield from _of_schema(field, defined, f"{here}.{name}".lstrip("."))
    elif "items" in schema:
        yield from _of_schema(schema["items"], defined, here)
    elif deeper:
        yield from deeper
    else:
        yield here


def stated_in(body: Any, known: set[str], here: str = "") -> Iterator[str]:
    """Fields that a body states, as far as the schema knows them."""
    if here in known:
        yield here
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from stated_in(value, known, f"{here}.{name}".lstrip("."))
    elif isinstance(body, list):
        for value in body:
            yield from stated_in(value, known, here)
