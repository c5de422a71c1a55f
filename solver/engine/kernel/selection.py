"""Order statistics of many values without sorting them all: what percentiles of a run are made of.

Positive floating-point numbers are in the order of their bits read as whole numbers. So values are counted by their leading bits,
which says in which bucket each place in the order lies, and only what is in those buckets is sorted.
"""

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel.compiled import COMPILED, entry
from solver.engine.kernel.records import Column

BUCKETS = 2048


def ordered_at(values: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """(rows, ranks): of each row of values (none negative), those that sorting would put at these places. ranks: ascending.

    >>> ordered_at(np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 4.0]]), np.array([0, 2])).tolist()
    [[1.0, 3.0], [4.0, 5.0]]
    """
    if not COMPILED:
        return np.asarray(np.sort(values, axis=1)[:, ranks])
    bits = np.ascontiguousarray(values).view(np.int64)
    found = np.empty((len(bits), len(ranks)), dtype=np.int64)
    counts, places, kept = (
        np.empty(BUCKETS, dtype=np.int64),
        np.empty_like(ranks),
        np.empty(bits.shape[1] + 1, dtype=np.int64),
    )
    for row, of_row in zip(bits, found, strict=True):
        count = near(row, ranks, counts, places, kept)
        of_row[:] = np.sort(kept[:count])[places]
    return found.view(np.float64)


@entry
def near(bits: Column, ranks: Column, counts: Column, places: Column, kept: Column) -> int:
    """Put the values that share a bucket with one of those asked for into ``kept``, and into ``places`` where those asked for are in
    the order of these. Returns how many there are.

    counts: room for BUCKETS. kept: for all values and one more, which is not one of those.
    """
    least, most = bits[0], bits[0]
    for value in bits:
        least = min(least, value)
        most = max(most, value)
    shift = 0
    while (most - least) >> shift >= BUCKETS:
        shift += 1
    for bucket in range(len(counts)):
        counts[bucket] = 0
    for value in bits:
        counts[(value - least) >> shift] += 1
    before = left_out = place = 0
    for bucket in range(BUCKETS):
        after = before + counts[bucket]
        counts[bucket] = 0
        while place < len(ranks) and ranks[place] < after:
            counts[bucket] = 1
            places[place] = ranks[place] - left_out
            place += 1
        if not counts[bucket]:
            left_out += after - before
        before = after
    found = 0
    for value in bits:
        kept[found] = value
        found += counts[(value - least) >> shift]
    return found
