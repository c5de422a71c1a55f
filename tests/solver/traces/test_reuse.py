"""Hits of an LRU cache of prefixes: exact against one simulated block by block; Che's approximation within its tolerance."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from solver.traces.che import che_hits
from solver.traces.earlier_greater import earlier_greater
from solver.traces.reuse import measured_reuse
from solver.traces.trace import Blocks
from tests.solver.traces.naive_cache import naive_hits

CHE_POINTS = 0.02
"""How far Che's approximation may be from the exact share where uses are independent, as the docs state it."""


def blocks_of(requests: Sequence[Sequence[int]]) -> Blocks:
    ids = np.array([block for request in requests for block in request], dtype=np.int64)
    return Blocks(16, ids, np.concatenate(([0], np.cumsum([len(request) for request in requests]))))


def sessions(draw: random.Random) -> list[list[int]]:
    """Prompts that continue earlier ones, as turns of sessions and shared documents do: ids are made of what goes before."""
    known: list[list[int]] = [[]]
    requests = []
    fresh = 0
    for _ in range(draw.randint(1, 60)):
        start = draw.choice(known)
        kept = start[: draw.randint(0, len(start))]
        more = draw.randint(0, 6)
        request = kept + list(range(fresh, fresh + more))
        fresh += more
        known.append(request)
        requests.append(request)
    return requests


def unordered(draw: random.Random) -> list[list[int]]:
    """Blocks in any order, which hashes of prefixes never are."""
    return [draw.sample(range(12), draw.randint(0, 8)) for _ in range(draw.randint(1, 40))]


@pytest.mark.parametrize("made", [sessions, unordered])
@pytest.mark.parametrize("part", range(5))
def test_hits_are_those_of_a_simulated_cache(made, part: int) -> None:
    """400 traces in all, each at every size of cache up to one that forgets nothing."""
    draw = random.Random(part)
    for _ in range(40):
        requests = made(draw)
        reuse = measured_reuse(blocks_of(requests))
        for size in range(reuse.distinct_blocks + 2):
            assert reuse.hits(size) == naive_hits(requests, size), (requests, size)


def test_earlier_greater_is_what_it_says() -> None:
    draw = np.random.default_rng(4)
    for count in [*range(20), 31, 32, 33, 300]:
        ranks = draw.permutation(count)
        assert earlier_greater(ranks).tolist() == [int((ranks[:i] > ranks[i]).sum()) for i in range(count)]


def test_che_is_close_where_uses_are_independent() -> None:
    """300 traces of Zipf's popularity, one block a request."""
    draw = np.random.default_rng(5)
    furthest = 0.0
    for _ in range(300):
        distinct, exponent = int(draw.integers(50, 200)), float(draw.uniform(0.4, 1.4))
        popularity = np.arange(1, distinct + 1) ** -exponent
        ids = draw.choice(distinct, size=4_000, p=popularity / popularity.sum())
        reuse = measured_reuse(Blocks(16, ids, np.arange(len(ids) + 1)))
        uses = np.unique(ids, return_counts=True)[1]
        size = int(draw.integers(5, distinct))
        furthest = max(furthest, abs(reuse.hits(size) - che_hits(uses, size)) / len(ids))
    assert furthest <= CHE_POINTS


def test_a_cache_that_holds_all_finds_all_but_first_uses() -> None:
    reuse = measured_reuse(blocks_of([[1, 2], [1, 2, 3], [4], [1, 2, 3]]))
    assert reuse.hits(4) == reuse.blocks - reuse.distinct_blocks == 5
    assert che_hits(np.array([3, 3, 2, 1]), 4) == 5


def test_requests_without_a_full_block() -> None:
    reuse = measured_reuse(blocks_of([[], [], []]))
    assert (reuse.blocks, reuse.distinct_blocks, reuse.hits(10)) == (0, 0, 0)
