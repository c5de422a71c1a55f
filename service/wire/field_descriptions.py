"""What fields are called what: the descriptions of /openapi.json (``fields.toml``)."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def descriptions() -> dict[str, Any]:
    """By name of a field; and by name of a model, where its fields mean something narrower."""
    return tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))


def describe_fields(model: type, schema: dict[str, Any]) -> None:
    """Says of every property what its name means, before what the docstring under the field adds."""
    everywhere = descriptions()
    own: dict[str, str] = {}
    for base in reversed(model.__mro__):
        own |= everywhere.get(base.__name__, {}) or everywhere.get(f"{base.__module__}.{base.__name__}", {})
    for name, about in schema.get("properties", {}).items():
        general, particular = own.get(name, everywhere.get(name)), about.get("description")
        if isinstance(general, str) and not str(particular).startswith(general):
            about["description"] = f"{general} {particular}" if particular else general
