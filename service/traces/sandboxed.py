"""Reading a trace in a process of its own (``service.sandboxed_reading``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from service.problems import FieldError, InvalidFieldsError
from service.sandboxed_reading import ReadingApart, is_small
from service.traces.present import describe
from service.traces.reading import read_trace
from service.traces.trace_error import TraceError
from service.wire.traces import TraceDescription, TraceIn


def description_of(asked: TraceIn, apart: ReadingApart) -> TraceDescription:
    """Raises InvalidFieldsError for anything wrong with the file, UnavailableError when busy."""
    options = {"block_tokens": asked.block_tokens}
    if is_small(asked.payload):
        return _described(options, asked.payload)
    return TraceDescription.model_validate(apart.read("service.traces.sandboxed:read", options, asked.payload))


def read(options: Mapping[str, Any], payload: Any) -> Any:
    """In the file's own process."""
    return _described(options, payload).model_dump(mode="json")


def _described(options: Mapping[str, Any], payload: str) -> TraceDescription:
    try:
        return describe(read_trace(_lines(payload), options["block_tokens"]))
    except TraceError as error:
        raise InvalidFieldsError([FieldError(str(error), pointer="/payload")]) from None


def _lines(text: str) -> Iterator[bytes]:
    """One at a time: a list of all would hold the file once more."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end + 1
        yield text[start:end].encode("utf-8", "surrogatepass")
        start = end
