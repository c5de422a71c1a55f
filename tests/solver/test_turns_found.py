"""What caches find of turns while screening: the table of it, the rate that comes of it, and what is read of what several share."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from solver.candidates.turns_found import CLOSE, IN_FAVOUR, turns_at
from solver.engine.steady import read_context
from solver.errors import InvalidInputError
from solver.lengths import fixed_lengths, uniform_lengths
from solver.replay.expected_hits import expected_hit_fraction
from solver.replay.found_shares import found_shares
from solver.sessions import session_traffic
from solver.workload import Routing, Sessions, Traffic
from tests.solver.naive_session_cache import random_case
from tests.solver.test_expected_hits import traffic_of

ROUTINGS: tuple[Routing, ...] = ("random", "least_loaded", "prefix_aware")
POINTS = 0.04
"""A table of a smaller sample and of single tokens in place of blocks is so near."""


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_the_table_says_what_the_approximation_does(first: int) -> None:
    for seed in range(first, first + 20):
        chats, blocks, size = random_case(seed)
        traffic = traffic_of(chats)
        tokens = float(max(blocks * size, 1_000))
        found = float(found_shares(traffic).at(np.array([chats.rate]), np.array([tokens]))[0])
        expected = expected_hit_fraction(traffic, chats.rate, tokens, size)
        # With larger blocks up to two of them a turn are not whole, which a table of tokens finds all the same.
        assert expected - POINTS <= found <= expected + POINTS + 2.0 * size / traffic.prompt.mean, f"seed {seed}"


def test_one_rate_and_size_is_read_as_many_are() -> None:
    rng = np.random.default_rng(2)
    for seed in range(10):
        table = found_shares(traffic_of(random_case(seed)[0]))
        for rate, tokens in zip(10.0 ** rng.uniform(-11.0, 4.0, 20), 10.0 ** rng.uniform(1.0, 12.0, 20), strict=True):
            many = float(table.at(np.array([rate]), np.array([tokens]))[0])
            assert table.at_one(float(rate), float(tokens)) == pytest.approx(many, rel=1e-9), f"seed {seed}"


def test_more_is_found_in_a_larger_cache_and_less_at_a_higher_rate() -> None:
    for seed in range(20):
        chats, _, _ = random_case(seed)
        rates, tokens = np.geomspace(0.01, 50.0, 15)[None, :], np.geomspace(1e3, 1e7, 15)[:, None]
        found = found_shares(traffic_of(chats)).at(rates, tokens)
        assert (np.diff(found, axis=0) >= -1e-9).all(), f"seed {seed}"
        assert (np.diff(found, axis=1) <= 0.02).all(), f"seed {seed}"


def test_routing_by_prefixes_is_taken_to_lose_nothing_by_spreading() -> None:
    found = []
    for routing in ROUTINGS:
        sessions = Sessions(fixed_lengths(6), fixed_lengths(200), 30.0, 2_000, 20, 0, 1, 4, routing)
        traffic = session_traffic(sessions, fixed_lengths(200))[0]
        found.append(float(found_shares(traffic).at(np.array([5.0]), np.array([2e5]))[0]))
    at_random, by_load, by_prefixes = found
    assert at_random == by_load < by_prefixes - 0.1


def test_requests_that_belong_to_no_sessions_have_no_table() -> None:
    with pytest.raises(InvalidInputError, match="no sessions"):
        found_shares(Traffic(fixed_lengths(5), fixed_lengths(5)))


def test_the_rate_is_the_one_at_which_that_much_is_found() -> None:
    """Of replicas whose rate is what of prompts is not found: no less than what is found at the rate that comes of it, and
    little more."""
    rng = np.random.default_rng(5)
    sessions = Sessions(uniform_lengths(2, 9), uniform_lengths(50, 400), 30.0, 1_500)
    traffic = session_traffic(sessions, fixed_lengths(200))[0]
    shares, most = found_shares(traffic), traffic.shared_prefix_fraction
    tokens_per_s = rng.uniform(1e3, 1e5, (40, 6))
    cache = np.geomspace(1e4, 1e7, 40)[:, None]
    asked: list[Any] = []

    def points(found_fraction: Any) -> Any:
        asked.append(found_fraction)
        return SimpleNamespace(requests_per_s=tokens_per_s / traffic.prompt.mean / (1.0 - found_fraction))

    turns_at(points, shares, cache, np.ones((40, 1)), most)
    assert len(asked) <= 6
    told = asked[-1]
    low, high = np.zeros((40, 6)), np.full((40, 6), most)
    for _ in range(50):
        middle = (low + high) / 2.0
        is_more = np.minimum(shares.at(points(middle).requests_per_s, cache), most) >= middle
        low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
    found = np.broadcast_to(told, low.shape)
    assert (found >= np.minimum(low + IN_FAVOUR, most) - 1e-6).all()
    worked_on = (1.0 - low) / (1.0 - found + IN_FAVOUR)
    assert np.median(worked_on) < 1.0 + CLOSE
    assert np.percentile(worked_on, 95) < 1.3


@pytest.mark.parametrize(("systems", "documents"), [(1, 1), (5, 1), (3, 4), (200, 1)])
def test_what_several_share_is_read_once_and_by_each_further_one_in_part(systems: int, documents: int) -> None:
    """As the simulation has it of a step, over sequences that each are about any one of them."""
    sessions = Sessions(fixed_lengths(3), fixed_lengths(100), 30.0, 800, systems, 300, documents)
    traffic = session_traffic(sessions, fixed_lengths(100))[0]
    share, rng = 0.4, np.random.default_rng(2)
    for count in (1, 4, 50):
        own = traffic.prompt.mean + 50.0 - 1_100.0
        reads = []
        for _ in range(400):
            system, document = rng.integers(systems, size=count), rng.integers(documents, size=count)
            distinct = (
                len(set(system.tolist())) * 800 + len(set(zip(system.tolist(), document.tolist(), strict=True))) * 300
            )
            reads.append(own * count + distinct + share * (1_100 * count - distinct))
        grid: Any = SimpleNamespace(shared_read_fraction=np.array([[share]]))
        found = float(np.asarray(read_context(grid.shared_read_fraction, traffic, np.array([[float(count)]]))).item())
        assert found * count == pytest.approx(np.mean(reads), rel=0.01)


def test_prompts_that_share_nothing_are_read_whole() -> None:
    grid: Any = SimpleNamespace(shared_read_fraction=np.array([[0.4]]))
    for prompt, reply in itertools.product((10, 500), (2, 300)):
        traffic = Traffic(fixed_lengths(prompt), fixed_lengths(reply))
        assert read_context(grid.shared_read_fraction, traffic, np.array([[7.0]])) == prompt + reply / 2.0
