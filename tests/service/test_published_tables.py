"""Tables of published runs: each source and device once, and black boxes that never see what they are asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.published_floor import BOXES, Sample, blind, left_out, neighbours, ridge
from tests.bench.published_matrix import Figure, each_once


def test_a_long_table_does_not_outweigh_a_short_one() -> None:
    exact, half = Figure(False, 1.0, True), Figure(False, 2.0, False)
    assert each_once([[exact] * 99, [half], [half]], first=False) == ["50", "2.00", "0.33"]
    assert each_once([[exact]], first=True) == ["–", "–", "–"]


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=12))
def test_ridge_without_strength_is_least_squares_and_with_much_the_mean(values: list[float]) -> None:
    x = np.arange(len(values), dtype=float)[:, None] - (len(values) - 1) / 2
    seen = Sample(x, np.array(values), np.arange(len(values)))
    line = np.polyval(np.polyfit(x[:, 0], seen.values, 1), x[:, 0])
    assert ridge(seen, x, 1e-9) == pytest.approx(line, abs=1e-6)
    assert ridge(seen, x, 1e12) == pytest.approx(np.full(len(values), np.mean(values)), abs=1e-6)


def test_the_nearest_run_is_its_own_neighbour() -> None:
    seen = Sample(np.array([[0.0], [1.0], [5.0]]), np.array([10.0, 20.0, 30.0]), np.array(["a", "b", "c"]))
    assert list(neighbours(seen, np.array([[0.1], [4.0]]), 1.0)) == [10.0, 30.0]
    assert list(neighbours(seen, np.array([[0.1]]), 3.0)) == [20.0]


@pytest.mark.parametrize("name", BOXES)
def test_what_a_group_is_told_does_not_depend_on_what_it_measured(name: str) -> None:
    guess, settings = BOXES[name]
    rng = np.random.default_rng(20261125)
    sample = Sample(rng.normal(size=(12, 3)), rng.normal(size=12), np.repeat(["a", "b", "c", "d"], 3))
    moved = sample._replace(values=np.where(sample.group == "b", 99.0, sample.values))
    own = sample.group == "b"
    assert (left_out(sample, guess, settings[0])[own] == left_out(moved, guess, settings[0])[own]).all()
    assert (blind(sample, guess, settings)[own] == blind(moved, guess, settings)[own]).all()
    assert not (blind(sample, guess, settings)[~own] == blind(moved, guess, settings)[~own]).any()
