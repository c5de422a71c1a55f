"""Tables read between their columns, compiled and not, against numpy row by row."""

import numpy as np
import pytest

from solver.engine.kernel import interpolation
from solver.engine.kernel.interpolation import interpolated
from tests.seeds import cases


@pytest.mark.parametrize("seed", range(cases(40)))
@pytest.mark.parametrize("is_compiled", [True, False])
def test_reads_as_numpy_does(seed: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_compiled:
        monkeypatch.setattr(interpolation, "COMPILED", False)
    rng = np.random.default_rng(seed)
    grid = np.unique(rng.integers(1, 300, size=int(rng.integers(2, 30)))).astype(float)
    if len(grid) < 2:
        grid = np.array([1.0, 2.0])
    table = rng.uniform(0.0, 5.0, (int(rng.integers(1, 6)), len(grid)))
    at = rng.uniform(-10.0, 320.0, (len(table), int(rng.integers(1, 25))))
    if seed % 2:
        at = np.sort(at, axis=1)  # as screening asks, mostly
    at[rng.random(at.shape) < 0.3] = rng.choice(grid)
    expected = np.stack([np.interp(row, grid, values) for row, values in zip(at, table, strict=True)])
    np.testing.assert_allclose(interpolated(table, grid, at), expected, rtol=1e-12)


def test_compiled_and_not_are_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    grid = np.unique(np.round(np.geomspace(1.0, 16384.0, 29)))
    table, at = rng.uniform(0.0, 1.0, (50, len(grid))), rng.uniform(0.0, 20_000.0, (50, 22))
    compiled = interpolated(table, grid, at)
    monkeypatch.setattr(interpolation, "COMPILED", False)
    assert np.array_equal(compiled, interpolated(table, grid, at))
