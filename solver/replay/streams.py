"""Replays several streams of requests through one engine at once, with statistics of each.

Arrivals of all streams together are one Poisson process, of which each request belongs to a stream with the probability
of its share of the rate (superposition and thinning of Poisson processes). A stream's prompts share a prefix of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.deployment.configuration import Configuration
from solver.engine.replayable import Prefixes
from solver.engine.simulate import Schedule, SimulationTrace, simulate
from solver.errors import InvalidInputError, SaturatedError
from solver.replay.crowds import (
    CAPACITY_TURNOVERS,
    CROWD_SEED,
    crowd_requests,
    crowded_requests_per_s,
    may_be_above_capacity,
)
from solver.replay.kept import kept
from solver.replay.one_stream import (
    STEADY_REQUESTS,
    STEADY_WARM_UP_FRACTION,
    Replay,
    Vector,
    Whole,
    condense,
    ended,
    poisson_arrivals_s,
    read_only,
    replay,
    statistics,
)
from solver.sessions import spread_lengths
from solver.step.tables import StepTables
from solver.workload import Load, Traffic

LEAST_OF_A_STREAM = 40
"""Requests of the rarest stream that a replay should hold: the 95th percentile of fewer is one or two requests."""
MOST_MIXED_REQUESTS = 3_000

Sample = tuple[Whole, Whole, Whole]
"""Stream, prompt tokens and output tokens of every request, in order of arrival."""


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Requests of one kind: their shape, and how many come to the deployment each second."""

    traffic: Traffic
    requests_per_s: float


@dataclass(frozen=True, slots=True)
class MixedReplay:
    """whole: over all requests. streams: over those of each, in the order given; utilisation is the engine's."""

    whole: Replay
    streams: tuple[Replay, ...]


def stream_counts(rates: Sequence[float], count: int) -> tuple[int, ...]:
    """How many of ``count`` requests are of each stream: its share of the rate, at least one (largest remainders).

    >>> stream_counts([6.0, 3.0, 1.0], 15)
    (9, 5, 1)
    """
    total = math.fsum(rates)
    exact = [count * rate / total for rate in rates]
    counts = [max(1, math.floor(e)) for e in exact]
    short = count - sum(counts)
    for k in sorted(range(len(rates)), key=lambda k: (math.floor(exact[k]) - exact[k], k))[: max(0, short)]:
        counts[k] += 1
    return tuple(counts)


@kept
def mixed_sample(streams: tuple[Traffic, ...], counts: tuple[int, ...], seed: int) -> Sample:
    """Each stream's lengths spread over its distribution, the streams shuffled among each other."""
    rng = np.random.default_rng(seed)
    prompt, output = [], []
    for traffic, number in zip(streams, counts, strict=True):
        prompt.append(spread_lengths(traffic.prompt, number, rng))
        output.append(ended(traffic, prompt[-1], spread_lengths(traffic.output, number, rng)))
    numbers = np.repeat(np.arange(len(counts)), counts)
    order = rng.permutation(len(numbers))
    return (
        read_only(numbers[order]),
        read_only(np.concatenate(prompt)[order]),
        read_only(np.concatenate(output)[order]),
    )


def stream_prefixes(streams: Sequence[RequestStream], sample: Sample) -> Prefixes:
    """What of every prompt is cached, and all prefixes together: each stream has one, as long as its longest share."""
    numbers, prompts, _ = sample
    fractions = np.array([one.traffic.shared_prefix_fraction for one in streams])
    cached = (prompts * fractions[numbers]).astype(np.int64)
    longest = np.zeros(len(streams), dtype=np.int64)
    np.maximum.at(longest, numbers, cached)
    return Prefixes(cached, int(longest.sum()))


def replay_mixed(
    configuration: Configuration,
    tables: StepTables,
    streams: Sequence[RequestStream],
    *,
    seed: int = 1,
    requests: int | None = None,
    notes_gaps: bool = True,
) -> MixedReplay:
    """Simulate one lane under its share of an open load of several streams, in steady state.

    requests: how many to replay; more where the rarest stream would otherwise have fewer than LEAST_OF_A_STREAM, at most
    MOST_MIXED_REQUESTS. notes_gaps: without, nothing is said of gaps between tokens of several streams. One stream alone is replayed as
    ``replay`` does. Raises SaturatedError for a load above capacity,
    InvalidInputError for an impossible one.
    """
    rates = [one.requests_per_s for one in streams]
    if not rates or any(not (math.isfinite(rate) and rate > 0.0) for rate in rates):
        raise InvalidInputError("a mixed load needs streams, each with a positive rate")
    total = math.fsum(rates)
    count = requests or STEADY_REQUESTS
    if len(streams) == 1:
        load = Load("open", requests_per_s=total)
        alone = replay(configuration, tables, streams[0].traffic, load, seed=seed, requests=count)
        return MixedReplay(alone, (alone,))
    enough = math.ceil(LEAST_OF_A_STREAM * total / min(rates) / (1.0 - STEADY_WARM_UP_FRACTION))
    count = max(count, min(enough, MOST_MIXED_REQUESTS))
    lanes = configuration.lanes
    schedule = replace(configuration.schedule(), contending_lanes=configuration.batches - 1)
    sample = _sampled(streams, count, seed)
    arrivals = _unit_arrivals_s(len(sample[0]), seed) * lanes / total
    trace = simulate(
        tables, schedule, sample[1], sample[2], arrivals_s=arrivals, prefixes=stream_prefixes(streams, sample),
        notes_gaps=notes_gaps,
    )  # fmt: skip
    if may_be_above_capacity(trace.end_to_end_s[None, :], total / lanes, _seats(schedule, streams)):
        limit = mixed_capacity_requests_per_s(configuration, tables, streams)
        if total > limit:
            raise SaturatedError(limit)
    first = int(len(sample[0]) * STEADY_WARM_UP_FRACTION)
    whole = condense(trace, first, lanes, lanes, finite=False, tables=tables)
    return MixedReplay(whole, tuple(_of_stream(whole, trace, sample[0] == n, first) for n in range(len(streams))))


def _sampled(streams: Sequence[RequestStream], count: int, seed: int) -> Sample:
    return mixed_sample(
        tuple(one.traffic for one in streams), stream_counts([one.requests_per_s for one in streams], count), seed
    )


@kept
def _unit_arrivals_s(count: int, seed: int) -> Vector:
    return read_only(poisson_arrivals_s(1.0, count, np.random.default_rng(seed)))


def _of_stream(whole: Replay, trace: SimulationTrace, mine: np.typing.NDArray[np.bool_], first: int) -> Replay:
    """Statistics over the requests of one stream after warm-up (over all of its requests where none came later).

    Gaps between tokens are the engine's steps and belong to no stream: they are those of the whole.
    """
    later = mine.copy()
    later[:first] = False
    chosen = np.flatnonzero(later if later.any() else mine)
    outputs = trace.outputs
    several = chosen[outputs[chosen] > 1]
    share = float(mine.mean())
    per_token = trace.time_per_output_token_s[several] if len(several) else [0.0]
    end_to_end = trace.end_to_end_s[chosen]
    rate = whole.requests_per_s * share
    return replace(
        whole,
        time_to_first_token_s=statistics(trace.time_to_first_token_s[chosen]),
        time_per_output_token_s=statistics(per_token),
        end_to_end_s=statistics(end_to_end),
        output_tokens_per_s=rate * float(outputs[mine].mean()),
        requests_per_s=rate,
        mean_in_flight=whole.mean_in_flight * share * float(end_to_end.mean()) / max(whole.end_to_end_s["mean"], 1e-12),
    )


def _seats(schedule: Schedule, streams: Sequence[RequestStream]) -> int:
    """Requests one lane can have in progress at once.

    A request stays about as long as its reply, so the streams are met in progress by rate times output tokens.
    """
    weights = [one.requests_per_s * one.traffic.output.mean for one in streams]
    held = [
        one.traffic.prompt.mean * (1.0 - one.traffic.shared_prefix_fraction) + one.traffic.output.mean / 2.0
        for one in streams
    ]
    mean = math.fsum(w * h for w, h in zip(weights, held, strict=True)) / math.fsum(weights)
    return int(max(1, min(schedule.max_sequences, schedule.kv_cache_tokens / (mean + schedule.block_slack_tokens))))


def mixed_capacity_requests_per_s(
    configuration: Configuration,
    tables: StepTables,
    streams: Sequence[RequestStream],
    turnovers: int = CAPACITY_TURNOVERS,
) -> float:
    """Most requests per second the deployment completes of this mix, whatever the latency. turnovers: how often all seats are taken
    anew."""
    schedule = replace(configuration.schedule(), contending_lanes=configuration.batches - 1)
    seats = _seats(schedule, streams)
    sample = _sampled(streams, crowd_requests(seats, turnovers), seed=CROWD_SEED)
    prefixes = stream_prefixes(streams, sample)
    per_lane = crowded_requests_per_s(tables, schedule, sample[1], sample[2], seats, prefixes=prefixes)
    return per_lane * configuration.lanes
