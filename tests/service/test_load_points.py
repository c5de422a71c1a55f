"""Loads of accepted runs as relatives are told of them."""

import pytest

from service.corrections.load_points import load_of, load_points

CLOSED = {"kind": "closed", "concurrency": 8}
OUTPUT = {"distribution": "fixed", "tokens": 64}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ({"distribution": "fixed", "tokens": 512}, (4.0, 512.0, 64.0)),
        ({"distribution": "uniform", "low": 100, "high": 300}, (4.0, 200.0, 64.0)),
        ({"distribution": "mean", "mean": 243.5}, (4.0, 243.5, 64.0)),
        ({"distribution": "fixed", "tokens": 0}, None),
        ({"distribution": "mean", "mean": 0.0}, None),
        (None, None),
    ],
)
def test_every_kind_of_lengths_that_tools_write_is_read(
    prompt: dict[str, object] | None, expected: tuple[float, float, float] | None
) -> None:
    assert load_of(CLOSED, {"prompt_tokens": prompt, "output_tokens": OUTPUT}, {"data_parallel": 2}) == expected


def test_open_loads_have_none() -> None:
    assert load_of({"kind": "open"}, {"prompt_tokens": {"distribution": "fixed", "tokens": 8}}, {}) is None


def test_points_kept_before_replies_were_say_nothing_by_load() -> None:
    kept = [[8.0, 512.0, 3, {"power": 0.1}], [8.0, 512.0, 64.0, 3, {"power": 0.1}]]
    (known,) = load_points(kept)
    assert (known.clients, known.prompt_tokens, known.output_tokens, known.runs) == (8.0, 512.0, 64.0, 3)
