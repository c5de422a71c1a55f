"""Crowds: closed loops that keep every seat of a lane taken, which say what it completes at most."""

import math

import numpy as np
from numpy.typing import NDArray

from solver.engine.replayable import Prefixes
from solver.engine.simulate import Schedule, SimulationTrace, simulate
from solver.replay.in_step import under_way
from solver.step.tables import StepTables
from solver.workload import Traffic

Matrix = NDArray[np.float64]
Whole = NDArray[np.int64]

CAPACITY_TURNOVERS, MOST_CAPACITY_REQUESTS = 24, 12_000
"""How often all seats are taken anew while capacity is measured: a run that starts with every seat empty begins with short replies."""
GLANCE_TURNOVERS, GLANCE_EXCESS = 6, 1.5
"""Of a glance, and what is completed in one over what is in the long run, at most, and some: ``python -m tests.bench.lasting_queues``."""
LEAST_CAPACITY_TURNOVERS = 4
"""The same where that would take more requests: of fewer, the middle of the run is not what it settles to."""
WAITING_FRACTION = 0.125
"""Requests that wait while capacity is measured, over seats."""
CROWDED_FRACTION = 0.9
"""Share of the seats in use from which a load may be above capacity, so that capacity is worth simulating."""
GROWING = 1.2
"""Times as many requests in flight in the last quarter of a run as in its second: a load that may be above capacity."""
CROWD_SEED = 7


def lane_seats(schedule: Schedule, traffic: Traffic) -> int:
    """Requests one lane can have in progress at once: engine seats, or what the KV cache holds at mean context."""
    held = traffic.prompt.mean * (1.0 - traffic.shared_memory_fraction) + traffic.output.mean / 2.0
    held += schedule.block_slack_tokens
    return int(max(1, min(schedule.max_sequences, schedule.kv_cache_tokens / max(held, 1.0))))


def crowd_for(seats: int) -> int:
    """Clients that keep every seat taken and a few requests waiting.

    With no more clients than seats, new prompts come bunched and leave steps without any between them, which an engine with
    a queue does not have: where prompts slow a step much, it completes less. A rate between the two is one at which a queue,
    once there is one, never goes away.

    >>> crowd_for(1), crowd_for(512)
    (2, 576)
    """
    return seats + math.ceil(WAITING_FRACTION * seats)


def crowd_requests(seats: int, turnovers: int = CAPACITY_TURNOVERS) -> int:
    """Requests that a run of a crowd takes to show what is completed in the long run; with fewer turnovers, about.

    >>> crowd_requests(64), crowd_requests(1024), crowd_requests(4096)
    (1536, 12000, 16384)
    """
    return max(min(turnovers * seats, MOST_CAPACITY_REQUESTS), LEAST_CAPACITY_TURNOVERS * seats)


def crowded_requests_per_s(
    tables: StepTables,
    schedule: Schedule,
    prompts: Whole,
    outputs: Whole,
    seats: int,
    *,
    prefixes: Prefixes | None = None,
) -> float:
    """Requests per second that one lane completes in the long run while all its seats are taken and some wait.

    schedule: of the lane among the others of its pipeline (``contending_lanes``). The crowd is under way, each client at another place
    of its request: where replies are about as long, clients that begin together end together, again and again, and an engine that has
    all prompts first and no prompt later completes up to half as much again as one to which requests come one by one.
    """
    clients = crowd_for(seats)
    begun = under_way(outputs, clients, CROWD_SEED)
    trace = simulate(tables, schedule, prompts, begun, concurrency=clients, prefixes=prefixes, notes_gaps=False)
    return steady_rate(trace)


def may_be_above_capacity(end_to_end_s: Matrix, requests_per_s: float, seats: int) -> bool:
    """Is capacity worth simulating, after draws of an open load on one lane?

    end_to_end_s: (draws, requests), in order of arrival. By Little's law the rate times their mean is what is in flight: nearly all
    seats, or, once a crowd has been taken anew, ever more. A queue in front of short replies grows for long before it is seats long.
    """
    in_flight = requests_per_s * end_to_end_s.mean(axis=1)
    quarter = end_to_end_s.shape[1] // 4
    second, last = end_to_end_s[:, quarter : 2 * quarter], end_to_end_s[:, 3 * quarter :]
    is_settled = quarter > requests_per_s * second.mean(axis=1) if quarter else np.zeros(len(in_flight), dtype=bool)
    grows = is_settled & (last.mean(axis=1) > GROWING * second.mean(axis=1)) if quarter else is_settled
    return bool((in_flight > CROWDED_FRACTION * seats).any() or grows.any())


def steady_rate(trace: SimulationTrace) -> float:
    """Requests per second that a closed loop completes in the middle of its run.

    It starts with every seat empty and ends draining: the middle is the steady state.
    """
    count = len(trace.completed_s)
    ends = np.sort(trace.completed_s)
    first, last = int(count * 0.3), int(count * 0.9) - 1
    span = float(ends[last] - ends[first])
    return (last - first) / span if span > 0 else count / max(trace.duration_s, 1e-12)
