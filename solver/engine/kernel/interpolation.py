"""Tables read between their columns, for many rows at once: what screening does most.

One pass over what takes numpy a dozen, with the same operations on every value in the same order.
"""

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel.columns import column
from solver.engine.kernel.compiled import COMPILED, entry
from solver.engine.kernel.records import Column

Matrix = NDArray[np.float64]


def interpolated(table: Matrix, grid: NDArray[np.float64], at: Matrix) -> Matrix:
    """Rows of ``table`` (N, G) on an ascending ``grid`` (G,) read at ``at`` (N, K), linearly between its points and as the nearest end
    beyond them.

    >>> interpolated(np.array([[0.0, 10.0, 30.0]]), np.array([1.0, 2.0, 4.0]), np.array([[0.5, 1.5, 3.0, 9.0]])).tolist()
    [[0.0, 5.0, 20.0, 30.0]]
    """
    clipped = np.clip(at, grid[0], grid[-1])
    if COMPILED:
        found = np.empty_like(clipped)
        read(column(table), column(grid), column(clipped), found)
        return found
    right = np.clip(np.searchsorted(grid, clipped), 1, len(grid) - 1)
    left = right - 1
    weight = (clipped - grid[left]) / (grid[right] - grid[left])
    low = np.take_along_axis(table, left, axis=1)
    return np.asarray(low + weight * (np.take_along_axis(table, right, axis=1) - low))


@entry
def read(table: Column, grid: Column, at: Column, found: Column) -> None:
    """Fill in ``found``. at: within the grid. Of one row each is looked for from where the one before was."""
    last = len(grid) - 1
    for row in range(at.shape[0]):
        right = 1
        for place in range(at.shape[1]):
            value = at[row, place]
            while right < last and grid[right] < value:
                right += 1
            while right > 1 and grid[right - 1] >= value:
                right -= 1
            weight = (value - grid[right - 1]) / (grid[right] - grid[right - 1])
            low = table[row, right - 1]
            found[row, place] = low + weight * (table[row, right] - low)
