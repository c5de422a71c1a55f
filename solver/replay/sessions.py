"""Replays turns of sessions on one lane: in steady state at a rate, or by clients one session after the other."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solver.deployment.configuration import Configuration
from solver.engine.replayable import MOST_REQUESTS, Prefixes
from solver.engine.simulate import Schedule, SessionTrace, simulate_sessions
from solver.errors import InvalidInputError
from solver.replay.crowds import (
    CROWD_SEED,
    CROWDED_FRACTION,
    crowd_requests,
    crowded_requests_per_s,
    lane_seats,
    steady_rate,
)
from solver.replay.draw_sizes import DRAW_SEEDS, QUICK_REQUESTS, QUICK_SEED
from solver.replay.session_draws import SessionDraw, closed_draw, open_draw, sessions_of
from solver.replay.turn_time import longer_than_alone
from solver.step.tables import StepTables
from solver.workload import Sessions, Traffic

QUEUED_OVER_SEATS = 4
"""Sessions whose turns wait, over seats, where it is asked what is completed once there is a queue."""
QUEUED_TURNS, MOST_QUEUED_TURNS, MOST_QUEUED_TOKENS = 12, 60_000, 60_000_000
"""Turns of each client of such a run, of all at most, and tokens of all their replies at most."""
SERVICE_SEED = 101
"""Of the run that says how long a turn takes by itself."""
GAP_FRACTION, TURN_FRACTION = 0.05, 0.2
"""How far turns may take other than a draw begins with: of the time between two of a session, on which the rate turns, and where routers
look at who is in progress, of what a turn takes."""
MOST_PACED = 3
"""Runs until they agree: above capacity none do, and near it the third is within a few per cent."""
KEPT_LOOKS = 8
"""How many loads' are kept, for their draws."""
ALONE_TURNS = 24
"""Of the look that says how long a turn takes that has a replica to itself."""


def turn_alone_s(tables: StepTables, schedule: Schedule, traffic: Traffic) -> float:
    """Mean seconds that a turn takes of sessions that come to a lane one after the other."""
    alone = replace(traffic, sessions=replace(sessions_of(traffic), think_s=0.0, spread_over=1))
    return float(replay_closed(tables, schedule, alone, 1, ALONE_TURNS, SERVICE_SEED).trace.end_to_end_s.mean())


@dataclass(frozen=True, slots=True, eq=False)
class Paced:
    """An open load whose turns take what it was begun with: that time, and the run of ``seed`` that shows it."""

    service_s: float
    seed: int
    run: SessionTrace


def is_paced(sessions: Sessions, begun_with_s: float, took_s: float) -> bool:
    """Did turns take about what the draw was begun with? Where they take longer, the next ones are sent later than drawn, and the load is
    no longer of its rate.

    >>> from solver.lengths import fixed_lengths
    >>> chat = Sessions(fixed_lengths(3), fixed_lengths(10), 30.0)
    >>> is_paced(chat, 2.0, 3.0), is_paced(chat, 2.0, 4.0), is_paced(replace(chat, spread_over=2, routing="least_loaded"), 2.0, 3.0)
    (True, False, False)
    """
    off_s = abs(took_s - begun_with_s)
    is_watched = sessions.spread_over > 1 and sessions.routing != "random"
    if is_watched and off_s > TURN_FRACTION * took_s:
        return False
    return off_s <= GAP_FRACTION * (sessions.think_s + took_s)


@lru_cache(maxsize=KEPT_LOOKS)
def paced(
    tables: StepTables,
    schedule: Schedule,
    traffic: Traffic,
    requests_per_s: float,
    count: int = QUICK_REQUESTS,
    alone_s: float | None = None,
) -> Paced:
    """What a turn takes at a rate of one lane, by runs of at least ``count`` turns until one takes what it was begun with: what draws of
    that rate begin with. Kept: each of them asks.

    A look begins with what a turn takes about (``longer_than_alone``), a longer run with what the look says; the run is that of a quick
    look or of a first draw. alone_s: ``turn_alone_s``, where it is known. Raises InvalidInputError for an impossible load.
    """
    sessions = sessions_of(traffic)
    if count <= QUICK_REQUESTS:
        count, seed = QUICK_REQUESTS, QUICK_SEED
        service_s = turn_alone_s(tables, schedule, traffic) if alone_s is None else alone_s
        service_s *= longer_than_alone(tables, schedule, traffic, requests_per_s)
    else:
        seed = DRAW_SEEDS[0]
        service_s = paced(tables, schedule, traffic, requests_per_s, QUICK_REQUESTS, alone_s).service_s
    seats = lane_seats(schedule, traffic)
    for last in range(MOST_PACED):
        run = replay_open(tables, schedule, traffic, requests_per_s, service_s, count, seed, notes_gaps=False)
        took_s = float(run.trace.end_to_end_s.mean())
        is_full = requests_per_s * took_s > CROWDED_FRACTION * seats
        if is_full or last == MOST_PACED - 1 or is_paced(sessions, service_s, took_s):
            break
        service_s = took_s
    return Paced(service_s, seed, run)


def replay_open(
    tables: StepTables,
    schedule: Schedule,
    traffic: Traffic,
    requests_per_s: float,
    service_s: float,
    count: int,
    seed: int,
    *,
    notes_gaps: bool = True,
) -> SessionTrace:
    """An open load of ``count`` turns at a rate of one lane, with sessions under way and a cache in use as it begins. service_s: see
    ``paced``. Raises InvalidInputError for an impossible one."""
    draw = _drawn(schedule, traffic, requests_per_s, service_s, count, seed)
    return _run(tables, schedule, draw, notes_gaps=notes_gaps)


def _drawn(
    schedule: Schedule, traffic: Traffic, requests_per_s: float, service_s: float, count: int, seed: int
) -> SessionDraw:
    reach = max(schedule.kv_cache_tokens, schedule.host_cache_tokens, schedule.disk_cache_tokens)
    size = schedule.block_tokens
    return open_draw(traffic, requests_per_s, service_s, count, seed, block_tokens=size, cache_tokens=reach)


def replay_closed(
    tables: StepTables, schedule: Schedule, traffic: Traffic, clients: int, count: int, seed: int
) -> SessionTrace:
    """Clients that go through sessions, thinking between turns. Raises InvalidInputError for an impossible load."""
    if count > MOST_REQUESTS:
        raise InvalidInputError(f"{count} requests are more than the {MOST_REQUESTS} one simulation accepts")
    draw = closed_draw(traffic, count, seed, block_tokens=schedule.block_tokens)
    return simulate_sessions(tables, schedule, draw.prompts, draw.outputs, draw.turns, concurrency=clients)


def _run(tables: StepTables, schedule: Schedule, draw: SessionDraw, *, notes_gaps: bool = False) -> SessionTrace:
    return simulate_sessions(
        tables, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=draw.arrivals_s, notes_gaps=notes_gaps
    )


def capacity_requests_per_s(
    configuration: Configuration, tables: StepTables, traffic: Traffic, run: SessionTrace
) -> float:
    """Most turns per second the deployment completes while some wait, each finding of its prompt what it found in ``run``."""
    schedule = configuration.schedule()
    seats = lane_seats(schedule, traffic)
    turns = np.random.default_rng(CROWD_SEED).integers(len(run.prompts), size=crowd_requests(seats))
    prompts, outputs, cached = run.prompts[turns], run.trace.outputs[turns], run.cached_tokens[turns]
    size = schedule.block_tokens
    opening = (traffic.sessions.opening_tokens if traffic.sessions else 0) // size * size
    prefixes = Prefixes(cached, opening, np.full(len(turns), opening))
    schedule = replace(schedule, contending_lanes=configuration.batches - 1)
    per_lane = crowded_requests_per_s(tables, schedule, prompts, outputs, seats, prefixes=prefixes)
    return per_lane * configuration.lanes


@dataclass(frozen=True, slots=True)
class Queued:
    """Turns per second that one lane completes with a queue, and the share of their prompts that it finds in its cache."""

    requests_per_s: float
    found_fraction: float


def queued(tables: StepTables, schedule: Schedule, traffic: Traffic, requests_per_s: float) -> Queued | None:
    """What one lane completes once turns wait: so many more sessions are under way, and come by between two turns of one, that its cache
    has forgotten most of what it would find. None where that takes too long to simulate.

    Clients go through sessions: as many as think at this rate, and QUEUED_OVER_SEATS times the seats. Turns that are spread over several
    lanes are taken to stay on one, where each finds more: no lane completes more than that. Raises InvalidInputError.
    """
    sessions = sessions_of(traffic)
    traffic = replace(traffic, sessions=replace(sessions, spread_over=1))
    seats = lane_seats(schedule, traffic)
    clients = math.ceil(requests_per_s * sessions.think_s) + QUEUED_OVER_SEATS * seats
    count = max(crowd_requests(seats), QUEUED_TURNS * clients)
    if count > MOST_QUEUED_TURNS or count * traffic.output.mean > MOST_QUEUED_TOKENS:
        return None
    run = replay_closed(tables, schedule, traffic, clients, count, CROWD_SEED)
    return Queued(steady_rate(run.trace), run.found_fraction(count // 2))
