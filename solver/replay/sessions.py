"""Replays turns of sessions on one lane: in steady state at a rate, or by clients one session after the other."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solver.deployment.configuration import Configuration
from solver.engine.replayable import MOST_REQUESTS, Prefixes
from solver.engine.simulate import Schedule, SessionTrace, simulate_sessions
from solver.errors import InvalidInputError
from solver.replay.crowds import CROWD_SEED, crowd_requests, crowded_requests_per_s, lane_seats, steady_rate
from solver.replay.session_draws import SessionDraw, closed_draw, open_draw, sessions_of
from solver.step.tables import StepTables
from solver.workload import Traffic

QUEUED_OVER_SEATS = 4
"""Sessions whose turns wait, over seats, where it is asked what is completed once there is a queue."""
QUEUED_TURNS, MOST_QUEUED_TURNS, MOST_QUEUED_TOKENS = 12, 60_000, 60_000_000
"""Turns of each client of such a run, of all at most, and tokens of all their replies at most."""
SERVICE_SEED, SERVICE_TURNS = 101, 500
"""Of the look that says how long a turn takes, which is where sessions stand as a draw begins."""
KEPT_LOOKS = 8
"""How many of them are kept, for the draws of one load."""
ALONE_TURNS = 24
"""Of the look that says how long a turn takes that has a replica to itself."""


def turn_alone_s(tables: StepTables, schedule: Schedule, traffic: Traffic) -> float:
    """Mean seconds that a turn takes of sessions that come to a lane one after the other."""
    alone = replace(traffic, sessions=replace(sessions_of(traffic), think_s=0.0, spread_over=1))
    return float(replay_closed(tables, schedule, alone, 1, ALONE_TURNS, SERVICE_SEED).trace.end_to_end_s.mean())


@lru_cache(maxsize=KEPT_LOOKS)
def turn_s(
    tables: StepTables, schedule: Schedule, traffic: Traffic, requests_per_s: float, alone_s: float | None = None
) -> float:
    """Mean seconds that a turn takes at a rate of one lane, by a short run: what draws of that rate begin with. Kept: each of them asks.

    alone_s: ``turn_alone_s``, where it is known: the run itself begins with that. Routers that were told that turns take no time at
    all would send them where nobody sends them.
    """
    begins_with_s = turn_alone_s(tables, schedule, traffic) if alone_s is None else alone_s
    look = _drawn(schedule, traffic, requests_per_s, begins_with_s, SERVICE_TURNS, SERVICE_SEED)
    return float(_run(tables, schedule, look).trace.end_to_end_s.mean())


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
    ``turn_s``. Raises InvalidInputError for an impossible one."""
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
    schedule = replace(schedule, contending_lanes=configuration.layout.pipeline_parallel - 1)
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
