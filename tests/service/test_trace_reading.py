"""Files of recorded requests: every shape is read, everything wrong is answered with its line."""

import json
import time
from itertools import repeat
from pathlib import Path

import pytest

from service.traces import reading
from service.traces.reading import RecordedTrace, read_trace
from service.traces.trace_error import TraceError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
FIRST = {"timestamp": 5, "input_length": 40, "output_length": 4, "hash_ids": [1, 2, 3]}


def fixture(name: str) -> RecordedTrace:
    return read_trace((FIXTURES / name).read_bytes().splitlines(keepends=True))


def lines_of(*rows: object) -> list[bytes]:
    return [(row if isinstance(row, str) else json.dumps(row)).encode() for row in rows]


def test_timestamps_in_milliseconds_and_blocks_of_512() -> None:
    read = fixture("blocks.jsonl")
    assert read.shape.name == "mooncake"
    assert read.trace.arrival_s.tolist() == [0, 0.25, 0.25, 4, 9]
    assert read.trace.prompt_tokens.tolist() == [1300, 1024, 700, 1800, 90]
    assert read.trace.output_tokens.sum() == 312
    assert read.trace.blocks.tokens == 512
    assert read.trace.blocks.ids.tolist() == [0, 1, 0, 1, 3, 0, 1, 5]  # full ones
    assert read.trace.blocks.starts.tolist() == [0, 2, 4, 5, 8, 8]


def test_a_log_with_sessions_and_requests_without_a_reply() -> None:
    read = fixture("log.csv")
    assert read.shape.name == "burstgpt"
    assert read.trace.arrival_s.tolist() == [0, 7.5, 28]
    assert read.trace.sessions.tolist() == [0, 0, -1]
    assert read.lines.tolist() == [2, 4, 5]
    assert [(left.lines, left.first_line) for left in read.left] == [(1, 3)]
    assert read.trace.blocks is None


@pytest.mark.parametrize(("name", "prompts"), [("lengths.jsonl", [250, 410]), ("counts.csv", [128, 256])])
def test_lengths_alone(name: str, prompts: list[int]) -> None:
    read = fixture(name)
    assert (read.shape.name, read.trace.arrival_s) == ("lengths", None)
    assert read.trace.prompt_tokens.tolist() == prompts


def test_chats_state_seconds() -> None:
    rows = [FIRST | {"chat_id": 1, "timestamp": t} for t in (0.0, 2.5)]
    assert read_trace(lines_of(*rows), 16).trace.arrival_s.tolist() == [0, 2.5]
    with pytest.raises(TraceError, match=r"line 1: .*how many tokens a block has"):
        read_trace(lines_of(*rows))


def test_hashes_of_any_kind() -> None:
    hashes = ["ab", 2**64 - 1, -5, 10**30]
    row = FIRST | {"input_length": 64, "hash_ids": hashes}
    ids = read_trace(lines_of(row, row), 16).trace.blocks.ids.tolist()
    assert ids[:4] == ids[4:]
    assert ids[1:3] == [-1, -5]
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no request"),
        (["", "  "], "holds no request"),
        ([{"prompt": "hello", "output_len": 4}], "line 1: `prompt` is text and a prompt's tokens are not stated: .*tokenizer"),
        ([{"conversations": []}], "line 1: `conversations` is text"),
        ([{"input_length": 4}], "line 1: states no count of a reply's tokens"),
        (["a,b", "1,2"], "line 1: states no count"),
        (["[{}, {}]"], "line 1: is a JSON array"),
        ([{"timestamp": 1, "prompt_len": 4, "output_len": 4}], "line 1: .*seconds or milliseconds"),
        ([FIRST, "{"], "line 2: is not a JSON object"),
        ([FIRST, "[" * 100_000], "line 2: is not a JSON object"),
        ([FIRST, "7"], "line 2: is not a JSON object"),
        ([FIRST, "", FIRST | {"timestamp": 4}], "line 3: `timestamp` goes back behind line 1"),
        ([FIRST, {"timestamp": 6, "output_length": 4}], "line 2: `input_length` is missing"),
        ([FIRST | {"input_length": -1}], "line 1: `input_length` is -1; it goes from 0"),
        ([FIRST | {"input_length": 10**9}], "line 1: `input_length` is 1000000000"),
        ([FIRST | {"input_length": True}], "line 1: `input_length` is not a whole number"),
        ([FIRST | {"input_length": 1.5}], "line 1: `input_length` is not a whole number"),
        ([FIRST | {"input_length": "many"}], "line 1: `input_length` is 'many'"),
        ([FIRST | {"timestamp": float("nan")}], "line 1: `timestamp` is not a number"),
        ([FIRST | {"timestamp": -1}], "line 1: `timestamp` is -1"),
        ([FIRST | {"timestamp": None}], "line 1: `timestamp` is missing"),
        ([FIRST | {"timestamp": 10**400}], "line 1: `timestamp` is not a number"),
        ([FIRST | {"hash_ids": [1, 2, 3, 4]}], "line 1: `hash_ids` lists 4 blocks; a prompt of 40 tokens has 3 of 16"),
        ([FIRST | {"hash_ids": [1, 1]}], "line 1: `hash_ids` lists a block twice"),
        ([FIRST | {"hash_ids": [1, 1.5]}], "line 1: `hash_ids` holds what is neither"),
        ([FIRST | {"hash_ids": 7}], "line 1: `hash_ids` is missing or no list"),
        ([FIRST | {"session_id": {}}], "line 1: `session_id` is no short text"),
        ([FIRST | {"output_length": 0}], "holds no request with a prompt and a reply"),
        (["Timestamp,Request tokens,Response tokens", "1,2"], "line 2: has 2 columns, the heading 3"),
        (["Timestamp,Request tokens,Response tokens", "1,2,x"], "line 2: `Response tokens` is 'x'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(rows: list[object], said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read_trace(lines_of(*rows), 16)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(TraceError, match="line 1: is not UTF-8"):
        read_trace([b"\xff\xfe{\x00"])


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TraceError, match="line 1: is longer than"):
        read_trace([b" " * (reading.MOST_LINE_BYTES + 1)])
    monkeypatch.setattr(reading, "MOST_BLOCKS", 5)
    with pytest.raises(TraceError, match="line 3: a trace has at most 5 blocks"):
        read_trace(repeat(lines_of(FIRST)[0]), 16)
    monkeypatch.setattr(reading, "MOST_BYTES", 1_000)
    with pytest.raises(TraceError, match="at most 1,000 bytes"):
        read_trace(repeat(b'{"input_length": 1, "output_length": 1}'))


def test_ten_million_lines_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_REQUESTS", 10_000)
    since = time.process_time()
    with pytest.raises(TraceError, match="line 10002: a trace has at most 10,000 requests"):
        read_trace(repeat(b'{"input_length": 1, "output_length": 1}', 10_000_000))
    assert time.process_time() - since < 5
