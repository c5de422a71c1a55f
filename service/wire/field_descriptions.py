"""What fields are called what: the descriptions of /openapi.json (``fields.toml``, and docstrings under fields).

Docstrings are read when somebody asks for the document. Pydantic's own way of reading them, at the definition of every model, was a
fifth of the time to import the service.
"""

import ast
import inspect
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel


@cache
def descriptions() -> dict[str, Any]:
    """By name of a field; and by name of a model, where its fields mean something narrower."""
    return tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))


@cache
def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """By name of a field: the docstring under it, in the model or one that it extends."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("service."):
            found |= _own_docstrings(base)
    return found


def _own_docstrings(model: type[BaseModel]) -> dict[str, str]:
    defined = _classes(model.__module__).get(model.__name__)
    if defined is None:  # a generic model with its types filled in, whose source is that of another
        return {}
    found: dict[str, str] = {}
    for field, below in pairwise(defined.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """By name: a file is read once, not for each of its classes."""
    return {
        one.name: one for one in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(one, ast.ClassDef)
    }


def describe_fields(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Says of every property what its name means, before what the docstring under the field adds."""
    everywhere = descriptions()
    below = docstrings(model)
    for name, field in model.model_fields.items():
        about = schema.get("properties", {}).get(field.alias or name)
        if about is not None and name in below:
            about.setdefault("description", below[name])
    own: dict[str, str] = {}
    for base in reversed(model.__mro__):
        own |= everywhere.get(base.__name__, {}) or everywhere.get(f"{base.__module__}.{base.__name__}", {})
    for name, about in schema.get("properties", {}).items():
        general, particular = own.get(name, everywhere.get(name)), about.get("description")
        if isinstance(general, str) and not str(particular).startswith(general):
            about["description"] = f"{general} {particular}" if particular else general
