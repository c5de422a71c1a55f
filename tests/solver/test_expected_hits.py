"""What a cache finds of sessions, approximated: against a cache of single blocks, and what must hold of it in any case."""

import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from solver.errors import InvalidInputError
from solver.lengths import fixed_lengths, uniform_lengths
from solver.replay.expected_hits import expected_hit_fraction, expected_tier_fractions
from solver.sessions import session_traffic
from solver.workload import Sessions, Traffic
from tests.seeds import cases
from tests.solver.naive_session_cache import Chats, drawn, found_blocks, naive_hit_fraction, random_case

CASES, TURNS = 300, 40_000
TOLERANCE = 0.02


def traffic_of(chats: Chats) -> Traffic:
    sessions = Sessions(
        uniform_lengths(*chats.turns), uniform_lengths(*chats.user), chats.think_s, chats.system_tokens, chats.systems,
        chats.document_tokens, chats.documents, chats.replicas,
    )  # fmt: skip
    return session_traffic(sessions, uniform_lengths(*chats.reply), None)[0]


def differences(seeds: range, turns: int = TURNS) -> np.ndarray:
    """Approximation less single blocks, in shares of the prompts' tokens."""
    found = []
    for seed in seeds:
        chats, blocks, size = random_case(seed)
        expected = expected_hit_fraction(traffic_of(chats), chats.rate, float(blocks * size), size)
        found.append(expected - naive_hit_fraction(chats, blocks, size, turns, seed))
    return np.array(found)


@pytest.mark.parametrize("first", range(0, cases(CASES), 10))
def test_within_two_points_of_single_blocks(first: int) -> None:
    assert np.abs(differences(range(first, first + 10))).max() <= TOLERANCE


def tier_differences(seeds: range, turns: int = TURNS) -> np.ndarray:
    """(cases, 3): of what a device, host memory and a disk under it find together, approximation less three lists of single blocks,
    each written by every turn and each forgetting by itself."""
    found = []
    for seed in seeds:
        chats, blocks, size = random_case(seed)
        rooms = blocks, int(blocks * (1.5 + seed % 3)), blocks * (5 + 10 * (seed % 2))
        told = np.cumsum(expected_tier_fractions(traffic_of(chats), chats.rate, [float(r * size) for r in rooms], size))
        sent = drawn(chats, rooms[-1], size, turns, seed)
        each = [found_blocks(sent, chats, room, size)[sent.counted] for room in rooms]
        together = [np.maximum.reduce(each[: n + 1]).sum() * size / sent.prompt[sent.counted].sum() for n in range(3)]
        found.append(told - np.array(together))
    return np.array(found)


@pytest.mark.parametrize("first", range(0, cases(CASES), 10))
def test_three_tiers_are_within_two_points_of_single_blocks(first: int) -> None:
    assert np.abs(tier_differences(range(first, first + 10))).max() <= TOLERANCE


def test_a_tier_that_is_no_larger_adds_nothing() -> None:
    traffic = session_traffic(SETTLED, uniform_lengths(50, 400), None)[0]
    device, host, disk = expected_tier_fractions(traffic, 3.0, (50_000.0, 40_000.0, 200_000.0), 16)
    assert host == 0.0
    assert device + disk == pytest.approx(of(SETTLED, 200_000.0))


@pytest.mark.parametrize("seed", range(20))
def test_the_list_of_single_blocks_is_an_ordered_dictionary(seed: int) -> None:
    """What faster answers are held against, held against names in a dictionary."""
    chats, room, size = random_case(seed)
    sent = drawn(chats, room, size, 300, seed)
    of_system, of_opening = chats.system_tokens // size, (chats.system_tokens + chats.document_tokens) // size
    cache: OrderedDict[tuple[str, int, int], None] = OrderedDict()
    expected = []
    for turn in range(len(sent.prompt)):
        names = [("system", int(sent.system[turn]), n) for n in range(of_system)]
        names += [("document", int(sent.document[turn]), n) for n in range(of_opening - of_system)]
        kept = int(sent.prompt[turn] + sent.reply[turn] - 1) // size
        names += [("own", int(sent.own[turn]), n) for n in range(max(0, kept - of_opening))]
        asked = names[: int(sent.prompt[turn] - 1) // size]
        expected.append(sum(1 for _ in itertools.takewhile(cache.__contains__, asked)))
        for name in reversed(names[:kept]):
            cache[name] = None
            cache.move_to_end(name)
        while len(cache) > room:
            cache.popitem(last=False)
    assert found_blocks(sent, chats, room, size).tolist() == expected
    assert sum(expected) > 0


SETTLED = Sessions(uniform_lengths(2, 8), uniform_lengths(50, 300), 30.0, 1_500, spread_over=3)


def of(sessions: Sessions, tokens: float = 200_000.0, rate: float = 3.0, service_s: float = 0.0) -> float:
    return expected_hit_fraction(
        session_traffic(sessions, uniform_lengths(50, 400), None)[0], rate, tokens, 16, service_s
    )


def test_a_larger_cache_finds_no_less() -> None:
    hits = [of(SETTLED, tokens) for tokens in (4e3, 1e4, 5e4, 2e5, 1e6, 1e8)]
    assert all(b >= a - 0.002 for a, b in itertools.pairwise(hits))
    assert hits[0] < hits[-1] - 0.15


def test_all_that_any_cache_finds_is_found_by_one_without_end() -> None:
    alone = replace(SETTLED, spread_over=1)
    most = session_traffic(alone, uniform_lengths(50, 400), None)[0].shared_prefix_fraction
    assert most - 0.03 < of(alone, 1e10) <= most


def test_more_replicas_less_room_and_longer_turns_find_less() -> None:
    hits = [of(replace(SETTLED, spread_over=n), 3e5) for n in (1, 2, 4, 16)]
    assert all(b < a for a, b in itertools.pairwise(hits))
    assert of(SETTLED, 5e4) > of(SETTLED, 5e4, service_s=20.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: of(SETTLED, 0.0),
        lambda: of(SETTLED, rate=0.0),
        lambda: of(SETTLED, rate=float("nan")),
        lambda: of(replace(SETTLED, routing="prefix_aware")),
        lambda: expected_hit_fraction(Traffic(fixed_lengths(5), fixed_lengths(5)), 1.0, 10.0, 16),
    ],
)
def test_what_is_not_approximated_is_refused(wrong: Callable[[], float]) -> None:
    with pytest.raises(InvalidInputError):
        wrong()
