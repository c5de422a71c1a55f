"""What a candidate carries if it only prefills, or only decodes: screening, on the optimistic side.

A prefill replica is a queue of prompts, M/G/1 with the wait of ``engine.screened_capacity.queue_wait_s``; prompts share steps, so
that one adds least where a step is full:  w = step(U) · S/U + pairs,  rate = ρ · lanes / w.  A decode replica is the
steady state without prompts:  X = c / ((Q − 1) · τ(c)).  The transfer is left out of both. The event simulation gives every
chosen row its true capacity.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.candidates.space import SearchSpace
from solver.engine.screened_capacity import IN_FLIGHT_GRID, ScreenedTimes, capacity, squared_variation
from solver.engine.steady import OperatingPoints, StepGrid, interpolate, pairs_s
from solver.lengths import Lengths
from solver.workload import Percentile, Targets, Traffic

Floats = NDArray[np.float64]

LEAST_REQUESTS_PER_S = 1e-9
"""Below this a replica is said not to serve the workload at all."""

LOADS: Floats = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99])
"""Shares of its time that a prefill replica may be busy: the grid on which the largest is found."""


@dataclass(frozen=True, slots=True)
class RoleCapacities:
    """Requests per second of each row of a space in each role, within the targets; 0: it cannot."""

    prefill: Floats
    decode: Floats


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream of requests on the rows of a space, (N,) and (N, K): what a role's capacity follows from.

    grid: step times of the rows. margin: factor on predicted times. network_s: round trip between users and row.
    """

    space: SearchSpace
    grid: StepGrid
    points: OperatingPoints
    traffic: Traffic
    targets: Targets
    margin: Floats | float = 1.0
    network_s: Floats | float = 0.0


def role_capacities(stream: Streamed, allowed: NDArray[np.bool_]) -> RoleCapacities:
    """Every row of the space. Rows that span nodes, draft or split devices, or stand in nodes without a network, carry nothing; nor do
    those of smaller steps, which spare replies that are elsewhere, or behind more processes than are asked."""
    space = stream.space
    able = allowed & space.plain & (space.nodes_per_replica == 1)
    able &= space.batched_tokens == space.settings.max_batched_tokens
    able &= space.api_servers == space.settings.api_servers
    networked = [own.network_bytes_per_s > 0.0 and own.device.partition is None for own in space.platforms]
    able &= np.array(networked, dtype=np.bool_)[space.platform_index]
    return RoleCapacities(
        np.where(able, prefill_requests_per_s(stream), 0.0), np.where(able, decode_requests_per_s(stream), 0.0)
    )


def prefill_requests_per_s(stream: Streamed) -> Floats:
    """Largest rate of prompts at which TTFT holds, and end-to-end time would if replies were of one token, by row."""
    space, grid, traffic, targets = stream.space, stream.grid, stream.traffic, stream.targets
    most = float(space.settings.max_batched_tokens)
    prompt = max(1.0, traffic.prompt.mean * (1.0 - traffic.shared_prefix_fraction))
    cached = traffic.prompt.mean - prompt
    pairs = pairs_s(grid, prompt, cached)
    chunk = min(prompt, most)
    alone = interpolate(grid.mixed_s, np.full_like(grid.sequence_s, chunk)) * (prompt / chunk) + pairs
    together = interpolate(grid.mixed_s, np.full_like(grid.sequence_s, most)) * (prompt / most) + pairs
    service = np.minimum(alone, together)
    ready = np.zeros_like(service)
    for front, members in space.fronts:
        ready[members] = front.request_overhead_s + front.request_ingest_s + front.prompt_token_s * traffic.prompt.mean
    fits = np.ones((len(space.rows), len(LOADS)), dtype=np.bool_)
    for percentile, limit in (*targets.time_to_first_token_s.items(), *targets.end_to_end_s.items()):
        longer = 1.0
        if percentile != "mean":
            longer = traffic.prompt.quantile(float(percentile[1:]) / 100.0) / max(traffic.prompt.mean, 1.0)
        # A quantile of wait and own work together is at least that of either.
        behind = alone * min(longer, 1.0) + _wait_s(service, traffic.prompt, percentile)
        value = ready + np.maximum(alone * longer, behind)
        fits &= value * stream.margin + stream.network_s <= limit
    best = np.where(fits, LOADS[None, :], 0.0).max(axis=1)
    rate: Floats = best * grid.lanes[:, 0] / service[:, 0]
    return np.where(rate > LEAST_REQUESTS_PER_S, rate, 0.0)


def _wait_s(service: Floats, prompt: Lengths, percentile: Percentile) -> Floats:
    """Wait behind other prompts at every load, (N, K): see ``engine.screened_capacity.queue_wait_s``."""
    load = LOADS[None, :]
    scale = service * (1.0 + squared_variation(prompt)) / (2.0 * (1.0 - load))
    if percentile == "mean":
        return np.asarray(load * scale)
    tail = 1.0 - float(percentile[1:]) / 100.0
    return np.asarray(scale * np.maximum(0.0, np.log(load / tail)))


def decode_requests_per_s(stream: Streamed) -> Floats:
    """Largest rate of replies at which TPOT holds, end-to-end time would if first tokens took no time, and the cache holds them,
    by row."""
    traffic, grid, points = stream.traffic, stream.grid, stream.points
    output = max(2.0, traffic.output.mean)
    context = traffic.prompt.mean + output / 2.0
    lane = points.in_flight / grid.lanes
    token = interpolate(grid.decode_s, lane) + lane * grid.sequence_s
    for limit, seconds, _ in grid.context:
        token = token + seconds * lane * min(context, limit)
    rate = lane / (token * (output - 1.0)) * grid.lanes
    alone: OperatingPoints = replace(
        points,
        requests_per_s=rate,
        time_per_output_token_s=token,
        time_to_first_token_s=np.zeros_like(token),
        prefill_s=np.zeros_like(token),
        passed_s=np.zeros_like(token),
        interruption_s=np.zeros_like(token),
    )
    only = replace(stream.targets, time_to_first_token_s={})
    found = capacity(ScreenedTimes(alone, traffic), only, stream.margin, stream.network_s)
    assert points.in_flight.shape[1] == len(IN_FLIGHT_GRID)
    return np.where(found.requests_per_s > LEAST_REQUESTS_PER_S, found.requests_per_s, 0.0)
