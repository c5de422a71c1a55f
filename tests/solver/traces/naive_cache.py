"""A cache of prefixes, one request and one block at a time: what the arrays are held against."""

from collections import OrderedDict
from collections.abc import Sequence


def naive_hits(requests: Sequence[Sequence[int]], cache_blocks: int) -> int:
    """Leading blocks found, over all requests, by a cache that forgets the least recently used block."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for blocks in requests:
        for block in blocks:
            if block not in cache:
                break
            hits += 1
        for block in reversed(blocks):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > cache_blocks:
            cache.popitem(last=False)
    return hits
