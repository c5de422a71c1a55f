"""Machines bought or committed in different months: when each batch starts and ends."""

import numpy as np

from solver.tco.figures import Array


def starts(needed: Array, life_months: int) -> Array:
    """Units to start in each month so that those alive never fall short of ``needed`` (draws × months).

    A unit started in month t is alive for ``life_months`` months, t included.

    >>> starts(np.array([[2.0, 2.0, 3.0, 3.0]]), 3).tolist()
    [[2.0, 0.0, 1.0, 2.0]]
    """
    months = needed.shape[-1]
    started = np.zeros_like(needed)
    alive = np.zeros(needed.shape[:-1])
    for month in range(months):
        if month >= life_months:
            alive = alive - started[..., month - life_months]
        started[..., month] = np.maximum(0.0, needed[..., month] - alive)
        alive = alive + started[..., month]
    return started


def alive_sum(started: Array, life_months: int) -> Array:
    """Sum over the units alive in each month of a value fixed when they started.

    >>> alive_sum(np.array([[2.0, 0.0, 1.0, 2.0]]), 3).tolist()
    [[2.0, 2.0, 3.0, 3.0]]
    """
    total = np.cumsum(started, axis=-1)
    if started.shape[-1] > life_months:
        total[..., life_months:] -= np.cumsum(started, axis=-1)[..., :-life_months]
    return np.asarray(total)
