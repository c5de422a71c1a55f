"""What clients depend on in the OpenAPI document: routes, parameters, bodies, fields and their types.

Wording and the generator's own version are left out. After an intended change write the golden file anew:

    python -m tests.architecture.openapi_outline
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from service.main import create_app
from service.settings import Settings

GOLDEN = Path(__file__).with_name("openapi_outline.json")
METHODS = {"get", "post", "put", "patch", "delete"}


@cache
def openapi() -> dict[str, Any]:
    """The document, derived once: it takes a second, and every application's is the same."""
    return create_app(Settings()).openapi()


def outline() -> dict[str, Any]:
    document = openapi()
    routes = {
        f"{method.upper()} {path}": route_outline(route)
        for path, item in document["paths"].items()
        for method, route in item.items()
        if method in METHODS
    }
    schemas = {name: schema_outline(schema) for name, schema in document["components"]["schemas"].items()}
    return {"routes": dict(sorted(routes.items())), "schemas": dict(sorted(schemas.items()))}


def route_outline(route: dict[str, Any]) -> dict[str, Any]:
    answers = {status: content_type(answer) for status, answer in route["responses"].items() if status < "300"}
    parameters = sorted(f"{p['in']} {p['name']}{'' if p['required'] else '?'}" for p in route.get("parameters", []))
    return {"parameters": parameters, "body": content_type(route.get("requestBody", {})), "answers": answers}


def content_type(part: dict[str, Any]) -> str | None:
    schema = part.get("content", {}).get("application/json", {}).get("schema")
    return None if schema is None else type_text(schema)


def schema_outline(schema: dict[str, Any]) -> dict[str, str] | str:
    if "properties" not in schema:
        return type_text(schema)
    required = set(schema.get("required", []))
    return {
        name + ("" if name in required else "?"): type_text(about)
        for name, about in sorted(schema["properties"].items())
    }


def type_text(schema: dict[str, Any]) -> str:
    """
    >>> type_text({"anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/A"}}, {"type": "null"}]})
    '[A] | null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(type_text(s) for s in schema[several])
    if "enum" in schema:
        return "/".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"[{type_text(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(outline(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
