"""About how long a turn of sessions takes, without a simulation: against replays, and how many of them a load takes since."""

import itertools
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from solver.errors import InvalidInputError
from solver.lengths import fixed_lengths, lognormal_lengths, uniform_lengths
from solver.replay import sessions as replayed
from solver.replay.crowds import lane_seats
from solver.replay.sessions import MOST_PACED, paced, turn_alone_s
from solver.replay.turn_time import longer_than_alone
from solver.workload import Routing, Traffic
from tests.solver.test_session_draws import ABOUT_DOCUMENTS, AGENTS, CHATS, HERE, SCHEDULE, TABLES, traffic_of

OUTPUTS = (fixed_lengths(150), lognormal_lengths(300, 900), uniform_lengths(20, 200))
ROUTINGS: tuple[Routing, ...] = ("sticky", "random", "least_loaded", "prefix_aware")


def random_traffic(rng: np.random.Generator) -> Traffic:
    chats = (CHATS, AGENTS, ABOUT_DOCUMENTS)[rng.integers(3)]
    routing = ROUTINGS[rng.integers(4)]
    spread = 1 if routing == "sticky" else int(rng.integers(2, 6))
    chats = replace(chats, think_s=float(rng.choice([5.0, 30.0, 120.0])), routing=routing, spread_over=spread)
    return traffic_of(chats, OUTPUTS[rng.integers(3)])


def test_a_turn_takes_longer_the_more_come() -> None:
    rng = np.random.default_rng(3)
    for _ in range(12):
        traffic = random_traffic(rng)
        times = [longer_than_alone(TABLES, SCHEDULE, traffic, rate) for rate in np.geomspace(0.01, 3.0, 12)]
        assert times[0] == pytest.approx(1.0, abs=0.05)
        assert all(after >= before - 0.01 for before, after in itertools.pairwise(times)), times


def test_it_is_about_what_is_simulated_and_loads_begin_with_it() -> None:
    """At up to half of the seats: within a third in nine of ten loads, and one run is enough for most."""
    rng, off, runs = np.random.default_rng(7), [], []
    for _ in range(40):
        traffic, rate = random_traffic(rng), float(rng.uniform(0.2, 6.0))
        schedule = replace(SCHEDULE, kv_cache_tokens=float(rng.choice([120_000, 400_000, 900_000])))
        with patch.object(replayed, "replay_open", wraps=replayed.replay_open) as seen:
            load = paced(TABLES, schedule, traffic, rate)
            count = seen.call_count
        took_s = float(load.run.trace.end_to_end_s.mean())
        if rate * took_s > 0.5 * lane_seats(schedule, traffic):
            continue
        begun_s = turn_alone_s(TABLES, schedule, traffic) * longer_than_alone(TABLES, schedule, traffic, rate)
        off.append(abs(begun_s / took_s - 1.0))
        runs.append(count)
    assert len(off) > 20
    assert np.quantile(off, 0.9) < 1.0 / 3.0, sorted(off)
    assert sum(runs) < 1.5 * len(runs)
    assert max(runs) <= MOST_PACED


def test_of_more_than_is_completed_a_turn_takes_about_as_long_as_at_the_most() -> None:
    for rate in (30.0, 1e3, 1e6):
        assert 2.0 < longer_than_alone(TABLES, SCHEDULE, traffic_of(CHATS), rate) < 25.0


def test_requests_that_belong_to_no_sessions_are_refused() -> None:
    traffic = Traffic(fixed_lengths(100), fixed_lengths(10))
    with pytest.raises(InvalidInputError):
        longer_than_alone(TABLES, HERE.schedule(), traffic, 1.0)
