"""Reading an uploaded file in a process of its own (``service.sandboxed_reading``)."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.benchmarks.document import looks_like_yaml
from service.benchmarks.importers import importers, read_payload
from service.benchmarks.reading import Reading
from service.benchmarks.reading_error import ReadingError
from service.problems import FieldError, InvalidFieldsError
from service.sandboxed_reading import ReadingApart, is_small

MOST_RUNS = 1_000
"""Runs of one imported file."""

_READINGS = TypeAdapter(list[Reading])
importers()  # by the clean process, once


def readings_of(payload: Any, tool: str, apart: ReadingApart) -> list[Reading]:
    """The runs in ``payload``. Raises InvalidFieldsError for anything wrong with it, UnavailableError when busy.

    YAML is always read apart: its parser is in C.
    """
    if is_small(payload) and not (isinstance(payload, str) and looks_like_yaml(payload)):
        return _readings(payload, tool)
    return _READINGS.validate_python(apart.read("service.benchmarks.sandboxed:read", {"tool": tool}, payload))


def read(options: Mapping[str, Any], payload: Any) -> Any:
    """In the file's own process."""
    return _READINGS.dump_python(_readings(payload, str(options["tool"])), mode="json")


def _readings(payload: Any, tool: str) -> list[Reading]:
    try:
        readings = read_payload(payload, tool)
        if len(readings) > MOST_RUNS:
            raise ReadingError("/payload", f"holds {len(readings)} runs; the most is {MOST_RUNS}")
    except ReadingError as error:
        raise InvalidFieldsError([FieldError(error.message, pointer=error.pointer)]) from None
    except ValidationError as error:
        raise refused_fields(error) from None
    except ValueError as error:
        raise InvalidFieldsError([FieldError(str(error)[:500], pointer="/payload")]) from None
    return readings


def refused_fields(error: ValidationError) -> InvalidFieldsError:
    """What a tool's file says that a run cannot have."""
    return InvalidFieldsError(
        FieldError(f"{'.'.join(map(str, e['loc']))}: {e['msg']}", pointer="/payload") for e in error.errors()[:50]
    )
