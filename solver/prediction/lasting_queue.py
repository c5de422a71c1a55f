"""Queues that stay: a replica that serves a load as it comes may complete less than that once all its seats are taken.

A crowd on all seats may be slower than a smaller one: with a sequence on every seat any prompt takes a step beyond the captured
graphs, and a cache that all of them fill evicts some, whose prompts are computed again. Then a load holds on for hours below what the
crowd completes only as long as nothing makes the requests wait: after a burst, or while another replica is away, they go on to wait.
Fewer seats mend it, since those who wait then wait outside. Turns of sessions that wait are of more sessions at a time than the cache
holds, so that each finds less of its prompt there and takes longer; that is mended by nothing but less load.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from solver.deployment.configuration import Configuration
from solver.deployment.kept_tables import TablesOf
from solver.replay.crowds import CAPACITY_TURNOVERS, GLANCE_EXCESS, GLANCE_TURNOVERS
from solver.replay.one_stream import capacity_requests_per_s
from solver.replay.sessions import queued
from solver.replay.streams import RequestStream, mixed_capacity_requests_per_s
from solver.step.tables import StepTables
from solver.workload import Load, Traffic

TURNS_ERROR_FRACTION = 0.05
"""By which two runs of sessions with a queue differ: so little less than is asked for says nothing."""
NEXT_SEATS = 0.875
"""From one number of seats that is tried to the next."""


@dataclass(frozen=True, slots=True)
class LastingQueue:
    """What a deployment completes once a queue has come up, which is less than it is asked for, in requests per second.

    max_sequences: seats of a replica with which it then completes the most, its own among those that are tried;
    settled_requests_per_s: what that is. found_fraction: share of prompts that is then found in the cache, of turns of sessions.
    """

    completed_requests_per_s: float
    max_sequences: int
    settled_requests_per_s: float
    found_fraction: float | None = None


def lasting_queue(
    configuration: Configuration,
    tables: StepTables,
    traffic: Traffic,
    load: Load,
    tables_of: TablesOf,
) -> LastingQueue | None:
    """The queue that a steady open load may not get rid of; None where it goes by itself, and where that was not found out
    (``solver.replay.sessions.queued``). tables_of: makes step tables, or has kept them."""
    if load.kind != "open" or load.requests is not None:
        return None
    if traffic.sessions is not None:
        return _of_turns(configuration, tables, traffic, load)
    return _of_requests(
        configuration,
        tables,
        load.requests_per_s,
        lambda on, its, n: capacity_requests_per_s(on, its, traffic, n),
        tables_of,
    )


def lasting_queue_of_mix(
    configuration: Configuration, tables: StepTables, streams: Sequence[RequestStream], tables_of: TablesOf
) -> LastingQueue | None:
    """The same of several streams of requests at once."""
    total = math.fsum(one.requests_per_s for one in streams)
    return _of_requests(
        configuration, tables, total, lambda on, its, n: mixed_capacity_requests_per_s(on, its, streams, n), tables_of
    )


def _of_requests(
    configuration: Configuration,
    tables: StepTables,
    requests_per_s: float,
    capacity: Callable[[Configuration, StepTables, int], float],
    tables_of: TablesOf,
) -> LastingQueue | None:
    """Seats are tried downwards for as long as a crowd on them completes no less than half of the most that was found.

    capacity: requests per second that a crowd completes, taking all seats so many times.
    """
    if capacity(configuration, tables, GLANCE_TURNOVERS) >= GLANCE_EXCESS * requests_per_s:
        return None
    crowded = capacity(configuration, tables, CAPACITY_TURNOVERS)
    if crowded >= requests_per_s:
        return None
    engine = configuration.engine
    best, most, completed = engine.max_sequences, crowded, crowded
    seats = int(engine.max_sequences * NEXT_SEATS)
    while seats >= 1 and completed >= most / 2.0:
        fewer = replace(configuration, engine=replace(engine, max_sequences=seats))
        completed = capacity(fewer, tables_of(fewer), CAPACITY_TURNOVERS)
        if completed > most:
            best, most = seats, completed
        seats = int(seats * NEXT_SEATS)
    return LastingQueue(crowded, best, most)


def _of_turns(configuration: Configuration, tables: StepTables, traffic: Traffic, load: Load) -> LastingQueue | None:
    """The same of turns of sessions, whatever the seats."""
    schedule = replace(configuration.schedule(), contending_lanes=configuration.batches - 1)
    found = queued(tables, schedule, traffic, load.requests_per_s / configuration.lanes)
    if found is None:
        return None
    completed = found.requests_per_s * configuration.lanes
    if completed >= load.requests_per_s * (1.0 - TURNS_ERROR_FRACTION):
        return None
    return LastingQueue(completed, configuration.engine.max_sequences, completed, found.found_fraction)
