"""Order statistics without sorting: those that sorting gives, to the last bit."""

import numpy as np
import pytest

from solver.engine.kernel import selection
from solver.engine.kernel.selection import ordered_at
from solver.replay.latencies import percentiles
from solver.workload import PERCENTILES


def rows(kind: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Times of several shapes: spread, alike, few different ones, mostly none, over many orders of magnitude."""
    shapes = (
        rng.lognormal(-3.0, 1.0, (3, count)),
        0.03 + 1e-12 * rng.random((3, count)),
        rng.integers(0, 4, (3, count)).astype(float),
        rng.random((3, count)) * (rng.random((3, count)) < 0.1),
        10.0 ** rng.uniform(-300.0, 300.0, (3, count)),
    )
    return shapes[kind]


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("count", [1, 2, 7, 850, 5_100])
def test_are_those_of_sorted_values(kind: int, count: int) -> None:
    rng = np.random.default_rng(10_000 * kind + count)
    for asked in (1, 8, 40):
        values, ranks = rows(kind, rng, count), np.sort(rng.integers(0, count, asked))
        assert ordered_at(values, ranks).tolist() == np.sort(values, axis=1)[:, ranks].tolist()


def test_rows_with_gaps_between_them_and_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    values, ranks = np.random.default_rng(5).random((4, 90))[:, 30:], np.array([0, 30, 59])
    compiled = ordered_at(values, ranks).tolist()
    monkeypatch.setattr(selection, "COMPILED", False)
    assert ordered_at(values, ranks).tolist() == compiled == np.sort(values, axis=1)[:, ranks].tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 21, 850])
def test_percentiles_are_linear_between_neighbours(count: int) -> None:
    values = np.random.default_rng(count).lognormal(size=(2, count))
    found = percentiles(values)
    assert found[:, 0].tolist() == values.mean(axis=1).tolist()
    for name, column in zip(PERCENTILES[1:], found[:, 1:].T, strict=True):
        assert column == pytest.approx(np.percentile(values, float(name[1:]), axis=1), rel=1e-12)
