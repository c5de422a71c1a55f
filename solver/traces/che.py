"""Che's approximation of what an LRU cache hits, from nothing but how often each block is used."""

import numpy as np

from solver.traces.trace import Counts


def che_hits(uses: Counts, cache_blocks: int) -> float:
    """Blocks found by a cache of this size where uses are independent of each other.

    A block stays for a time T that is alike for all: Σ (1 − exp(−λ_b T)) = C, and is found with probability
    1 − exp(−λ_b T), its first use apart, which finds nothing. Source: H. Che, Y. Tung, Z. Wang, Hierarchical web caching
    systems, IEEE JSAC 20 (2002). Sessions use blocks again sooner than independent uses would: then it is too low.

    >>> round(che_hits(np.array([50, 50, 50, 50]), 2)), che_hits(np.array([3, 2]), 2)
    (98, 3.0)
    """
    repeated = float((uses - 1).sum())
    if cache_blocks <= 0:
        return 0.0
    if cache_blocks >= len(uses):
        return repeated
    kinds, many = np.unique(uses, return_counts=True)
    rates = kinds / float(uses.sum())
    low, high = 0.0, 1.0
    while float((many * -np.expm1(-rates * high)).sum()) < cache_blocks:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        held = float((many * -np.expm1(-rates * middle)).sum())
        low, high = (middle, high) if held < cache_blocks else (low, middle)
    return float((many * (kinds - 1) * -np.expm1(-rates * high)).sum())
