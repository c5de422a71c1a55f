"""Writes the client of examples/ from the OpenAPI document: a typed dictionary a schema, a method a route.

    python -m tests.client.generate

A generator of its own, because what is to be shipped is one file that needs httpx alone (docs/decisions/0004).
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from service.main import create_app
from service.settings import Settings

CLIENT = Path(__file__).resolve().parents[2] / "examples" / "clusterwright_client.py"
PREAMBLE = Path(__file__).with_name("preamble.txt")
REFERENCE = "#/components/schemas/"
WIDTH = 116
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def client_text(document: Mapping[str, Any]) -> str:
    """The whole file. Raises ValueError for names that Python cannot have, and for two models of one name."""
    schemas = document["components"]["schemas"]
    crowded = sorted(name for name in schemas if "__" in name)
    if crowded:
        raise ValueError(f"models of one name in two modules: {', '.join(crowded)}; give them names of their own")
    methods = [
        line
        for path, item in document["paths"].items()
        for method, route in item.items()
        for line in method_lines(method, path, route)
    ]
    models = [line for name in sorted(schemas) for line in model_lines(name, schemas[name])]
    head = PREAMBLE.read_text(encoding="utf-8").rstrip("\n")
    return "\n".join([head, "", *methods[:-1], *models, ""])


def model_lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A schema with fields as a typed dictionary; what may be left out is NotRequired."""
    yield from ("", "", f"class {python_name(name)}(TypedDict):")
    about = schema.get("description", "")
    properties = schema.get("properties", {})
    if about:
        yield from docstring(about, "    ")
    elif not properties:
        yield '    """Without fields."""'
    required = set(schema.get("required", ()))
    for field, inner in properties.items():
        if not field.isidentifier():
            raise ValueError(f"{name}.{field} is no name in Python")
        kind = type_text(inner)
        yield f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}"
        if inner.get("description"):
            yield from docstring(inner["description"], "    ")


def method_lines(method: str, path: str, route: Mapping[str, Any]) -> Iterator[str]:
    """A route as a method: what its address needs and its body by place, all else by name."""
    parameters = route.get("parameters", ())
    places = [p for p in parameters if p["in"] == "path"]
    queries, headers = ([p for p in parameters if p["in"] == kind] for kind in ("query", "header"))
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    arguments = ["self", *(f"{argument(p)}: str" for p in places)]
    if body is not None:
        arguments.append(f"body: {type_text(body)}")
    named = sorted([*queries, *headers], key=lambda p: not p["required"])
    if named:
        arguments += ["*", *(named_argument(p) for p in named)]
    yield f"    def {route_name(method, path, route)}("
    yield from (f"        {one}," for one in arguments)
    answer = answer_type(route)
    yield f"    ) -> {answer}:"
    yield from docstring(f"``{method.upper()} {path}``. {route['summary']}", "        ")
    address = re.sub(r"\{(\w+)\}", r"{quote(\1, safe='')}", path)
    yield "        answer = self.call("
    yield f'            "{method.upper()}",'
    yield f'            {"f" if places else ""}"{address}",'
    if body is not None:
        yield "            body=body,"
    for kind, given in (("query", queries), ("headers", headers)):
        if given:
            entries = ", ".join(f'"{p["name"]}": {argument(p)}' for p in given)
            yield f"            {kind}={{{entries}}},"
    yield "        )"
    yield f'        return cast("{answer}", answer)' if answer != "Any" else "        return answer"
    yield ""


def route_name(method: str, path: str, route: Mapping[str, Any]) -> str:
    """The name of the function that serves the route.

    >>> route_name("get", "/v1/jobs/{job_id}", {"operationId": "get_job_v1_jobs__job_id__get"})
    'get_job'
    """
    return str(route["operationId"]).removesuffix(re.sub(r"\W", "_", path) + "_" + method)


def answer_type(route: Mapping[str, Any]) -> str:
    """Of every answer that is no error; bytes for files, None where there is nothing to say."""
    kinds: dict[str, None] = {}
    for status, answer in route["responses"].items():
        if status >= "300":
            continue
        for media, content in answer.get("content", {}).items():
            schema = content.get("schema", {})
            kinds[(type_text(schema) if schema else "Any") if media == "application/json" else "bytes"] = None
        if not answer.get("content"):
            kinds["None" if status == "204" else "bytes"] = None
    return "Any" if "Any" in kinds else " | ".join(kinds)


def argument(parameter: Mapping[str, Any]) -> str:
    """
    >>> argument({"name": "Idempotency-Key"})
    'idempotency_key'
    """
    return str(parameter["name"]).lower().replace("-", "_")


def named_argument(parameter: Mapping[str, Any]) -> str:
    kind = "str" if parameter["in"] == "header" else type_text(parameter["schema"])
    if parameter["required"]:
        return f"{argument(parameter)}: {kind}"
    return f"{argument(parameter)}: {kind if kind.endswith('None') else f'{kind} | None'} = None"


def type_text(schema: Mapping[str, Any]) -> str:
    """A schema as an annotation.

    >>> type_text({"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]})
    'list[float] | None'
    >>> type_text({"enum": ["spot", "on_demand"]})
    'Literal["spot", "on_demand"]'
    """
    if "$ref" in schema:
        return python_name(schema["$ref"].removeprefix(REFERENCE))
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        kinds = dict.fromkeys(type_text(one) for one in several)
        return "Any" if "Any" in kinds else " | ".join(sorted(kinds, key=lambda kind: kind == "None"))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(repr(v).replace(chr(39), chr(34)) for v in values)}]"
    if schema.get("type") == "array":
        return f"list[{type_text(schema.get('items', {}))}]"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties", True)
        return f"dict[str, {type_text(inner) if isinstance(inner, Mapping) else 'Any'}]"
    return PLAIN.get(schema.get("type", ""), "Any")


def python_name(schema: str) -> str:
    """
    >>> python_name("Page_DeviceOut_"), python_name("RecommendationIn-Input")
    ('PageDeviceOut', 'RecommendationInInput')
    """
    return re.sub(r"\W|_", "", schema)


def docstring(text: str, indent: str) -> Iterator[str]:
    """Reflowed; what would end or escape the string is taken out of the way."""
    words = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    words = words[:-1] + '\\"' if words.endswith('"') else words
    lines = textwrap.wrap(words, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    lines[0] = '"""' + lines[0]
    if len(lines) == 1 and len(lines[0]) + len(indent) + 3 <= WIDTH:
        yield f'{indent}{lines[0]}"""'
        return
    yield from (indent + line for line in lines)
    yield f'{indent}"""'


if __name__ == "__main__":
    CLIENT.write_text(client_text(create_app(Settings()).openapi()), encoding="utf-8")
