"""What a cache of prefixes that forgets the least recently used block hits, at every size at once.

A request finds the longest run of its leading blocks that the cache holds when it arrives. Then all its blocks are used, the
last one first and the first one last, as engines free them: a block is never forgotten after one that continues it. Requests
are taken one at a time; blocks of replies are not counted, and a last block that is not full is never found.
"""

from dataclasses import dataclass

import numpy as np

from solver.traces.earlier_greater import earlier_greater
from solver.traces.trace import Blocks, Counts

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Reuse:
    """needed_blocks: for each block that was seen before, the smallest cache that finds it; ascending."""

    block_tokens: int
    blocks: int
    distinct_blocks: int
    needed_blocks: Counts

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
    owners = np.repeat(np.arange(len(blocks.starts) - 1), np.diff(blocks.starts))
    backwards = blocks.starts[owners] + blocks.starts[owners + 1] - 1 - np.arange(count)
    names, ids = np.unique(blocks.ids, return_inverse=True)
    needed = _running_most(_stack_distances(ids[backwards], owners, blocks.starts)[backwards] + 1, owners)
    return Reuse(blocks.tokens, count, len(names), np.sort(needed[needed < _out_of_reach(count)]))


def _out_of_reach(count: int) -> int:
    return count + 2


def _stack_distances(ids: Counts, owners: Counts, starts: Counts) -> Counts:
    """Different blocks used between the last use of each and the arrival of its request, in order of use.

    Uses between the last one and the arrival, less those of blocks that were used again before it: entries whose own last
    use lies after this one's. Blocks never used before are out of reach.
    """
    count = len(ids)
    distances = np.full(count, _out_of_reach(count), dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    last = np.full(count, -1, dtype=np.int64)
    last[order[1:][again]] = order[:-1][again]
    seen = np.flatnonzero(last >= 0)
    if len(seen) == 0:
        return distances
    own, previous = owners[seen], last[seen]
    marks = np.zeros(count, dtype=np.int64)
    marks[previous] = 1
    repeated = earlier_greater((np.cumsum(marks) - 1)[previous])
    # Of its own request, what was used before it was not used yet when the request arrived.
    within = np.argsort(own * np.int64(count) + previous, kind="stable")
    ranks = np.empty(len(seen), dtype=np.int64)
    ranks[within] = np.arange(len(seen))
    repeated -= earlier_greater(ranks)
    distances[seen] = starts[own] - previous - 1 - repeated
    return distances


def _running_most(needed: Counts, owners: Counts) -> Counts:
    """The most of each block and those before it in its request: a run of blocks ends where one is missing."""
    step = np.int64(len(needed) + 4)
    most: Counts = np.maximum.accumulate(needed + owners * step) - owners * step
    return most
