"""The bounds on JSON bodies against an oracle: the body parsed."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import json_bounds
from service.json_bounds import check_json
from service.problems import BodyTooLargeError, MalformedBodyError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='"\\[]{},:ab', max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(alphabet='"\\[{,a', max_size=3), inner, max_size=6),
    max_leaves=40,
)  # fmt: skip


def depth(value: Any) -> int:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0)
    return 0


def memory_bytes(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    own = json_bounds.BYTES_OF_AN_OBJECT if isinstance(value, dict) else json_bounds.BYTES_OF_A_LIST
    return own + json_bounds.BYTES_OF_A_VALUE * max(0, len(inner) - 1) + sum(map(memory_bytes, inner))


@given(VALUES, st.integers(1, 6), st.integers(0, 3_000), st.sampled_from([1, 2, 5, 17, 500_000]), st.booleans())
def test_text_counts_for_nothing_and_structure_for_all(
    value: Any, deepest: int, most: int, window: int, escaped: bool
) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bounds, "DEEPEST_NESTING", deepest)
        patch.setattr(json_bounds, "WINDOW_BYTES", window)
        patch.setattr(json_bounds, "SMALL_BYTES", 0)
        too_deep, too_many = depth(value) > deepest, memory_bytes(value) > most
        if too_many:
            with pytest.raises((BodyTooLargeError, MalformedBodyError)):
                check_json(body, most)
        elif too_deep:
            with pytest.raises(MalformedBodyError):
                check_json(body, most)
        else:
            check_json(body, most)


@given(st.binary(max_size=60) | st.text(alphabet='"\\[]{},:', max_size=60).map(str.encode))
def test_anything_is_judged(body: bytes) -> None:
    with contextlib.suppress(BodyTooLargeError, MalformedBodyError):
        check_json(body, 1_000)
