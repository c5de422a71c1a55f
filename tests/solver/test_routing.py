"""Routing of turns, against a router written turn by turn over names and sets."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from solver.errors import InvalidInputError
from solver.lengths import uniform_lengths
from solver.replay.routing import MOST_IN_A_BUCKET, MOST_ROUTED, in_time, routed_here, sort_evenly, sorted_words
from solver.sessions import SampledTurns, sampled_turns
from solver.workload import Sessions
from tests.seeds import cases


def naive_route(
    sessions: Sessions, turns: SampledTurns, at_s: np.ndarray, service_s: float, openings: tuple[np.ndarray, np.ndarray],
    tie: np.ndarray,
) -> list[int]:  # fmt: skip
    """The replica of each turn."""
    replicas = sessions.spread_over
    chosen: dict[int, int] = {}
    known: list[dict[object, int]] = [{} for _ in range(replicas)]
    order = sorted(range(len(at_s)), key=lambda turn: at_s[turn])
    for place, turn in enumerate(order):
        going = [other for other in order[:place] if at_s[other] + service_s > at_s[turn]]
        session = int(turns.session[turn])
        system = ("system", int(openings[0][session]))
        document = ("document", int(openings[0][session]), int(openings[1][session]))

        turned = [(int(tie[place]) + step) % replicas for step in range(replicas)]
        costs = []
        for replica in turned:
            there = [other for other in going if chosen[other] == replica]
            cached = max(known[replica].get(name, 0) for name in (("session", session), system, document))
            fresh = int(turns.prompts[turn]) - cached + sum(int(turns.prompts[other]) for other in there)
            costs.append(len(there) if sessions.routing == "least_loaded" else fresh)
        best = turned[costs.index(min(costs))]
        chosen[turn] = best
        for each in known:
            each.pop(("session", session), None)  # the router looks for a session where its last turn went
        known[best] |= {
            ("session", session): int(turns.prompts[turn] + turns.outputs[turn] - 1), system: sessions.system_tokens,
            document: sessions.opening_tokens,
        }  # fmt: skip
    return [chosen[turn] for turn in range(len(at_s))]


def a_case(seed: int) -> tuple[Sessions, SampledTurns, np.ndarray, float, tuple[np.ndarray, np.ndarray]]:
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    sessions = Sessions(
        uniform_lengths(1, draw.choice([1, 5])), uniform_lengths(1, draw.choice([20, 400])), 1.0,
        draw.choice([0, 300]), draw.choice([1, 3]), draw.choice([0, 200]), draw.choice([1, 4]),
        spread_over=draw.choice([2, 3, 5]), routing=draw.choice(["least_loaded", "prefix_aware"]),
    )  # fmt: skip
    turns = sampled_turns(sessions, uniform_lengths(1, 90), draw.randint(1, 40), rng, None)
    at_s = rng.uniform(-5.0, 20.0, len(turns.session))
    openings = tuple(rng.integers(kinds, size=40) for kinds in (sessions.system_prompts, sessions.documents))
    return sessions, turns, at_s, draw.choice([0.0, 0.5, 3.0]), (openings[0], openings[1])


@pytest.mark.parametrize("seed", range(cases(200)))
def test_the_busiest_replica_is_that_of_a_router_turn_by_turn(seed: int) -> None:
    sessions, turns, at_s, service_s, openings = a_case(seed)
    here = routed_here(sessions, turns, at_s, service_s, openings, np.random.default_rng(seed + 1))
    tie = np.random.default_rng(seed + 1).integers(sessions.spread_over, size=len(at_s))
    expected = naive_route(sessions, turns, at_s, service_s, openings, tie)
    counted = Counter(where for where, at in zip(expected, at_s, strict=True) if at >= 0.0)
    most = max(counted.values(), default=0)
    busiest = min(replica for replica in range(sessions.spread_over) if counted[replica] == most)
    assert here.tolist() == [where == busiest for where in expected]


def test_at_random_each_replica_has_its_share() -> None:
    sessions, turns, at_s, service_s, openings = a_case(3)
    found = routed_here(
        replace(sessions, routing="random", spread_over=4), turns, at_s, service_s, openings, np.random.default_rng(1)
    )
    assert 0.0 < found.mean() < 0.6
    assert routed_here(
        replace(sessions, spread_over=1), turns, at_s, service_s, openings, np.random.default_rng(1)
    ).all()


def test_too_many_are_refused() -> None:
    sessions, turns, at_s, service_s, openings = a_case(5)
    with pytest.raises(InvalidInputError, match="too many to route"):
        routed_here(
            replace(sessions, spread_over=MOST_ROUTED), turns, at_s, service_s, openings, np.random.default_rng(1)
        )


class TestOrderOfSending:
    @pytest.mark.parametrize("seed", range(cases(40)))
    def test_turns_are_ordered_whether_or_not_they_are_sent_evenly(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        spread_s = rng.uniform(0.0, 100.0, int(rng.integers(1, 400)))
        far_s = np.array([1e6] if seed % 3 == 1 else [])  # all others lie in one bucket
        at_s = np.concatenate([np.round(spread_s, int(rng.integers(0, 6))) if seed % 2 else spread_s, far_s])
        assert in_time(at_s).tolist() == sorted(range(len(at_s)), key=lambda turn: (at_s[turn], turn))

    def test_words_that_crowd_are_left_to_another_sort(self) -> None:
        words = np.arange(2 * MOST_IN_A_BUCKET)[::-1].copy()
        assert not sort_evenly(words, 55, np.zeros(130, dtype=np.int64), np.empty_like(words))
        assert sorted_words(words, 55).tolist() == list(range(len(words)))
