"""Draws of sessions begin in steady state: against sessions followed from the first on, and runs from an empty cache."""

import math
from dataclasses import replace

import numpy as np
import pytest

from solver.engine.simulate import simulate_sessions
from solver.errors import SaturatedError
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, uniform_lengths
from solver.replay.latencies import SteadyLane
from solver.replay.one_stream import open_draws
from solver.replay.session_draws import closed_draw, open_draw
from solver.replay.sessions import capacity_requests_per_s, paced, replay_open
from solver.replay.under_way import pool_of, to_come_s, under_way, within_s
from solver.sessions import session_traffic
from solver.workload import Load, Routing, Sessions, Traffic
from tests.solver.samples import configuration, dense_shape

HERE = configuration(dense_shape(layers=32, hidden=4096))
TABLES, SCHEDULE = HERE.tables(), HERE.schedule()
CHATS = Sessions(uniform_lengths(3, 9), lognormal_lengths(200, 600), 30.0, system_tokens=1_500)
AGENTS = Sessions(fixed_lengths(12), fixed_lengths(600), 30.0, system_tokens=2_000)
ABOUT_DOCUMENTS = Sessions(fixed_lengths(3), fixed_lengths(100), 30.0, 500, document_tokens=8_000, documents=100)
REPLIES = lognormal_lengths(300, 900)


def traffic_of(sessions: Sessions, output: Lengths = REPLIES) -> Traffic:
    return session_traffic(sessions, output)[0]


def from_the_first_on(
    traffic: Traffic, turns_per_s: float, service_s: float, think_s: float, window_s: float, seed: int
) -> tuple[int, float, float]:
    """Turns that are sent in a window, their mean prompt and the variance of prompts, of sessions that are followed one by one from
    so long before it that none is left of those that began before them."""
    pool, rng = pool_of(traffic, CHATS), np.random.default_rng(seed)
    before_s = 9 * (service_s + 6.0 * think_s)
    prompts = []
    for _ in range(rng.poisson(turns_per_s / pool.turns_of_one * (before_s + window_s))):
        one = int(rng.integers(len(pool.first)))
        at = -before_s + (before_s + window_s) * rng.random()
        for turn in range(pool.first[one], pool.end[one]):
            if 0.0 <= at <= window_s:
                prompts.append(int(pool.prompts[turn]))
            at += service_s + think_s * rng.exponential()
    return len(prompts), float(np.mean(prompts)), float(np.var(prompts))


@pytest.mark.parametrize(
    ("service_s", "think_s", "window_s"), [(2.0, 30.0, 40.0), (20.0, 5.0, 10.0), (5.0, 60.0, 600.0)]
)
def test_turns_in_a_window_are_those_of_sessions_followed_from_the_first_on(
    service_s: float, think_s: float, window_s: float
) -> None:
    traffic = traffic_of(CHATS)
    turns_per_s, draws = 400.0 / window_s, 60
    followed = np.array(
        [from_the_first_on(traffic, turns_per_s, service_s, think_s, window_s, seed) for seed in range(draws)]
    )
    drawn = []
    for seed in range(draws):
        rng = np.random.default_rng(1_000 + seed)
        found = under_way(pool_of(traffic, CHATS), turns_per_s, service_s, think_s, 0.0, window_s, rng)
        prompts = found.prompts[found.sent_s >= 0.0]
        assert found.sent_s.max() <= window_s
        drawn.append((len(prompts), float(prompts.mean()), float(prompts.var())))
    ours = np.array(drawn)
    error = np.sqrt((followed.var(axis=0) + ours.var(axis=0)) / draws)
    assert (np.abs(ours.mean(axis=0) - followed.mean(axis=0)) < 3.5 * error).all(), (
        ours.mean(0),
        followed.mean(0),
        error,
    )


def test_times_to_the_next_turn_have_the_density_of_gaps_that_are_longer() -> None:
    unit = (np.arange(200_000) + 0.5) / 200_000
    for service_s, think_s, window_s in ((2.0, 30.0, 40.0), (20.0, 5.0, 10.0), (3.0, 0.0, 50.0), (0.0, 4.0, 1.0)):
        times = to_come_s(service_s, think_s, window_s, unit)
        assert times.min() >= 0.0
        assert times.max() <= window_s
        for at in (0.3 * window_s, 0.8 * window_s):
            expected = within_s(service_s, think_s, at) / within_s(service_s, think_s, window_s)
            assert float((times <= at).mean()) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("sessions", "rate", "cache_tokens"),
    [(CHATS, 12.0, 400_000.0), (AGENTS, 4.0, 500_000.0), (ABOUT_DOCUMENTS, 2.2, 463_000.0), (CHATS, 8.0, 120_000.0)],
)
def test_draws_say_what_a_long_run_from_an_empty_cache_comes_to(
    sessions: Sessions, rate: float, cache_tokens: float
) -> None:
    """Hits, and what turns take, of draws of 2,000 turns, their first tenth left out, within three standard errors."""
    schedule, traffic, turns = replace(SCHEDULE, kv_cache_tokens=cache_tokens), traffic_of(sessions), 50_000
    said = []
    for seed in (1, 2, 3, 4):
        whole = closed_draw(traffic, turns, seed, block_tokens=schedule.block_tokens)
        gaps_s = np.random.default_rng(seed).exponential(
            turns / len(whole.turns.starts) / rate, len(whole.turns.starts)
        )
        arrivals_s = np.cumsum(gaps_s)
        run = simulate_sessions(
            TABLES, schedule, whole.prompts, whole.outputs, whole.turns, arrivals_s=arrivals_s, notes_gaps=False
        )
        settled = np.flatnonzero((run.sent_s > 0.3 * arrivals_s[-1]) & (run.sent_s < arrivals_s[-1]))
        found = run.cached_tokens[settled].sum() / run.prompts[settled].sum()
        said.append((float(found), float(run.trace.end_to_end_s[settled].mean())))
    service_s = paced(TABLES, schedule, traffic, rate).service_s
    drawn = []
    for seed in range(24):
        run = replay_open(TABLES, schedule, traffic, rate, service_s, 2_000, seed, notes_gaps=False)
        drawn.append((run.found_fraction(200), float(run.trace.end_to_end_s[200:].mean())))
    long, short = np.array(said), np.array(drawn)
    error = np.sqrt(long.var(axis=0, ddof=1) / len(long) + short.var(axis=0, ddof=1) / len(short))
    assert (np.abs(short.mean(axis=0) - long.mean(axis=0)) < 3.0 * error + 0.002).all(), (
        short.mean(axis=0), long.mean(axis=0), error,
    )  # fmt: skip


@pytest.mark.parametrize("routing", ["prefix_aware", "least_loaded"])
def test_routers_are_told_what_turns_take(routing: Routing) -> None:
    """The run that says what turns take has them routed as if they took that long, or nearly."""
    for sessions, output, rate in ((CHATS, REPLIES, 14.0), (ABOUT_DOCUMENTS, fixed_lengths(150), 5.0)):
        traffic = traffic_of(replace(sessions, spread_over=4, routing=routing), output)
        told_s = paced(TABLES, SCHEDULE, traffic, rate).service_s
        run = replay_open(TABLES, SCHEDULE, traffic, rate, told_s, 4_000, 1, notes_gaps=False)
        assert told_s == pytest.approx(float(run.trace.end_to_end_s[400:].mean()), rel=0.3)


AT_ONCE = replace(AGENTS, think_s=0.0)
"""Whoever has an answer sends the next turn at once: the rate is what turns take."""


@pytest.mark.parametrize("sessions", [AT_ONCE, replace(CHATS, think_s=3.0)])
def test_a_load_is_sent_at_its_rate(sessions: Sessions) -> None:
    """Where turns took longer than they were drawn to, the next ones came later, and a load beyond capacity was none."""
    traffic = traffic_of(sessions, fixed_lengths(400))
    lane = SteadyLane(HERE, TABLES, traffic)
    most = capacity_requests_per_s(HERE, TABLES, traffic, paced(TABLES, SCHEDULE, traffic, 1.0).run)
    at = paced(TABLES, SCHEDULE, traffic, 0.7 * most, 6_000)
    sent_s = np.sort(at.run.sent_s)
    early, late = sent_s[1_000], sent_s[5_000]
    assert 4_000 / (late - early) == pytest.approx(0.7 * most, rel=0.12)
    with pytest.raises(SaturatedError):
        lane.latencies(1.5 * most, (1,), 6_000)


def test_draws_of_one_load_are_told_by_one_look() -> None:
    """Each looked for itself, which took half of the time of sessions over a hundred replicas."""
    looked = paced.cache_info().misses
    traffic = traffic_of(replace(CHATS, spread_over=3, routing="least_loaded"))
    assert len(open_draws(HERE, TABLES, traffic, Load("open", requests_per_s=6.0, requests=200))) > 1
    assert paced.cache_info().misses == looked + 1


def test_draws_are_no_longer_where_users_think_for_days() -> None:
    for think_s in (30.0, 1e6):
        traffic = traffic_of(replace(CHATS, think_s=think_s, spread_over=4, routing="least_loaded"))
        draw = open_draw(traffic, 25.0, 2.0, 1_000, 1, block_tokens=16, cache_tokens=400_000.0)
        assert len(draw.prompts) == 1_000
        assert len(draw.turns.held_chains) < 3_000


def test_sessions_of_one_turn_have_none_that_go_on() -> None:
    traffic = traffic_of(replace(CHATS, turns=fixed_lengths(1)))
    found = under_way(
        pool_of(traffic, traffic.sessions or CHATS), 10.0, 2.0, 30.0, -5.0, 50.0, np.random.default_rng(1)
    )
    assert found.sessions == len(found.session)
    assert math.isclose(found.sessions, 550.0, abs_tol=1.0)
    assert found.sent_s.min() >= -5.0


@pytest.mark.parametrize("think_s", [0.0, 0.001, 2.0])
@pytest.mark.parametrize("prefix_token_s", [0.0, 2e-6])
def test_a_trace_is_in_the_order_of_sending(think_s: float, prefix_token_s: float) -> None:
    """Whatever order the front end takes turns in: those sent while others are taken in join them, and who thinks for no time at all sends
    before some of these."""
    schedule = replace(SCHEDULE, prefix_token_s=prefix_token_s, request_ingest_s=0.02)
    draw = open_draw(
        traffic_of(replace(CHATS, think_s=think_s)), 12.0, 2.0, 800, 3, block_tokens=16, cache_tokens=100_000.0
    )
    found = simulate_sessions(TABLES, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=draw.arrivals_s)
    assert (np.diff(found.sent_s) >= 0.0).all()
    assert sorted(found.order.tolist()) == list(range(800))
    assert found.prompts.tolist() == draw.prompts[found.order].tolist()
    at_once = np.flatnonzero(np.diff(found.sent_s) == 0.0)
    assert (np.diff(found.order)[at_once] > 0).all()
