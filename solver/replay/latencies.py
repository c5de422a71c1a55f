"""Percentiles of steady open loads, and nothing else of them: what deciding about a rate takes.

The same draws as ``solver.replay.long_run`` replays in full, so the same figures, in a small part of the time.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from solver.deployment.configuration import Configuration
from solver.engine.simulate import Schedule
from solver.errors import SaturatedError
from solver.replay import sessions as of_sessions
from solver.replay.crowds import lane_seats, may_be_above_capacity
from solver.replay.draws import KernelInput, prepared, ready_draws, replay_prepared
from solver.replay.one_stream import (
    QUANTILES,
    STEADY_WARM_UP_FRACTION,
    capacity_requests_per_s,
    hidden_tokens,
    to_first_answer_s,
)
from solver.step.tables import StepTables
from solver.workload import PERCENTILES, Percentile, Traffic

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Latencies:
    """(draws, percentiles) in seconds, percentiles in the order of PERCENTILES."""

    time_to_first_token_s: Matrix
    time_per_output_token_s: Matrix
    end_to_end_s: Matrix
    time_to_first_answer_s: Matrix
    in_flight_fraction: float = 0.0
    """Requests in flight over seats, of the draw that has the most."""
    _known: dict[tuple[str, Percentile], tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

    def value_s(self, metric: str, percentile: Percentile) -> float:
        """A percentile over requests, averaged over the draws."""
        return self._moments(metric, percentile)[0]

    def standard_error_s(self, metric: str, percentile: Percentile) -> float:
        """Of that average, by how the draws differ: s/√n. 0 for one draw."""
        return self._moments(metric, percentile)[1]

    def joined(self, later: "Latencies") -> "Latencies":
        """These draws and further ones."""
        return Latencies(
            np.concatenate([self.time_to_first_token_s, later.time_to_first_token_s]),
            np.concatenate([self.time_per_output_token_s, later.time_per_output_token_s]),
            np.concatenate([self.end_to_end_s, later.end_to_end_s]),
            np.concatenate([self.time_to_first_answer_s, later.time_to_first_answer_s]),
            max(self.in_flight_fraction, later.in_flight_fraction),
        )

    def _moments(self, metric: str, percentile: Percentile) -> tuple[float, float]:
        """Mean over the draws and its standard error. Kept: plans ask for the same one many times."""
        found = self._known.get((metric, percentile))
        if found is None:
            matrix: Matrix = getattr(self, metric)
            values = matrix[:, PERCENTILES.index(percentile)]
            count = len(values)
            error = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
            found = float(values.mean()), error
            self._known[metric, percentile] = found
        return found


class SteadyLane:
    """One lane of a deployment under one traffic, ready to be replayed at any rate."""

    def __init__(self, configuration: Configuration, tables: StepTables, traffic: Traffic) -> None:
        schedule = configuration.schedule(traffic.shared_prefix_fraction)
        self._schedule: Schedule = replace(schedule, contending_lanes=configuration.batches - 1)
        self._seats = lane_seats(schedule, traffic)
        self._configuration, self._tables, self._traffic = configuration, tables, traffic
        self._capacity_requests_per_s: float | None = None
        self._engine: KernelInput | None = None
        self._turn_alone_s: float | None = None

    def latencies(self, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> Latencies:
        """Of ``requests`` requests for each seed. Raises SaturatedError above capacity, InvalidInputError."""
        per_lane = requests_per_s / self._configuration.lanes
        if self._traffic.sessions is not None:
            return self._of_sessions(requests_per_s, per_lane, seeds, requests)
        draws = ready_draws(self._traffic, requests, seeds, self._schedule.cached_prefix_fraction)
        if self._engine is None:
            self._engine = prepared(self._tables, self._schedule)
        found = replay_prepared(self._engine, self._schedule, per_lane, draws)
        in_flight = per_lane * float(found.end_to_end_s.mean(axis=1).max()) / self._seats
        may_be_above = may_be_above_capacity(found.end_to_end_s, per_lane, self._seats)
        if may_be_above and requests_per_s > self._capacity():
            raise SaturatedError(self._capacity())
        first = int(requests * STEADY_WARM_UP_FRACTION)
        to_first, per_token, whole = percentiles(found.rows_from(first)).reshape(3, len(draws), -1)
        if any(draw.single is not None for draw in draws):
            steady = zip(found.time_per_output_token_s[:, first:], draws, strict=True)
            per_token = np.stack([_of_some(row[draw.outputs[first:] > 1]) for row, draw in steady])
        answered = to_first
        if self._traffic.thinking is not None:
            hidden = np.stack([hidden_tokens(self._traffic, requests, seed) for seed in seeds])
            outputs = np.stack([draw.outputs for draw in draws])
            answered = percentiles(
                to_first_answer_s(found.time_to_first_token_s, found.time_per_output_token_s, outputs, hidden)[
                    :, first:
                ]
            )
        return Latencies(to_first, per_token, whole, answered, in_flight)

    def _capacity(self) -> float:
        """Requests per second; simulated once."""
        if self._capacity_requests_per_s is None:
            self._capacity_requests_per_s = capacity_requests_per_s(self._configuration, self._tables, self._traffic)
        return self._capacity_requests_per_s

    def _of_sessions(self, requests_per_s: float, per_lane: float, seeds: tuple[int, ...], requests: int) -> Latencies:
        """The same of turns of sessions, whose hits depend on the rate and on this lane's cache."""
        first = int(requests * STEADY_WARM_UP_FRACTION)
        of = self._tables, self._schedule, self._traffic
        if self._turn_alone_s is None:
            self._turn_alone_s = of_sessions.turn_alone_s(*of)
        paced = of_sessions.paced(*of, per_lane, requests, self._turn_alone_s)
        rows: list[tuple[Matrix, Matrix, Matrix]] = []
        most_in_flight = 0.0
        for seed in seeds:
            run = paced.run
            if seed != paced.seed or requests != len(run.prompts):
                run = of_sessions.replay_open(*of, per_lane, paced.service_s, requests, seed, notes_gaps=False)
            trace = run.trace
            in_flight = per_lane * float(trace.end_to_end_s.mean()) / self._seats
            most_in_flight = max(most_in_flight, in_flight)
            if may_be_above_capacity(trace.end_to_end_s[None, :], per_lane, self._seats):
                limit = of_sessions.capacity_requests_per_s(self._configuration, self._tables, self._traffic, run)
                if requests_per_s > limit:
                    raise SaturatedError(limit)
            times = trace.time_to_first_token_s, trace.time_per_output_token_s, trace.end_to_end_s
            to_first, per_token, whole = percentiles(np.stack([each[first:] for each in times]))
            if (is_one := trace.outputs[first:] < 2).any():
                per_token = _of_some(trace.time_per_output_token_s[first:][~is_one])
            rows.append((to_first, per_token, whole))
        first_s, token_s, whole_s = (np.stack(column) for column in zip(*rows, strict=True))
        return Latencies(first_s, token_s, whole_s, first_s, most_in_flight)


def _of_some(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return percentiles(values[None, :])[0] if len(values) else np.zeros(len(PERCENTILES))


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Where percentiles of so many values lie: ranks of order statistics, and of each percentile which two of them it is between and
    how far from the lower one."""

    ranks: NDArray[np.int64]
    below: NDArray[np.int64]
    above: NDArray[np.int64]
    beyond: NDArray[np.float64]


@lru_cache(maxsize=64)
def _places(count: int) -> _Ranks:
    at = np.array([QUANTILES[name] / 100.0 * (count - 1) for name in PERCENTILES if name != "mean"])
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    ranks = np.unique(np.concatenate([below, above]))
    return _Ranks(ranks, np.searchsorted(ranks, below), np.searchsorted(ranks, above), at - below)


def percentiles(values: Matrix) -> Matrix:
    """(rows, PERCENTILES): the mean and percentiles of each row of times, linear between order statistics.

    >>> percentiles(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])).round(2).tolist()
    [[3.0, 3.0, 4.6, 4.8, 4.96]]
    """
    from solver.engine.kernel.selection import ordered_at  # imports numba

    places = _places(values.shape[1])
    ordered = ordered_at(values, places.ranks)
    low, high = ordered[:, places.below], ordered[:, places.above]
    found = np.empty((len(values), len(PERCENTILES)))
    found[:, 0] = values.mean(axis=1)
    found[:, 1:] = low + (high - low) * places.beyond
    return found
