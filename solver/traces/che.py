"""Che's approximation of what an LRU cache hits, from nothing but how often each block is used."""

import numpy as np

from solver.adapters import characteristic_time
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
    shares = kinds / float(uses.sum())
    time = characteristic_time(tuple(zip(many.tolist(), shares.tolist(), strict=True)), float(cache_blocks))
    return float((many * (kinds - 1) * -np.expm1(-shares * time)).sum())
