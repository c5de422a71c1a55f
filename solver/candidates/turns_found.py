"""Operating points of turns of sessions, whose caches find less of their prompts the more of them come."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solver.engine.steady import OperatingPoints
from solver.replay.found_shares import FoundShares

Matrix = NDArray[np.float64]
Points = Callable[..., OperatingPoints]
"""Operating points where caches find ``found_fraction`` of every prompt, (N, K)."""

CLOSE = 0.02
"""Shares this close are one: what the approximation is tested to, and what is added to it in the candidate's favour."""
ROUNDS = 4


def turns_at(points: Points, shares: FoundShares, cache_tokens: Matrix, lanes: Matrix, most_found: float) -> OperatingPoints:
    """Operating points at which caches find what they do of turns at the rate that comes of it.

    With X(h) completed where a share h is found, which rises, and h(X) found at a rate, which falls, there is one h = h(X(h)). It lies
    between h and h(X(h)) for any h, so that each evaluation closes in from both sides; the upper end is taken, and ``CLOSE`` added, so
    that no candidate is ruled out that simulation would not.

    cache_tokens: (N, 1), of each lane's own cache. lanes: (N, 1). most_found: what a cache finds that forgets nothing.
    """
    high = np.asarray(most_found)
    found = points(found_fraction=most_found)
    low = np.minimum(shares.at(found.requests_per_s / lanes, cache_tokens), high)
    high = np.broadcast_to(high, low.shape)
    for _ in range(ROUNDS):
        if float((high - low).max()) <= CLOSE:
            break
        # What is not found is what is worked on: the middle of its ratio.
        tried = 1.0 - np.sqrt((1.0 - low) * (1.0 - high))
        there = shares.at(points(found_fraction=tried).requests_per_s / lanes, cache_tokens)
        is_more = there >= tried
        low, high = (
            np.where(is_more, tried, np.maximum(low, there)),
            np.where(is_more, np.minimum(high, there), tried),
        )
    return points(found_fraction=np.minimum(high + CLOSE, most_found))
