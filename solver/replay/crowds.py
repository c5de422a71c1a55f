"""Crowds: closed loops that keep every seat of a lane taken, which say what it completes at most."""

import math

import numpy as np

from solver.engine.simulate import Schedule, SimulationTrace
from solver.workload import Traffic

CAPACITY_TURNOVERS, MOST_CAPACITY_REQUESTS = 24, 12_000
"""How often all seats are taken anew while capacity is measured: a run that starts with every seat empty begins with short replies."""
WAITING_FRACTION = 0.125
"""Requests that wait while capacity is measured, over seats."""


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


def crowd_requests(seats: int) -> int:
    """Requests that a run of a crowd takes to show what is completed in the long run."""
    return min(CAPACITY_TURNOVERS * seats, MOST_CAPACITY_REQUESTS)


def steady_rate(trace: SimulationTrace) -> float:
    """Requests per second that a closed loop completes in the middle of its run.

    It starts with every seat empty and ends draining: the middle is the steady state.
    """
    count = len(trace.completed_s)
    ends = np.sort(trace.completed_s)
    first, last = int(count * 0.3), int(count * 0.9) - 1
    span = float(ends[last] - ends[first])
    return (last - first) / span if span > 0 else count / max(trace.duration_s, 1e-12)
