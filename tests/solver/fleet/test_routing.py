"""Traffic divided over replicas: what is kept of one division is not another's."""

import numpy as np
import pytest

from solver.fleet.routing import balance_load

LOAD = np.array([[1.0, 2.0], [2.5, 1.2], [1.5, np.inf]])


def test_who_changes_a_division_changes_nobody_elses() -> None:
    busiest, shares = balance_load(LOAD, [2, 1, 1])
    before = shares.copy()
    shares *= 0.0
    again = balance_load(LOAD.copy(), [2, 1, 1])
    assert again[0] == busiest
    assert np.array_equal(again[1], before)


def test_a_division_is_known_by_every_load_and_number_of_replicas() -> None:
    asked = [(LOAD, counts) for counts in ([2, 1, 1], [1, 2, 1], [1, 1, 2])]
    asked += [(LOAD * 2.0, [2, 1, 1]), (LOAD[:, ::-1], [2, 1, 1]), (LOAD[:2], [2, 1])]
    after_others = [balance_load(*one) for one in asked]
    for (load, counts), (busiest, shares) in zip(asked, after_others, strict=True):
        assert shares.shape == load.shape
        work = np.where(np.isfinite(load), load, 0.0) * shares
        assert work.sum(axis=1) / counts == pytest.approx(busiest)  # all are as busy
        assert shares.sum(axis=0) == pytest.approx(1.0)
        assert shares[~np.isfinite(load)].sum() == 0.0
    assert after_others[3][0] == pytest.approx(2.0 * after_others[0][0])
