"""A queue that is said to stay does, one of which nothing is said goes, and it goes too with the seats that are named."""

from dataclasses import replace

import pytest

from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.lengths import lognormal_lengths
from solver.precision import Precision
from solver.prediction.estimate import estimate
from solver.prediction.lasting_queue import LastingQueue, lasting_queue
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream
from solver.sessions import session_traffic
from solver.workload import EngineSettings, Load, Traffic
from tests.bench.lasting_queues import CHATS as SESSIONS
from tests.bench.lasting_queues import after_a_burst, session_replicas, waits_after_a_burst_s
from tests.llm_shapes import shape
from tests.solver.samples import configuration

EIGHT_BITS = Precision("fp8", "fp8")
DENSE = configuration(shape("llama-3.1-8b"))
MIXTURE = configuration(shape("qwen3-30b-a3b"), "mi300x", Layout(), EIGHT_BITS)
FULL_CACHE = configuration(shape("llama-3.1-70b"), "h100-sxm", Layout(2), EIGHT_BITS)
CHATS = Traffic(lognormal_lengths(800, 2_400), lognormal_lengths(300, 900))
SHORT_PROMPTS = Traffic(lognormal_lengths(50, 150), lognormal_lengths(300, 900))
LONG_REPLIES = Traffic(lognormal_lengths(300, 900), lognormal_lengths(3_000, 9_000))

STAYS = {
    "a mixture of experts whose seats fill captured graphs": (MIXTURE, SHORT_PROMPTS, 40.0),
    "a cache that evicts": (FULL_CACHE, LONG_REPLIES, 0.95),
}
GOES = {
    "seats that help": (DENSE, CHATS, 18.0),
    "a mixture of experts with fewer requests": (MIXTURE, SHORT_PROMPTS, 25.0),
    "a cache that evicts, less asked": (FULL_CACHE, LONG_REPLIES, 0.75),
}


def queue_of(of: Configuration, traffic: Traffic, requests_per_s: float) -> LastingQueue | None:
    return estimate(of, traffic, Load("open", requests_per_s=requests_per_s)).lasting_queue


@pytest.mark.parametrize("name", STAYS)
def test_a_queue_that_is_said_to_stay_does_and_goes_with_the_seats_that_are_named(name: str) -> None:
    of, traffic, requests_per_s = STAYS[name]
    calm = estimate(of, traffic, Load("open", requests_per_s=requests_per_s))
    queue = calm.lasting_queue
    assert queue is not None
    assert calm.time_to_first_token_s["mean"].expected < 1.0, "it is served as it comes"
    assert waits_after_a_burst_s(of, traffic, requests_per_s) > 60.0
    assert queue.completed_requests_per_s < requests_per_s < queue.settled_requests_per_s
    fewer = replace(of, engine=replace(of.engine, max_sequences=queue.max_sequences))
    assert queue_of(fewer, traffic, requests_per_s) is None
    assert waits_after_a_burst_s(fewer, traffic, requests_per_s) < 1.0


@pytest.mark.parametrize("name", GOES)
def test_a_queue_of_which_nothing_is_said_goes(name: str) -> None:
    of, traffic, requests_per_s = GOES[name]
    assert queue_of(of, traffic, requests_per_s) is None
    assert waits_after_a_burst_s(of, traffic, requests_per_s) < 1.0


def test_of_several_streams_at_once_too() -> None:
    """Half of the same requests told apart from the other half are the same load."""
    of, traffic, requests_per_s = STAYS["a mixture of experts whose seats fill captured graphs"]
    longer = replace(traffic, prompt=lognormal_lengths(60, 180))
    streams = [RequestStream(kind, requests_per_s / 2.0) for kind in (traffic, longer)]
    found, alone = estimate_mixed(of, streams).whole.lasting_queue, queue_of(of, traffic, requests_per_s)
    assert found is not None
    assert alone is not None
    assert found.completed_requests_per_s == pytest.approx(alone.completed_requests_per_s, rel=0.1)
    fewer = replace(of, engine=replace(of.engine, max_sequences=found.max_sequences))
    assert estimate_mixed(fewer, streams).whole.lasting_queue is None
    less = [replace(one, requests_per_s=10.0) for one in streams]
    assert estimate_mixed(of, less).whole.lasting_queue is None


def test_only_of_loads_that_come_for_ever() -> None:
    of, traffic, requests_per_s = STAYS["a cache that evicts"]
    assert estimate(of, traffic, Load("closed", concurrency=4)).lasting_queue is None
    few = Load("open", requests_per_s=requests_per_s, requests=200)
    assert estimate(of, traffic, few).lasting_queue is None


class TestTurnsOfSessions:
    def queue(self, kind: str, requests_per_s: float, **changes: int) -> LastingQueue | None:
        of, (sessions, output) = session_replicas()["8B, H100"], SESSIONS[kind]
        traffic, _ = session_traffic(replace(sessions, **changes), output, None)
        asked = Load("open", requests_per_s=requests_per_s)
        return lasting_queue(of, of.tables(), traffic, asked, Configuration.tables)

    def waits_s(self, kind: str, requests_per_s: float, *, burst: bool) -> float:
        sessions, output = SESSIONS[kind]
        traffic, _ = session_traffic(sessions, output, None)
        return after_a_burst(session_replicas()["8B, H100"], traffic, requests_per_s, burst=burst).first_token_s

    def test_agents_that_wait_find_little_in_the_cache_and_go_on_to_wait(self) -> None:
        found = self.queue("agents", 5.25)
        assert found is not None
        assert found.found_fraction is not None
        assert found.completed_requests_per_s < 5.0
        assert found.found_fraction < 0.4
        assert self.waits_s("agents", 5.25, burst=False) < 1.0
        assert self.waits_s("agents", 5.25, burst=True) > 60.0

    def test_of_sessions_that_mostly_share_their_beginning_a_queue_goes(self) -> None:
        assert self.queue("50 tenants", 15.0) is None
        assert self.waits_s("50 tenants", 15.0, burst=True) < 1.0

    def test_of_agents_that_are_asked_for_less_too(self) -> None:
        assert self.queue("agents", 3.0) is None
        assert self.waits_s("agents", 3.0, burst=True) < 1.0

    def test_turns_spread_over_lanes_find_no_more_than_those_that_stay(self) -> None:
        assert self.queue("agents", 5.25, spread_over=3) == self.queue("agents", 5.25)

    def test_nothing_is_said_of_more_users_than_are_simulated(self) -> None:
        assert self.queue("agents", 5.25, think_s=100_000) is None


def test_where_no_fewer_seats_are_better_its_own_are_named() -> None:
    few = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=8))
    found = lasting_queue(few, few.tables(), CHATS, Load("open", requests_per_s=40.0), Configuration.tables)
    assert found is not None
    assert found.max_sequences == 8
    assert found.settled_requests_per_s == found.completed_requests_per_s < 40.0
