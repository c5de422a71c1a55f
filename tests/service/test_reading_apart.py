"""A file is read in a process that may die; whatever becomes of it, the asking process goes on and says what was wrong."""

from pathlib import Path

import pytest

from service.problems import InvalidFieldsError
from service.sandboxed_reading import ReadingApart

HERE = "tests.service.readers_that_fail"


@pytest.fixture
def apart() -> ReadingApart:
    return ReadingApart(time_limit_s=2.0, memory_limit_bytes=100_000_000)


@pytest.mark.parametrize(
    ("reader", "said"), [("dies", "ended the process"), ("never_ends", "takes longer than 2 s"),
                         ("takes_memory", "takes more than 100 MB")]
)  # fmt: skip
def test_a_reader_that_fails_is_a_refusal(apart: ReadingApart, reader: str, said: str) -> None:
    with pytest.raises(InvalidFieldsError, match=said) as refused:
        apart.read(f"{HERE}:{reader}", {}, "a file")
    assert refused.value.field_errors[0].pointer == "/payload"
    assert apart.read(f"{HERE}:counts", {}, "a file") == 6


def test_a_reader_writes_no_file(apart: ReadingApart, tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldsError):
        apart.read(f"{HERE}:writes", {}, str(tmp_path / "left"))
    assert not (tmp_path / "left").exists() or (tmp_path / "left").read_text() == ""


@pytest.mark.parametrize(
    "payload", ["x" * 16_000_000, [0.25] * 1_500_000, "\ud800"], ids=["text", "numbers", "surrogate"]
)
def test_the_largest_body_comes_across(payload: str | list[float]) -> None:
    apart = ReadingApart(time_limit_s=30.0, memory_limit_bytes=100_000_000)
    assert apart.read(f"{HERE}:counts", {}, payload) == len(payload)
