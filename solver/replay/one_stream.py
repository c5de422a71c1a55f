"""Replays a load on one configuration and condenses the trace into statistics over requests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solver.adapters import Adapters
from solver.deployment.configuration import Configuration
from solver.engine.replayable import MOST_REQUESTS
from solver.engine.simulate import Schedule, SessionTrace, SimulationTrace, simulate
from solver.errors import InvalidInputError, SaturatedError
from solver.replay import sessions as of_sessions
from solver.replay.crowds import (
    CAPACITY_TURNOVERS,
    CROWD_SEED,
    crowd_requests,
    crowded_requests_per_s,
    lane_seats,
    may_be_above_capacity,
)
from solver.replay.in_step import between, stays_in_step, under_way
from solver.replay.kept import kept
from solver.sessions import spread_lengths
from solver.step.tables import StepTables
from solver.workload import Load, Percentile, Traffic

QUANTILES: dict[Percentile, float] = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
STEADY_REQUESTS = 2_000
"""Requests replayed for a steady state, per lane."""
STEADY_WARM_UP_FRACTION = 0.15
OPEN_RUNS_REQUESTS = 1_000
"""A short open run is replayed with several arrival processes, until together they have this many requests,"""
MOST_OPEN_RUNS = 4
"""but never with more than this: a tail of 200 Poisson arrivals differs by a tenth from one draw to the next."""
DRAWN_REQUESTS = 4_000
"""Of all draws of an open load of few requests together, where how they differ is asked, within these bounds."""
LEAST_DRAWS, MOST_DRAWS = 2, 8
SATURATION_MARGIN = 1.0
FINITE_SATURATION_MARGIN = 1.1
"""A finite run may be offered slightly more than capacity: it just ends later. Beyond this it is called saturated."""
KEPT_CAPACITIES = 16
"""Each keeps its step tables, which are known again as the same object, some 130 kB."""

Statistics = dict[Percentile, float]
Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Replay:
    """Statistics of one replayed load, in seconds; rates are of the whole deployment, utilisation per device."""

    time_to_first_token_s: Statistics
    time_per_output_token_s: Statistics
    inter_token_s: Statistics
    end_to_end_s: Statistics
    output_tokens_per_s: float
    requests_per_s: float
    memory_utilisation: float
    compute_utilisation: float
    mean_in_flight: float
    """Requests in flight per lane, by Little's law."""
    preemptions: int
    prefix_hit_fraction: float | None = None
    """Share of the tokens of prompts that the cache held; None where requests are no turns of sessions."""
    time_to_first_answer_s: Statistics | None = None
    """To the first token that is shown; None where none are hidden."""
    at_once_ratio: float = 1.0
    """How much later the first token comes where prompts come all at once, over where they are spread (``solver.replay.in_step``)."""


@kept
def _unit_gaps(count: int) -> Vector:
    """The even quantiles of the exponential distribution of mean 1."""
    # math.log and not numpy's: the two differ in the last bit, and a plan made before must be made again.
    return read_only(np.array([-math.log(1.0 - (i + 0.5) / count) for i in range(count)]))


def poisson_arrivals_s(requests_per_s: float, count: int, rng: np.random.Generator) -> Vector:
    """Arrival times of a Poisson process whose gaps are the even quantiles of the exponential, shuffled."""
    gaps = _unit_gaps(count) / requests_per_s
    return np.cumsum(gaps[rng.permutation(count)])


def read_only(values: NDArray[Number]) -> NDArray[Number]:
    """The array itself, which can be kept and handed out."""
    values.flags.writeable = False
    return values


@kept
def sampled_requests(traffic: Traffic, count: int, seed: int) -> tuple[Whole, Whole, Vector]:
    """Prompts, outputs and arrival times at one request per second. Kept: a plan replays the same ones many times."""
    rng = np.random.default_rng(seed)
    prompts = spread_lengths(traffic.prompt, count, rng)
    if traffic.thinking is None:
        drawn = spread_lengths(traffic.output, count, rng)
    else:
        drawn = hidden_tokens(traffic, count, seed) + spread_lengths(traffic.thinking.answer, count, rng)
    outputs = ended(traffic, prompts, drawn)
    return read_only(prompts), read_only(outputs), read_only(poisson_arrivals_s(1.0, count, rng))


def named_adapters(configuration: Configuration, load: Load) -> Adapters | None:
    """Adapters of a closed load for which slots are too few, so that who runs hangs on who names which; else None."""
    adapters = configuration.shape.adapters
    if load.kind != "closed" or adapters is None or adapters.slots >= adapters.count:
        return None
    return adapters


NAMED_SEED = 1_000_033
"""Added to the seed of a draw: adapters are drawn apart, so that other requests are drawn as they were."""
HIDDEN_SEED = 1_000_003
"""Added to the seed of a draw: hidden tokens are drawn apart, so that other requests are drawn as they were."""


@kept
def hidden_tokens(traffic: Traffic, count: int, seed: int) -> Whole:
    """Hidden tokens at the beginning of each reply of ``sampled_requests``."""
    if traffic.thinking is None:
        raise InvalidInputError("these replies hide no tokens")
    return read_only(spread_lengths(traffic.thinking.hidden, count, np.random.default_rng(seed + HIDDEN_SEED)))


def to_first_answer_s(to_first_s: Vector, per_token_s: Vector, outputs: Whole, hidden: Whole) -> Vector:
    """Seconds to the first token that is shown: hidden ones come first, each as long after the last as tokens of the reply do.

    A reply that its context ends before that has none; it counts to its end.
    """
    return to_first_s + per_token_s * np.minimum(hidden, np.maximum(outputs - 1, 0))


def ended(traffic: Traffic, prompts: Whole, outputs: Whole) -> Whole:
    """Replies that end with the context, where the traffic has any that would be longer."""
    if traffic.longest_tokens is None:
        return outputs
    return np.minimum(outputs, np.maximum(traffic.longest_tokens - prompts, 1))


def statistics(values: Vector | Sequence[float]) -> Statistics:
    """Mean and percentiles (linear interpolation between order statistics)."""
    array = np.asarray(values, dtype=float)
    result: Statistics = {"mean": float(array.mean())}
    ordered = np.sort(array)  # several times as fast as numpy's percentile, which finds each place by itself
    for name, percent in QUANTILES.items():
        result[name] = at_share(ordered, percent / 100.0)
    return result


def at_share(ordered: Vector, share: float) -> float:
    """The value at a share of the way through sorted values, linearly between neighbours: numpy's percentile."""
    place = share * (len(ordered) - 1)
    low = int(place)
    a, b, beyond = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)]), place - low
    # From the nearer neighbour, as numpy has it, so that the ends are met exactly.
    return a + (b - a) * beyond if beyond < 0.5 else b - (b - a) * (1.0 - beyond)


def weighted_statistics(pairs: Vector | Sequence[tuple[float, float]]) -> Statistics:
    """The same for (value, weight) pairs."""
    if not len(pairs):
        empty: Statistics = {"mean": 0.0, "p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0}
        return empty
    array = np.asarray(pairs, dtype=np.float64)
    ordered = array.take(np.argsort(array[:, 0]), axis=0)  # a row at a time: a third of the time of columns one by one
    values, weights = ordered[:, 0], ordered[:, 1]
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    # Not a dot product: that is spread over processors, and its last digits depend on how many there are.
    result: Statistics = {"mean": float((values * weights).sum() / total)}
    at = np.searchsorted(cumulative, [total * quantile / 100.0 for quantile in QUANTILES.values()], side="left")
    result.update(zip(QUANTILES, values[at].tolist(), strict=True))
    return result


def capacity_requests_per_s(
    configuration: Configuration, tables: StepTables, traffic: Traffic, turnovers: int = CAPACITY_TURNOVERS
) -> float:
    """Most requests per second the deployment completes while some wait, whatever the latency: all seats, or the whole cache. turnovers:
    how often all seats are taken anew."""
    schedule = configuration.schedule(traffic.shared_prefix_fraction)
    schedule = replace(schedule, contending_lanes=configuration.batches - 1)
    return _completed_per_lane(tables, schedule, traffic, turnovers) * configuration.lanes


@lru_cache(maxsize=KEPT_CAPACITIES)
def _completed_per_lane(tables: StepTables, schedule: Schedule, traffic: Traffic, turnovers: int) -> float:
    """Requests per second of one lane. Kept: every draw near capacity asks, and every load on the same deployment."""
    seats = lane_seats(schedule, traffic)
    prompts, outputs = _crowd(traffic, crowd_requests(seats, turnovers))
    return crowded_requests_per_s(tables, schedule, prompts, outputs, seats)


@kept
def _crowd(traffic: Traffic, count: int) -> tuple[Whole, Whole]:
    """Prompts and outputs of a closed loop that keeps all seats taken. Kept: every candidate with as many meets them."""
    rng = np.random.default_rng(CROWD_SEED)
    return (
        read_only(spread_lengths(traffic.prompt, count, rng)),
        read_only(spread_lengths(traffic.output, count, rng)),
    )


def replay(
    configuration: Configuration,
    tables: StepTables,
    traffic: Traffic,
    load: Load,
    *,
    seed: int = 1,
    requests: int | None = None,
) -> Replay:
    """Simulate one lane of the deployment under its share of the load.

    requests: how many to replay in steady state (default STEADY_REQUESTS). An open load of few requests is the mean of
    several replays: what one draw of its arrivals happens to do is nobody's expectation; so is one whose
    adapters have not all slots. A closed one in steady state whose
    requests are all as long lies between two regimes (``solver.replay.in_step``).
    Raises SaturatedError for an open load above capacity, InvalidInputError for an impossible one.
    """
    if load.kind == "closed" and load.requests is None and stays_in_step(traffic):
        spread = _replay_once(configuration, tables, traffic, load, seed, requests, spread=True)
        at_once = _replay_once(configuration, tables, traffic, replace(load, requests=load.concurrency), seed, None)
        return in_between(spread, at_once)
    runs = 1
    if load.requests and (load.kind == "open" or named_adapters(configuration, load) is not None):
        runs = min(MOST_OPEN_RUNS, max(1, OPEN_RUNS_REQUESTS // load.requests))
    found = [_replay_once(configuration, tables, traffic, load, seed + i, requests) for i in range(runs)]
    return found[0] if runs == 1 else mean_replay(found)


def open_draws(
    configuration: Configuration, tables: StepTables, traffic: Traffic, load: Load, *, seed: int = 1
) -> tuple[Replay, ...]:
    """An open load of so many requests, drawn again and again: arrivals and the order of lengths differ.

    More draws of shorter runs, which differ more. Raises as ``replay`` does.
    """
    if load.kind != "open" or not load.requests:
        raise InvalidInputError("only an open load of a stated number of requests is drawn again")
    runs = min(MOST_DRAWS, max(LEAST_DRAWS, DRAWN_REQUESTS // load.requests))
    return tuple(_replay_once(configuration, tables, traffic, load, seed + i, None) for i in range(runs))


def mean_replay(found: Sequence[Replay]) -> Replay:
    """Every figure averaged over replays of the same load."""

    def mean(name: str) -> float:
        return math.fsum(getattr(one, name) for one in found) / len(found)

    def means(name: str) -> Statistics:
        values: list[Statistics] = [getattr(one, name) for one in found]
        return {key: math.fsum(value[key] for value in values) / len(values) for key in values[0]}

    return Replay(
        time_to_first_token_s=means("time_to_first_token_s"),
        time_per_output_token_s=means("time_per_output_token_s"),
        inter_token_s=means("inter_token_s"),
        end_to_end_s=means("end_to_end_s"),
        output_tokens_per_s=mean("output_tokens_per_s"),
        requests_per_s=mean("requests_per_s"),
        memory_utilisation=mean("memory_utilisation"),
        compute_utilisation=mean("compute_utilisation"),
        mean_in_flight=mean("mean_in_flight"),
        preemptions=round(mean("preemptions")),
        time_to_first_answer_s=None if found[0].time_to_first_answer_s is None else means("time_to_first_answer_s"),
        prefix_hit_fraction=None if found[0].prefix_hit_fraction is None else mean("prefix_hit_fraction"),
        at_once_ratio=mean("at_once_ratio"),
    )


def in_between(spread: Replay, at_once: Replay) -> Replay:
    """A closed loop between its two regimes: times to first tokens and of whole requests in their geometric middle, the rest as
    where clients are spread, since how prompts come together hardly changes what they take in all."""
    return replace(
        spread,
        time_to_first_token_s=between(spread.time_to_first_token_s, at_once.time_to_first_token_s),
        end_to_end_s=between(spread.end_to_end_s, at_once.end_to_end_s),
        at_once_ratio=at_once.time_to_first_token_s["mean"] / max(spread.time_to_first_token_s["mean"], 1e-12),
    )


def _replay_once(
    configuration: Configuration, tables: StepTables, traffic: Traffic, load: Load, seed: int, requests: int | None,
    *, spread: bool = False,
) -> Replay:  # fmt: skip
    """One replay with the draws of one seed. spread: clients of a closed loop are under way, each elsewhere in its request."""
    lanes, batches = configuration.lanes, configuration.batches
    finite = load.requests is not None
    schedule = configuration.schedule(traffic.shared_prefix_fraction)
    if load.kind == "closed":
        if load.concurrency < 1:
            raise InvalidInputError("a closed load needs at least one client")
        active = min(lanes, load.concurrency)
        clients = max(1, round(load.concurrency / lanes))
        count = max(clients, round((load.requests or 0) / active)) if finite else max(10 * clients, 400)
        others = min(schedule.lockstep_copies, active - 1)
        schedule = replace(schedule, contending_lanes=min(active, batches) - 1, lockstep_copies=others)
        adapters = named_adapters(configuration, load)
        run = _run(tables, schedule, traffic, count, seed, concurrency=clients, spread=spread, adapters=adapters)
    else:
        if not (math.isfinite(load.requests_per_s) and load.requests_per_s > 0):
            raise InvalidInputError("an open load needs a positive rate")
        active = lanes
        count = max(1, round((load.requests or 0) / lanes)) if finite else requests or STEADY_REQUESTS
        schedule = replace(schedule, contending_lanes=batches - 1)
        run = _run(tables, schedule, traffic, count, seed, rate=load.requests_per_s / lanes)
        per_lane, seats = load.requests_per_s / lanes, lane_seats(schedule, traffic)
        if may_be_above_capacity(_trace(run).end_to_end_s[None, :], per_lane, seats):
            limit = _capacity_requests_per_s(configuration, tables, traffic, run)
            if load.requests_per_s > limit * (FINITE_SATURATION_MARGIN if finite else SATURATION_MARGIN):
                raise SaturatedError(limit)
    first = 0 if finite else int(count * STEADY_WARM_UP_FRACTION)
    if not finite and load.kind == "closed":
        first = min(count // 2, max(first, 2 * _trace(run).clients))
    trace = _trace(run)
    found = condense(trace, first, active, lanes, finite=finite, tables=tables)
    if traffic.thinking is not None:
        hidden = hidden_tokens(traffic, count, seed)
        answered = to_first_answer_s(trace.time_to_first_token_s, trace.time_per_output_token_s, trace.outputs, hidden)
        found = replace(found, time_to_first_answer_s=statistics(answered[first:]))
    return replace(found, prefix_hit_fraction=run.found_fraction(first)) if isinstance(run, SessionTrace) else found


def _trace(run: SimulationTrace | SessionTrace) -> SimulationTrace:
    return run.trace if isinstance(run, SessionTrace) else run


def _capacity_requests_per_s(
    configuration: Configuration, tables: StepTables, traffic: Traffic, run: SimulationTrace | SessionTrace
) -> float:
    if isinstance(run, SessionTrace):
        return of_sessions.capacity_requests_per_s(configuration, tables, traffic, run)
    return capacity_requests_per_s(configuration, tables, traffic)


def _run(
    tables: StepTables,
    schedule: Schedule,
    traffic: Traffic,
    count: int,
    seed: int,
    *,
    concurrency: int = 0,
    rate: float = 0.0,
    spread: bool = False,
    adapters: Adapters | None = None,
) -> SimulationTrace | SessionTrace:
    if traffic.sessions is not None and concurrency:
        return of_sessions.replay_closed(tables, schedule, traffic, concurrency, count, seed)
    if traffic.sessions is not None:
        service_s = of_sessions.paced(tables, schedule, traffic, rate, count).service_s
        return of_sessions.replay_open(tables, schedule, traffic, rate, service_s, count, seed)
    if count > MOST_REQUESTS:
        raise InvalidInputError(f"{count} requests are more than the {MOST_REQUESTS} one simulation accepts")
    prompts, outputs, unit_arrivals = sampled_requests(traffic, count, seed)
    if concurrency:
        begun = under_way(outputs, concurrency, seed) if spread else outputs
        named = None if adapters is None else adapters.drawn(count, seed + NAMED_SEED)
        return simulate(tables, schedule, prompts, begun, concurrency=concurrency, adapters=named)
    return simulate(tables, schedule, prompts, outputs, arrivals_s=unit_arrivals / rate)


def steady_rate_per_s(completed_s: Vector, clients: int) -> float:
    """Completions a second between the first STEADY_WARM_UP_FRACTION of a run and its last twentieth; 0 where all come at one instant.

    clients: of a closed loop, else 0. Once no more requests follow, with the last answer but one of each client, the loop drains: what
    completes then is not counted. Steps complete many requests at once, and clients stay bunched as they began; the loop is where it was
    when each has had another answer. So whole rounds of the clients are counted, from each completion of one round on, and what
    they take is averaged: where in a bunch the count begins is then no matter.

    >>> ends = np.repeat(np.cumsum([1.0, 3.0] * 20), [2, 8] * 20)  # ten clients: two are answered after one second, eight after three more
    >>> round(steady_rate_per_s(ends, clients=10), 9)
    2.5
    """
    ends = np.sort(completed_s)
    low = int(len(ends) * STEADY_WARM_UP_FRACTION)
    most = max(min(int(len(ends) * 0.95), len(ends) - clients) - 1, 1)
    beginnings = max(1, min(clients, (most - low) // 2))
    counted = most - low - beginnings + 1
    if clients:
        counted = counted // clients * clients or counted
    first = low + np.arange(beginnings)
    taken_s = float((ends[first + counted] - ends[first]).mean())
    return counted / taken_s if taken_s > 0 else 0.0


def condense(
    trace: SimulationTrace, first: int, active: int, lanes: int, *, finite: bool, tables: StepTables
) -> Replay:
    """Statistics from request ``first`` on; rates from the whole run, or in steady state from its middle."""
    count = len(trace.end_to_end_s)
    end_to_end = trace.end_to_end_s[first:]
    duration = max(trace.duration_s, 1e-12)
    requests_per_s = (0.0 if finite else steady_rate_per_s(trace.completed_s, trace.clients)) or count / duration
    tokens = trace.output_tokens / count
    per_output = trace.time_per_output_token_s[first:][trace.outputs[first:] > 1]
    return Replay(
        time_to_first_token_s=statistics(trace.time_to_first_token_s[first:]),
        time_per_output_token_s=statistics(per_output if len(per_output) else [0.0]),
        inter_token_s=weighted_statistics(trace.gaps),
        end_to_end_s=statistics(end_to_end),
        output_tokens_per_s=requests_per_s * tokens * active,
        requests_per_s=requests_per_s * active,
        # A lane counts the whole model; its devices share that work, and idle lanes leave theirs idle.
        memory_utilisation=trace.bytes / duration / tables.peak_bytes_per_s * active / lanes,
        compute_utilisation=trace.flops / duration / tables.peak_flop_per_s * active / lanes,
        mean_in_flight=requests_per_s * float(end_to_end.mean()),
        preemptions=trace.preemptions,
    )
