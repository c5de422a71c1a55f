"""Examples of /openapi.json: one working body for each route that takes one (``examples.json``, by model).

What a body's example has in a field is that field's example too, so that none is stated that was not tried.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

REFERENCE = "#/components/schemas/"


@cache
def examples() -> dict[str, Any]:
    """Bodies by the name of their model."""
    read: dict[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    return read


def add_examples(document: dict[str, Any]) -> None:
    """Put each body's example beside its schema, and its values beside the fields."""
    schemas = document["components"]["schemas"]
    for item in document["paths"].values():
        for route in item.values():
            media = route.get("requestBody", {}).get("content", {}).get("application/json")
            if media is None:
                continue
            name = media["schema"].get("$ref", "").removeprefix(REFERENCE)
            if name in examples():
                media["example"] = examples()[name]
                _note(media["schema"], examples()[name], schemas)


def _note(schema: dict[str, Any], value: Any, schemas: Mapping[str, Any]) -> None:
    """Walk a value with its schema; every field that holds a plain value, or a list of them, gets it as an example."""
    found = _meant(schema, value, schemas)
    if isinstance(value, list):
        for one in value:
            _note(found.get("items", {}), one, schemas)
    elif isinstance(value, dict):
        for name, inner in value.items():
            about = found.get("properties", {}).get(name)
            if about is None:
                continue
            if not _holds_objects(inner):
                about.setdefault("examples", [inner])
            _note(about, inner, schemas)


def _meant(schema: dict[str, Any], value: Any, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schema behind references and, of several, the one whose fields (or items) the value has."""
    if "$ref" in schema:
        return _meant(schemas[schema["$ref"].removeprefix(REFERENCE)], value, schemas)
    several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if several is None:
        return schema
    for one in several:
        found = _meant(one, value, schemas)
        if isinstance(value, dict) and value.keys() <= found.get("properties", {}).keys():
            return found
        if isinstance(value, list) and found.get("type") == "array":
            return found
    return schema


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(_holds_objects(one) for one in value))
