"""What a JSON body will take in memory and how deep it is, known from its brackets and commas before it is parsed.

Three bytes, ``[],``, become sixty-four in memory: a body within its limit of bytes could keep half a gigabyte.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

from service.problems import BodyTooLargeError, MalformedBodyError

DEEPEST_NESTING = 100
MOST_BRACKETS_BEFORE_VALUES = 200_000
"""Millions of brackets take a while to follow, and are too many values in any case."""
SMALL_BYTES = 2_000
"""A body of so few bytes cannot hold many values; only its depth matters."""
BYTES_OF_AN_OBJECT = 250
BYTES_OF_A_LIST = 100
BYTES_OF_A_VALUE = 40
"""Of CPython's containers with their first entries, and of a number with its place."""
MEMORY_PER_BODY_BYTE = 6
"""Memory that values may take, by the largest body in bytes: an array of numbers takes four, tables of records less."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_STEP = [1 if byte in b"[{" else -1 for byte in range(256)]
_WHOLE = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""As many values and whole texts as there are."""
WINDOW_BYTES = 500_000
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_json(body: bytes, most_memory_bytes: int) -> None:
    """Raises MalformedBodyError for a body that is nested too deeply, BodyTooLargeError for one of too many values.

    It says nothing of whether the body is JSON.

    >>> check_json(b'{"a": [1, 2], "b": "[[[["}', 10_000)
    """
    openings = body.count(b"[") + body.count(b"{")
    if openings <= DEEPEST_NESTING and (len(body) <= SMALL_BYTES or _memory_bytes(body) <= most_memory_bytes):
        return
    memory_bytes, kept = 0, []
    for structure in _structures(body):
        memory_bytes += _memory_bytes(structure)
        kept.append(structure.translate(None, _NO_BRACKETS))
        if memory_bytes > most_memory_bytes:
            break
    brackets = b"".join(kept)
    is_deep = _is_deeper(brackets[:MOST_BRACKETS_BEFORE_VALUES], DEEPEST_NESTING)
    if not is_deep and memory_bytes > most_memory_bytes:
        raise BodyTooLargeError(
            f"the body holds too many values: they would take more than {most_memory_bytes // 1_000_000} MB; send it in parts"
        )
    if is_deep or _is_deeper(brackets, DEEPEST_NESTING):
        raise MalformedBodyError(f"the body is nested deeper than {DEEPEST_NESTING} levels")


def _structures(body: bytes) -> Iterator[bytes]:
    """What is not text, a window at a time: substitution holds every piece between two matches."""
    position = 0
    while position < len(body):
        whole = _WHOLE.match(body, position, position + WINDOW_BYTES)
        end = whole.end() if whole is not None else position
        if end == position:  # a text that is longer than the window
            text = _TEXT.match(body, position)
            position = text.end() if text is not None else len(body)
            continue
        yield _TEXT.sub(b"", body[position:end])
        position = end


def _memory_bytes(structure: bytes) -> int:
    return (
        BYTES_OF_AN_OBJECT * structure.count(b"{")
        + BYTES_OF_A_LIST * structure.count(b"[")
        + BYTES_OF_A_VALUE * structure.count(b",")
    )


def _is_deeper(brackets: bytes, most: int) -> bool:
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > most
