"""What a cache of prefixes that forgets the least recently used block hits, at every size at once.

A request finds the longest run of its leading blocks that the cache holds when it arrives. Then all its blocks are used, the
last one first and the first one last, as engines free them: a block is never forgotten after one that continues it. Requests
are taken one at a time; blocks of replies are not counted, and a last block that is not full is never found.
"""

from dataclasses import dataclass

import numpy as np

from solver.errors import InvalidInputError
from solver.traces.earlier_greater import Places, earlier_greater
from solver.traces.trace import Blocks, Counts

MOST_BLOCKS = 2**31 - 8
"""Places are counted in 32 bits, which halves the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Reuse:
    """needed_blocks: for each block that was seen before, the smallest cache that finds it; ascending."""

    block_tokens: int
    blocks: int
    distinct_blocks: int
    needed_blocks: Places

    def hits(self, cache_blocks: int) -> int:
        """Blocks found by a cache of this size: the sizes needed that are not larger. Exact for LRU (Mattson 1970)."""
        return int(np.searchsorted(self.needed_blocks, cache_blocks, side="right"))


def measured_reuse(blocks: Blocks) -> Reuse:
    """The smallest cache that finds each block: its stack distance at its request's arrival, and those of all before it.

    Source: R. L. Mattson et al., Evaluation techniques for storage hierarchies, 1970.

    >>> twice = Blocks(16, np.array([7, 8, 7, 9, 7, 8]), np.array([0, 2, 4, 6]))
    >>> [measured_reuse(twice).hits(size) for size in (0, 1, 2, 3)]
    [0, 2, 2, 3]
    """
    count = len(blocks.ids)
    if count > MOST_BLOCKS:
        raise InvalidInputError(f"a trace of more than {MOST_BLOCKS:,} blocks is not measured at once")
    starts = blocks.starts.astype(np.int32)
    owners = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    backwards = starts[owners] + starts[owners + 1] - 1 - np.arange(count, dtype=np.int32)
    names, ids = _numbered(blocks.ids)
    distances = _stack_distances(ids[backwards], owners, starts)
    needed = _running_most(distances[backwards] + 1, owners)
    return Reuse(blocks.tokens, count, names, np.sort(needed[needed < _out_of_reach(count)]))


def _numbered(ids: Counts) -> tuple[int, Places]:
    """How many different ids there are, and each as a number below that."""
    order = np.argsort(ids).astype(np.int32)
    ordered = ids[order]
    step = np.empty(len(ids), dtype=np.int32)
    step[:1] = 0
    np.not_equal(ordered[1:], ordered[:-1], out=step[1:], casting="unsafe")
    numbers = np.empty(len(ids), dtype=np.int32)
    numbers[order] = np.cumsum(step, dtype=np.int32)
    return (int(step.sum()) + 1 if len(ids) else 0), numbers


def _out_of_reach(count: int) -> int:
    return count + 2


def _stack_distances(ids: Places, owners: Places, starts: Places) -> Places:
    """Different blocks used between the last use of each and the arrival of its request, in order of use.

    Uses between the last one and the arrival, less those of blocks that were used again before it: entries whose own last
    use lies after this one's. Blocks never used before are out of reach.
    """
    count = len(ids)
    distances = np.full(count, _out_of_reach(count), dtype=np.int32)
    last = _last_uses(ids)
    seen = np.flatnonzero(last >= 0).astype(np.int32)
    if len(seen) == 0:
        return distances
    own, previous = owners[seen], last[seen]
    del last
    marks = np.zeros(count, dtype=np.int32)
    marks[previous] = 1
    repeated = earlier_greater(np.cumsum(marks, dtype=np.int32)[previous] - 1)
    del marks
    if not _is_chained(own, previous):
        # Of its own request, what was used before it was not used yet when the request arrived.
        within = np.lexsort((previous, own))
        ranks = np.empty(len(seen), dtype=np.int32)
        ranks[within] = np.arange(len(seen), dtype=np.int32)
        repeated -= earlier_greater(ranks)
    distances[seen] = starts[own] - previous - 1 - repeated
    return distances


def _last_uses(ids: Places) -> Places:
    """The place of the use before this one, -1 for none."""
    order = np.argsort(ids, kind="stable").astype(np.int32)
    ordered = ids[order]
    again = ordered[1:] == ordered[:-1]
    last = np.full(len(ids), -1, dtype=np.int32)
    last[order[1:][again]] = order[:-1][again]
    return last


def _is_chained(own: Places, previous: Places) -> bool:
    """Whether blocks of a request were last used in this order too, as hashes of prefixes are."""
    return bool(np.all((np.diff(previous) > 0) | (np.diff(own) > 0)))


def _running_most(needed: Places, owners: Places) -> Places:
    """The most of each block and those before it in its request: a run of blocks ends where one is missing."""
    floors = owners * np.int64(len(needed) + 4)
    lifted = floors + needed
    np.maximum.accumulate(lifted, out=lifted)
    lifted -= floors
    return lifted.astype(np.int32)
