"""What caches find of turns of sessions, at any rate and any size: the approximation of ``expected_hits``, tabulated for screening."""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidInputError
from solver.replay.expected_hits import Uses, reuse_of, uses_of
from solver.workload import Sessions, Traffic

Matrix = NDArray[np.float64]
Whole = NDArray[np.int64]

SAMPLED_TURNS = 3_000
"""Of the sample behind a table: its mean is within a point of that of all."""
STEP = 1.4
"""From one rate or size of the table to the next: shares between two are read in proportion to their logarithms."""
LOG_STEP = math.log(STEP)
SIZES: Matrix = STEP ** np.arange(20, 76, dtype=float)
"""Tokens of caches, 800 to 90 billion."""
BLOCK_TOKENS = 1
"""Of the cache that is tabulated: one that finds no less than any with larger blocks."""


@dataclass(slots=True, eq=False)
class FoundShares:
    """Shares of the tokens of prompts by turns a second and size of a cache; rates are added as they are asked for."""

    uses: Uses
    sessions: Sessions
    _by_rate: dict[int, Matrix] = field(default_factory=dict)

    def at(self, requests_per_s: Matrix, cache_tokens: Matrix) -> Matrix:
        """Of caches of so many tokens that so many turns a second are sent to: what both broadcast to."""
        rates, tokens = np.broadcast_arrays(np.maximum(requests_per_s, 1e-9), cache_tokens)
        at_rate = np.log(rates) / np.log(STEP)
        low = np.floor(at_rate).astype(np.int64)
        numbers, where = np.unique(low, return_inverse=True)
        table = np.stack([self._column(number) for number in np.unique(np.append(numbers, numbers + 1)).tolist()])
        row_of = np.searchsorted(np.unique(np.append(numbers, numbers + 1)), numbers)[where].reshape(low.shape)
        at_size = np.clip(np.log(tokens / SIZES[0]) / np.log(STEP), 0.0, len(SIZES) - 1.0)
        size = np.minimum(np.floor(at_size).astype(np.int64), len(SIZES) - 2)
        a, b = at_rate - low, at_size - size
        slower = table[row_of, size] * (1.0 - b) + table[row_of, size + 1] * b
        faster = table[row_of + 1, size] * (1.0 - b) + table[row_of + 1, size + 1] * b
        return np.asarray(slower * (1.0 - a) + faster * a)

    def at_one(self, requests_per_s: float, cache_tokens: float) -> float:
        """``at`` of one rate and size."""
        at_rate = math.log(max(requests_per_s, 1e-9)) / LOG_STEP
        at_size = min(max(math.log(cache_tokens / SIZES[0]) / LOG_STEP, 0.0), len(SIZES) - 1.0)
        low, size = math.floor(at_rate), min(math.floor(at_size), len(SIZES) - 2)
        a, b = at_rate - low, at_size - size
        slower, faster = (
            column[size] * (1.0 - b) + column[size + 1] * b for column in map(self._column, (low, low + 1))
        )
        return float(slower * (1.0 - a) + faster * a)

    def _column(self, number: int) -> Matrix:
        found = self._by_rate.get(number)
        if found is None:
            reuse = reuse_of(self.uses, self.sessions, STEP**number, BLOCK_TOKENS, 0.0)
            found = self._by_rate[number] = reuse.found_fraction(SIZES / BLOCK_TOKENS)
        return found


def found_shares(traffic: Traffic) -> FoundShares:
    """The table of this traffic's turns. Turns take no time in it, which leaves a cache more: it says no less than there is.

    Where turns are routed by prefixes they are taken to stay on one replica that all openings are known to: no router keeps more
    together. Raises InvalidInputError for requests that belong to no sessions.
    """
    sessions = traffic.sessions
    if sessions is None:
        raise InvalidInputError("requests that belong to no sessions find no more than their traffic says")
    if sessions.spread_over > 1 and sessions.routing == "prefix_aware":
        alone = replace(sessions, spread_over=1, routing="random", system_prompts=1, documents=1)
        return _table(replace(traffic, sessions=alone))
    return _table(traffic)


@lru_cache(maxsize=64)
def _table(traffic: Traffic) -> FoundShares:
    assert traffic.sessions is not None
    return FoundShares(uses_of(traffic, BLOCK_TOKENS, SAMPLED_TURNS), traffic.sessions)
