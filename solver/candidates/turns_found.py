"""Operating points of turns of sessions, whose caches find less of their prompts the more of them come."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solver.engine.steady import OperatingPoints
from solver.replay.found_shares import FoundShares

Matrix = NDArray[np.float64]
Points = Callable[..., OperatingPoints]
"""Operating points where caches find ``found_fraction`` of every prompt, (N, K)."""

IN_FAVOUR = 0.02
"""Added to what is found, in the candidate's favour: the approximation is tested to that."""
CLOSE = 0.02
"""Shares that lie no further apart are one."""
ROUNDS = 2
"""After the two ends; whatever is left between them favours the candidate."""


def turns_at(
    points: Points, shares: FoundShares, cache_tokens: Matrix, lanes: Matrix, most_found: float
) -> OperatingPoints:
    """Operating points at which caches find what they do of turns at the rate that comes of it.

    With X(h) completed where a share h is found, which rises, and h(X) found at a rate, which falls, there is one h = h(X(h)), and it lies
    between h and h(X(h)) for any h. It is closed in by false position over ln(1 − h), what is worked on being what is not found. Of what
    is left the end is taken at which more is found, so that no candidate is ruled out that simulation would not.

    cache_tokens: (N, 1), of each lane's own cache. lanes: (N, 1). most_found: what a cache finds that forgets nothing.
    """

    def worked_on(found: Matrix) -> Matrix:
        """ln(1 − h(X(h)))."""
        return unfound(points(found_fraction=found).requests_per_s / lanes)

    def unfound(requests_per_s: Matrix) -> Matrix:
        return np.log1p(-np.minimum(shares.at(requests_per_s, cache_tokens), most_found))

    # x = ln(1 - h) lies between ``least`` and ``most``, where x' - x is above and below 0.
    least = unfound(np.zeros_like(cache_tokens))
    above = worked_on(-np.expm1(least)) - least
    most = least + above
    least = np.broadcast_to(least, most.shape)
    below = worked_on(-np.expm1(most)) - most
    for _ in range(ROUNDS):
        if float((most - least).max()) <= CLOSE:
            break
        step = np.where(above > below, above / np.maximum(above - below, 1e-12), 0.5)
        tried = least + np.clip(step, 0.1, 0.9) * (most - least)
        there = worked_on(-np.expm1(tried)) - tried
        is_less = there > 0.0
        least, above = np.where(is_less, tried, least), np.where(is_less, there, above)
        most, below = np.where(is_less, most, tried), np.where(is_less, below, there)
    return points(found_fraction=np.minimum(IN_FAVOUR - np.expm1(least), most_found))
