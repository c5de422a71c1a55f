"""Replays an open load on a prefill and a decode pool and condenses it into statistics over requests."""

import math
from dataclasses import dataclass, replace

import numpy as np

from solver.deployment.kv_transfer import ServingPool
from solver.engine.disaggregated import KvLink, Pool, prompt_cache_bytes, simulate_disaggregated
from solver.engine.replayable import MOST_REQUESTS
from solver.engine.simulate import Schedule, simulate
from solver.errors import InvalidInputError, SaturatedError, UnsupportedError
from solver.replay.crowds import lane_seats
from solver.replay.one_stream import (
    STEADY_REQUESTS,
    STEADY_WARM_UP_FRACTION,
    Replay,
    Statistics,
    Vector,
    sampled_requests,
    statistics,
    weighted_statistics,
)
from solver.sessions import spread_lengths
from solver.workload import Load, Traffic

REQUESTS_PER_LANE = 500
MOST_STEADY_REQUESTS = 32_000
BUSY_FRACTION = 0.9
"""Share of time, or of seats, from which a part may be above its capacity, so that capacity is worth finding."""
CAPACITY_REQUESTS = 2_000
FINITE_SATURATION_MARGIN = 1.1


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Share of the datasheet memory bandwidth and matrix rate that a pool's devices use on average."""

    memory: float
    compute: float


@dataclass(frozen=True, slots=True)
class DisaggregatedReplay:
    """statistics: of the whole, times in seconds. transfer_s: of prompts' caches, waiting included. link: per lane."""

    statistics: Replay
    transfer_s: Statistics
    prefill: Utilisation
    decode: Utilisation
    prefill_busy_fraction: float
    link_busy_fraction: float
    decode_busy_fraction: float


def sent_tokens(traffic: Traffic, prompt: int) -> int:
    """Prompt tokens whose cache travels: a shared prefix is cached in both pools.

    >>> from solver.lengths import fixed_lengths
    >>> sent_tokens(Traffic(fixed_lengths(100), fixed_lengths(1), 0.25), 100)
    75
    """
    return prompt - int(prompt * traffic.shared_prefix_fraction)


def cache_bytes_sent(prefill: ServingPool, decode: ServingPool, traffic: Traffic, prompt: int) -> float:
    """Bytes of one prompt's cache on its way; heads copied by tensor parallelism travel once for each copy needed."""
    own, other = prefill.configuration, decode.configuration
    degree = max(own.layout.tensor_parallel, other.layout.tensor_parallel)
    return prompt_cache_bytes(own.shape, own.precision.kv_cache, sent_tokens(traffic, prompt), degree)


def pool_schedule(pool: ServingPool, traffic: Traffic) -> Schedule:
    """How one lane of the pool schedules; its pipeline's other lanes contend with it."""
    schedule = pool.configuration.schedule(traffic.shared_prefix_fraction)
    return replace(schedule, contending_lanes=pool.configuration.batches - 1)


def prefill_capacity_requests_per_s(pool: ServingPool, traffic: Traffic) -> float:
    """Most prompts per second the prefill pool completes, whatever the latency."""
    schedule = pool_schedule(pool, traffic)
    rng = np.random.default_rng(7)
    prompts = spread_lengths(traffic.prompt, CAPACITY_REQUESTS, rng)
    clients = min(lane_seats(schedule, traffic), CAPACITY_REQUESTS // 4)
    trace = simulate(pool.configuration.tables(), schedule, prompts, np.ones_like(prompts), concurrency=max(1, clients))
    return _middle_rate(trace.completed_s, trace.duration_s) * pool.lanes


def decode_capacity_requests_per_s(pool: ServingPool, traffic: Traffic) -> float:
    """Most replies per second the decode pool completes, whatever the latency; endless where replies have one token."""
    if traffic.output.maximum < 2:
        return math.inf
    schedule = replace(pool_schedule(pool, traffic), prefilled=True)
    seats = lane_seats(schedule, traffic)
    count = min(8 * seats, 2 * STEADY_REQUESTS)
    rng = np.random.default_rng(7)
    prompts = spread_lengths(traffic.prompt, count, rng)
    # A reply of one token never gets here; one of two stands for it, which counts it as work it is not.
    outputs = np.maximum(2, spread_lengths(traffic.output, count, rng))
    trace = simulate(pool.configuration.tables(), schedule, prompts, outputs, concurrency=seats)
    return _middle_rate(trace.completed_s, trace.duration_s) * pool.lanes


def link_capacity_requests_per_s(prefill: ServingPool, decode: ServingPool, link: KvLink, traffic: Traffic) -> float:
    """Most caches per second that all lanes of the prefill pool send: lanes / E[latency + bytes / rate]."""
    mean_s = math.fsum(
        share * (link.latency_s + cache_bytes_sent(prefill, decode, traffic, tokens) / link.bytes_per_s)
        for tokens, share in zip(traffic.prompt.tokens, traffic.prompt.shares, strict=True)
    )
    leaving = math.fsum(s for t, s in zip(traffic.output.tokens, traffic.output.shares, strict=True) if t > 1)
    return prefill.lanes / (mean_s * leaving) if mean_s * leaving > 0 else math.inf


def disaggregated_capacity_requests_per_s(
    prefill: ServingPool, decode: ServingPool, link: KvLink, traffic: Traffic
) -> float:
    """The smallest of what the prefill pool, the link and the decode pool complete."""
    return min(
        prefill_capacity_requests_per_s(prefill, traffic),
        link_capacity_requests_per_s(prefill, decode, link, traffic),
        decode_capacity_requests_per_s(decode, traffic),
    )


def _middle_rate(completed_s: Vector, duration_s: float) -> float:
    """Completions per second in the middle of a run that starts empty and drains."""
    ends = np.sort(completed_s)
    first, last = int(len(ends) * 0.3), int(len(ends) * 0.9) - 1
    span = float(ends[last] - ends[first]) if last > first else 0.0
    return (last - first) / span if span > 0 else len(ends) / max(duration_s, 1e-12)


def replay_disaggregated(
    prefill: ServingPool,
    decode: ServingPool,
    link: KvLink,
    traffic: Traffic,
    load: Load,
    *,
    seed: int = 1,
    requests: int | None = None,
) -> DisaggregatedReplay:
    """Simulate both pools under the load.

    Pools whose lane counts share a divisor are simulated at that part of their size and of the load. requests: replayed
    in steady state. Raises UnsupportedError for a closed load, SaturatedError for one above capacity, and
    InvalidInputError for an impossible one.
    """
    _check_possible(prefill, decode, load)
    part = math.gcd(prefill.lanes, decode.lanes)
    lanes, rate = (prefill.lanes // part, decode.lanes // part), load.requests_per_s / part
    count = _requests_replayed(load, requests, part, max(lanes))
    prompts, outputs, unit_arrivals = sampled_requests(traffic, count, seed)
    lengths, length_of = np.unique(prompts, return_inverse=True)
    sizes = np.array([cache_bytes_sent(prefill, decode, traffic, tokens) for tokens in lengths.tolist()])
    first_pool = Pool(prefill.configuration.tables(), pool_schedule(prefill, traffic), lanes[0])
    second_pool = Pool(decode.configuration.tables(), pool_schedule(decode, traffic), lanes[1])
    arrivals_s = unit_arrivals / rate
    trace = simulate_disaggregated(first_pool, second_pool, link, sizes[length_of], prompts, outputs, arrivals_s)
    seated = rate / lanes[1] * float((trace.end_to_end_s - trace.time_to_first_token_s).mean())
    prompts_seated = rate / lanes[0] * float(np.mean(trace.time_to_first_token_s))
    if (
        max(trace.prefill_busy_fraction, trace.link_busy_fraction) > BUSY_FRACTION
        or seated > BUSY_FRACTION * lane_seats(second_pool.schedule, traffic)
        or prompts_seated > BUSY_FRACTION * lane_seats(first_pool.schedule, traffic)
    ):
        _check_within_capacity(prefill, decode, link, traffic, load)
    prefill_used = _used(first_pool, trace.prefill_work, trace.duration_s)
    decode_used = _used(second_pool, trace.decode_work, trace.duration_s)
    first = 0 if load.requests is not None else int(count * STEADY_WARM_UP_FRACTION)
    several = outputs[first:] > 1
    served = count / trace.duration_s if load.requests is not None else rate
    tokens = trace.output_tokens / count
    return DisaggregatedReplay(
        statistics=Replay(
            time_to_first_token_s=statistics(trace.time_to_first_token_s[first:]),
            time_per_output_token_s=_statistics_or_zero(trace.time_per_output_token_s[first:][several]),
            inter_token_s=weighted_statistics(trace.gaps),
            end_to_end_s=statistics(trace.end_to_end_s[first:]),
            output_tokens_per_s=served * tokens * part,
            requests_per_s=served * part,
            memory_utilisation=decode_used.memory,
            compute_utilisation=prefill_used.compute,
            mean_in_flight=seated,
            preemptions=trace.preemptions,
        ),
        transfer_s=_statistics_or_zero(trace.transfer_s[first:][several]),
        prefill=prefill_used,
        decode=decode_used,
        prefill_busy_fraction=trace.prefill_busy_fraction,
        link_busy_fraction=trace.link_busy_fraction,
        decode_busy_fraction=trace.decode_busy_fraction,
    )


def _check_possible(prefill: ServingPool, decode: ServingPool, load: Load) -> None:
    """Raises UnsupportedError for a closed load, InvalidInputError for one without a rate, or for an empty pool."""
    if load.kind != "open":
        raise UnsupportedError(
            "load_kind", "pools of their own are predicted under an open load: state requests_per_s, not concurrency"
        )
    if not (math.isfinite(load.requests_per_s) and load.requests_per_s > 0):
        raise InvalidInputError("an open load needs a positive rate")
    if prefill.replicas < 1 or decode.replicas < 1:
        raise InvalidInputError("each pool needs at least one replica")


def _requests_replayed(load: Load, requests: int | None, part: int, lanes: int) -> int:
    """How many requests one ``part``-th of the pools replays. lanes: of the larger pool. Raises InvalidInputError for too many."""
    if load.requests is not None:
        count = max(1, round(load.requests / part))
    else:
        count = min(requests or max(STEADY_REQUESTS, REQUESTS_PER_LANE * lanes), MOST_STEADY_REQUESTS)
    if count > MOST_REQUESTS:
        raise InvalidInputError(f"{count} requests are more than the {MOST_REQUESTS} one simulation accepts")
    return count


def _check_within_capacity(
    prefill: ServingPool, decode: ServingPool, link: KvLink, traffic: Traffic, load: Load
) -> None:
    """Raises SaturatedError for a load above what the pools and their link complete; one that ends may go somewhat beyond it."""
    limit = disaggregated_capacity_requests_per_s(prefill, decode, link, traffic)
    if load.requests_per_s > limit * (FINITE_SATURATION_MARGIN if load.requests is not None else 1.0):
        raise SaturatedError(limit)


def _used(pool: Pool, work: tuple[float, float], duration_s: float) -> Utilisation:
    """(bytes, FLOPs) per rank, over all lanes of a pool, as shares of what its devices' datasheets allow in that time."""
    spent_s = duration_s * pool.replicas
    return Utilisation(
        work[0] / spent_s / pool.tables.peak_bytes_per_s, work[1] / spent_s / pool.tables.peak_flop_per_s
    )


def _statistics_or_zero(values_s: Vector) -> Statistics:
    """Statistics in seconds; of no value at all they are 0."""
    return statistics(values_s if len(values_s) else [0.0])
