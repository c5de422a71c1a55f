"""How many earlier entries are greater: the count that stack distances rest on."""

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int32]


def earlier_greater(ranks: Places) -> Places:
    """For each entry of a permutation of 0 … n − 1, how many entries before it are greater. O(n log n), array by array.

    From the highest bit down, entries that agree in all higher bits lie together in their first order, as in a wavelet
    tree (Grossi, Gupta, Vitter 2003). One with a 0 is passed by those before it with a 1; then zeros go before ones.

    >>> earlier_greater(np.array([2, 0, 3, 1])).tolist()
    [0, 1, 0, 2]
    """
    count = len(ranks)
    values = ranks.astype(np.int32)
    passed = np.zeros(count, dtype=np.int32)
    places = np.arange(count, dtype=np.int32)
    for bit in reversed(range(max(count - 1, 0).bit_length())):
        ones = (values >> bit) & 1
        before = np.cumsum(ones, dtype=np.int32) - ones
        starts = (values >> (bit + 1)) << (bit + 1)  # a group of values is a group of places: they are a permutation
        before -= before[starts]
        is_one = ones.astype(bool)
        passed += np.where(is_one, 0, before)
        place = np.where(is_one, starts + (1 << bit) + before, places - before)
        values, passed = _placed(values, place), _placed(passed, place)
    return passed[ranks]  # sorted by value now


def _placed(values: Places, place: Places) -> Places:
    moved = np.empty_like(values)
    moved[place] = values
    return moved
