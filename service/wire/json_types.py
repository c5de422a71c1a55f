"""Values of a request have the JSON type that its schema says: ``true`` is no number, ``"5"`` and 1 are not what they look like.

Pydantic's strict mode as a whole would also refuse arrays for tuples, texts for enumerations and 1000.0 for an integer, which JSON
does not tell from 1000.
"""

from collections.abc import Callable
from typing import Any, cast

from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema


def with_json_types(schema: CoreSchema, model: type | None = None) -> CoreSchema:
    """A schema whose numbers, truth values and time stamps are read of their own JSON type only: of ``model``, not of models inside,
    which see to theirs, nor of keys of objects, which are texts in any case.

    >>> from pydantic import TypeAdapter
    >>> from pydantic_core import SchemaValidator
    >>> typed = with_json_types(TypeAdapter(dict[int, tuple[float, ...]]).core_schema)
    >>> SchemaValidator(typed).validate_python({"1": [1, 2.5]})
    {1: (1.0, 2.5)}
    """
    return cast(CoreSchema, _typed(cast(dict[str, Any], schema), model))


def _is_integer(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise PydanticKnownError("int_type")
    return value


def _is_time(value: Any) -> Any:
    """Seconds since 1970 would be read as well, as a number or as its text."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value
    except OverflowError:  # a number all the same
        pass
    raise PydanticCustomError("time_text", "this must be a text such as 2026-11-21 or 2026-11-21T00:00:00Z")


_CHECKS: dict[str, Callable[[Any], Any]] = {"int": _is_integer, "datetime": _is_time, "date": _is_time}
_HOLD_SCHEMAS = frozenset({"schema", "fields", "items_schema", "values_schema", "choices", "steps"})


def _typed(schema: dict[str, Any], model: type | None) -> dict[str, Any]:
    kind = schema["type"]
    if kind in ("float", "bool"):
        return schema | {"strict": True}
    if kind in _CHECKS:
        return dict(core_schema.no_info_before_validator_function(_CHECKS[kind], cast(CoreSchema, schema)))
    is_done = kind == "function-before" and schema["function"]["function"] in _CHECKS.values()
    if is_done or (kind == "model" and schema["cls"] is not model):
        return schema
    return {key: _inside(value, model) if key in _HOLD_SCHEMAS else value for key, value in schema.items()}


def _inside(value: Any, model: type | None) -> Any:
    """The same of a schema, or of several in a list or by name."""
    if isinstance(value, list):
        return [_inside(one, model) for one in value]
    if isinstance(value, tuple):  # a choice of a union with its label
        return tuple(_inside(one, model) for one in value)
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("type"), str):
        return _typed(value, model)
    return {name: _inside(one, model) for name, one in value.items()}
