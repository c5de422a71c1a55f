"""Traffic divided over replicas: what is kept of one division is not another's."""

import numpy as np

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
    found = {balance_load(LOAD, replicas)[0] for replicas in ([2, 1, 1], [1, 2, 1], [1, 1, 2])}
    found |= {balance_load(LOAD * factor, [2, 1, 1])[0] for factor in (2.0, 3.0)}
    found |= {balance_load(LOAD[:, ::-1], [2, 1, 1])[0]}
    assert len(found) == 6
    least = balance_load(LOAD, [2, 1, 1])[0]
    assert balance_load(LOAD * 2.0, [4, 2, 2])[0] == np.float64(least)
