"""How many earlier entries are greater: the count that stack distances rest on."""

import numpy as np
import numpy.typing as npt

from solver.traces.trace import Counts


def earlier_greater(ranks: Counts) -> Counts:
    """For each entry of a permutation of 0 … n − 1, how many entries before it are greater. O(n log n), array by array.

    From the highest bit down, entries that agree in all higher bits lie together in their first order, as in a wavelet
    tree (Grossi, Gupta, Vitter 2003). One with a 0 is passed by those before it with a 1; then zeros go before ones.

    >>> earlier_greater(np.array([2, 0, 3, 1])).tolist()
    [0, 1, 0, 2]
    """
    count = len(ranks)
    values: npt.NDArray[np.signedinteger] = ranks.astype(np.int32 if count < 2**31 else np.int64)
    passed = np.zeros(count, dtype=values.dtype)
    places = np.arange(count, dtype=values.dtype)
    for bit in reversed(range(max(count - 1, 0).bit_length())):
        ones = (values >> bit) & 1
        before = np.cumsum(ones, dtype=values.dtype) - ones
        starts = (values >> (bit + 1)) << (bit + 1)  # a group of values is a group of places: they are a permutation
        before -= before[starts]
        passed += np.where(ones == 1, 0, before)
        place = np.where(ones == 1, starts + (1 << bit) + before, places - before)
        values, passed = _placed(values, place), _placed(passed, place)
    answer = np.empty(count, dtype=np.int64)
    answer[:] = passed[ranks]  # sorted by value now
    return answer


def _placed(
    values: npt.NDArray[np.signedinteger], place: npt.NDArray[np.signedinteger]
) -> npt.NDArray[np.signedinteger]:
    moved = np.empty_like(values)
    moved[place] = values
    return moved
