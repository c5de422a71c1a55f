"""A file of recorded requests into arrays: JSONL or CSV, one line at a time.

A line is checked as it comes and kept as numbers in arrays; nothing of the file itself is kept.
"""

import csv
import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.traces.shapes import Shape, shape_of
from service.traces.trace_error import TraceError
from solver.traces.trace import Blocks, Counts, Trace

MOST_BYTES = 256_000_000
MOST_REQUESTS = 1_000_000
MOST_LINE_BYTES = 1_000_000
MOST_BLOCKS = 8_000_000
MOST_TOKENS = 10_000_000
"""Of a prompt or a reply: as on the wire."""
MOST_SECONDS = 1e10
"""Seconds since 1970 fit in, milliseconds since then do not."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Left:
    """Lines that are not requests to plan for."""

    why: str
    lines: int
    first_line: int


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTrace:
    """A trace with the shape it was read in, each request's line, and what was left out."""

    trace: Trace
    shape: Shape
    lines: Counts
    left: tuple[Left, ...]


def read_trace(lines: Iterable[bytes], block_tokens: int | None = None) -> RecordedTrace:
    """The requests of a file. Raises TraceError for what is no trace, with the line.

    block_tokens: of one entry of ``hash_ids``, where its shape does not say.
    """
    kept: _Kept | None = None
    for number, row in _rows(_bounded(lines)):
        if kept is None:
            kept = _Kept(shape_of(row.keys(), number, block_tokens))
        kept.take(row, number)
    if kept is None:
        raise TraceError("holds no request")
    return kept.recorded()


def _bounded(lines: Iterable[bytes]) -> Iterator[bytes]:
    total = 0
    for number, line in enumerate(lines, 1):
        total += len(line)
        if len(line) > MOST_LINE_BYTES:
            raise TraceError(f"is longer than {MOST_LINE_BYTES:,} bytes", number)
        if total > MOST_BYTES:
            raise TraceError(f"a trace has at most {MOST_BYTES:,} bytes; this one goes on", number)
        if number > MOST_REQUESTS + 1:
            raise TraceError(f"a trace has at most {MOST_REQUESTS:,} requests; this one goes on", number)
        yield line


def _rows(lines: Iterator[bytes]) -> Iterator[tuple[int, Row]]:
    """Objects of JSONL, or rows of CSV by their heading."""
    for number, line in enumerate(lines, 1):
        text = _text(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, number)
        if not text.strip():
            continue
        if text.lstrip()[0] == "[":
            raise TraceError("is a JSON array; a trace has one object a line (jq -c '.[]' writes them)", number)
        if text.lstrip()[0] == "{":
            yield number, _object(text, number)
            yield from ((n, _object(_text(more, n), n)) for n, more in enumerate(lines, number + 1) if more.strip())
            return
        yield from _csv_rows(_cells(text, number), lines, number)
        return


def _csv_rows(names: list[str], lines: Iterator[bytes], heading: int) -> Iterator[tuple[int, Row]]:
    names = [name.strip() for name in names]
    shape_of(names, heading, 1)  # a file that is no trace at all is refused by its heading
    for number, line in enumerate(lines, heading + 1):
        if not line.strip():
            continue
        cells = _cells(_text(line, number), number)
        if len(cells) != len(names):
            raise TraceError(f"has {len(cells)} columns, the heading {len(names)}", number)
        yield number, dict(zip(names, cells, strict=True))


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise TraceError("is not UTF-8", number) from None


def _cells(text: str, number: int) -> list[str]:
    try:
        return next(csv.reader([text]))
    except (csv.Error, StopIteration):
        raise TraceError("is neither a JSON object nor CSV", number) from None


def _object(text: str, number: int) -> Row:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        raise TraceError("is not a JSON object", number) from None
    if not isinstance(row, dict):
        raise TraceError("is not a JSON object", number)
    return row


@dataclass(slots=True)
class _Kept:
    shape: Shape
    prompts: "array[int]" = field(default_factory=lambda: array("q"))
    outputs: "array[int]" = field(default_factory=lambda: array("q"))
    arrivals: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    sessions: "array[int]" = field(default_factory=lambda: array("q"))
    ids: "array[int]" = field(default_factory=lambda: array("q"))
    starts: "array[int]" = field(default_factory=lambda: array("q", [0]))
    names: dict[str, int] = field(default_factory=dict)
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
    last_arrival: float = -math.inf
    last_line: int = 0

    def take(self, row: Row, line: int) -> None:
        shape = self.shape
        arrival = None if shape.arrival is None else _seconds(row, shape.arrival, shape.arrival_scale, line)
        if arrival is not None and arrival < self.last_arrival:
            raise TraceError(
                f"`{shape.arrival}` goes back behind line {self.last_line}: lines must be in the order of arrival", line
            )
        prompt = _tokens(row, shape.prompt, line)
        output = _tokens(row, shape.output, line)
        if arrival is not None:
            self.last_arrival, self.last_line = arrival, line
        if prompt == 0 or output == 0:
            self._leave(f"`{shape.prompt if prompt == 0 else shape.output}` is 0", line)
            return
        if shape.hashes is not None:
            self._take_blocks(row, prompt, line)
        if shape.session is not None:
            self.sessions.append(self._session(row, shape.session, line))
        if arrival is not None:
            self.arrivals.append(arrival)
        self.prompts.append(prompt)
        self.outputs.append(output)
        self.lines.append(line)

    def _take_blocks(self, row: Row, prompt: int, line: int) -> None:
        """Full blocks only: engines keep no other."""
        name, size = self.shape.hashes or "", self.shape.block_tokens or 1
        hashes = row.get(name)
        if not isinstance(hashes, list):
            raise TraceError(f"`{name}` is missing or no list", line)
        most = -(-prompt // size)
        if len(hashes) > most:
            raise TraceError(
                f"`{name}` lists {len(hashes)} blocks; a prompt of {prompt} tokens has {most} of {size}: state block_tokens", line
            )  # fmt: skip
        full = hashes[: prompt // size]
        try:
            self.ids.extend(full)
        except (TypeError, OverflowError):
            del self.ids[self.starts[-1] :]  # it may have taken some
            full = [_id_of(block, name, line) for block in full]
            self.ids.extend(full)
        if len(set(full)) < len(full):
            raise TraceError(f"`{name}` lists a block twice; a block's hash is of all that comes before it too", line)
        if len(self.ids) > MOST_BLOCKS:
            raise TraceError(f"a trace has at most {MOST_BLOCKS:,} blocks of prompts; this one goes on", line)
        self.starts.append(len(self.ids))

    def _session(self, row: Row, name: str, line: int) -> int:
        value = row.get(name)
        if value is None or value == "":
            return -1
        if not isinstance(value, str | int) or len(str(value)) > 200:
            raise TraceError(f"`{name}` is no short text and no whole number", line)
        return self.names.setdefault(str(value), len(self.names))

    def _leave(self, why: str, line: int) -> None:
        count, first = self.left.get(why, (0, line))
        self.left[why] = (count + 1, first)

    def recorded(self) -> RecordedTrace:
        if not self.prompts:
            raise TraceError("holds no request with a prompt and a reply")
        arrivals = None
        if self.shape.arrival is not None:
            arrivals = np.array(self.arrivals)
            arrivals -= arrivals[0]
        blocks = None
        if self.shape.hashes is not None:
            blocks = Blocks(self.shape.block_tokens or 1, np.array(self.ids), np.array(self.starts))
        trace = Trace(
            np.array(self.prompts),
            np.array(self.outputs),
            arrivals,
            None if self.shape.session is None else np.array(self.sessions),
            blocks,
        )
        left = tuple(Left(why, count, first) for why, (count, first) in self.left.items())
        return RecordedTrace(trace, self.shape, np.array(self.lines), left)


def _tokens(row: Row, name: str, line: int) -> int:
    """A whole number of tokens; CSV has it as text."""
    value: Any = row.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise TraceError(f"`{name}` is {value[:40]!r}, not a number", line) from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise TraceError(f"`{name}` is {'missing' if value is None else 'not a whole number'}", line)
    if not 0 <= value <= MOST_TOKENS:
        raise TraceError(f"`{name}` is {str(value)[:20]}; it goes from 0 to {MOST_TOKENS:,}", line)
    return value


def _seconds(row: Row, name: str, scale: float, line: int) -> float:
    value = row.get(name)
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise TraceError(f"`{name}` is {'missing' if value is None else 'not a number'}", line)
    if not 0 <= number * scale <= MOST_SECONDS:
        raise TraceError(f"`{name}` is {number:g}; it goes from 0 to {MOST_SECONDS / scale:g}", line)
    return number * scale


def _id_of(block: object, name: str, line: int) -> int:
    """A hash as a signed number of 64 bits: unsigned ones wrap around, text and longer ones are hashed again."""
    if not isinstance(block, str | int) or isinstance(block, bool):
        raise TraceError(f"`{name}` holds what is neither a whole number nor text", line)
    if isinstance(block, int) and -(2**63) <= block < 2**64:
        return block - 2**64 if block >= 2**63 else block
    digest = hashlib.blake2b(str(block).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
