"""The largest rate a replica serves within its targets: screening, before the event simulation confirms.

Percentiles under Poisson arrivals: the number in flight is close to Poisson, and a request of few tokens is hit by
more or fewer prompts than the mean; prompts queue for prefill like an M/G/1 queue whose tail is exponential. These
are approximations for choosing what to simulate, never what is reported.
"""

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from solver.engine.steady import OperatingPoints
from solver.lengths import Lengths
from solver.limit import TargetLimit
from solver.workload import Percentile, Targets, Traffic

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

IN_FLIGHT_GRID: Vector = np.array(
    [0.01, 0.1, 0.4, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512], dtype=float
)
"""Requests in flight in a lane, on average. Below one most of the time is idle, and prompts wait for no other: tight targets may
hold there alone."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Per candidate (N,): rate within targets, requests in flight there, and what stopped it.

    limit: index into ``limits`` of the target that binds first (0: memory or seats, not a target).
    best: the best value that target can reach at all (its value with one request in flight), in seconds.
    """

    requests_per_s: Vector
    in_flight: Vector
    limit: NDArray[np.intp]
    best_s: Vector
    limits: tuple[TargetLimit | None, ...]
    time_per_output_token_s: Vector
    time_to_first_token_s: Vector
    memory_utilisation: Vector
    compute_utilisation: Vector

    def take(self, rows: NDArray[np.int64]) -> "Capacity":
        """The same of these candidates, in this order."""
        columns = {one.name: getattr(self, one.name)[rows] for one in fields(self) if one.name != "limits"}
        return replace(self, **columns)


def _slope(values: Matrix) -> Matrix:
    """Growth of each row per further request in flight, towards the next column of IN_FLIGHT_GRID."""
    steps = np.diff(values, axis=1) / np.diff(IN_FLIGHT_GRID)[None, :]
    return np.concatenate([steps, steps[:, -1:]], axis=1)


VARIANCE_RATIOS: Vector = np.geomspace(1e-3, 1e6, 28)
"""Grid on which mixture quantiles are tabulated: prompt interference over crowding, at a reply of two tokens."""
RELAXATIONS: Vector = np.array([0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0, 1.3])
"""The same for how soon crowding passes: lifetimes of a request over the time it takes."""


@lru_cache(maxsize=64)
def mixture_quantiles(replies: Lengths, fraction: float) -> Matrix:
    """Quantile of a mixture of centred normals, one a reply length n, with variance g(r·n/Q) + u/(n−1), for every u and r.

    Short replies meet more or fewer prompts per token than long ones, and see crowding as it is rather than its mean
    over a while: g(x) = 2(x − 1 + e^−x)/x² for a crowd whose autocorrelation falls exponentially. Solved by bisection.
    (u, r): (28, 8).
    """
    tokens = np.array([max(t - 1.0, 1.0) for t in replies.tokens])
    shares = np.array(replies.shares)
    span = RELAXATIONS[:, None] * tokens[None, :] / max(float(tokens @ shares), 1.0)
    crowding = 2.0 * (span + np.expm1(-span)) / (span * span)
    deviation = np.sqrt(crowding[None] + VARIANCE_RATIOS[:, None, None] / tokens[None, None, :])
    low, high = np.zeros(deviation.shape[:2]), 6.0 * deviation.max(axis=2)
    for _ in range(30):
        middle = (low + high) / 2.0
        below = (_normal_cdf(middle[..., None] / deviation) * shares).sum(axis=2)
        low, high = np.where(below < fraction, middle, low), np.where(below < fraction, high, middle)
    return np.asarray((low + high) / 2.0, dtype=float)


def _normal_cdf(z: Matrix) -> Matrix:
    """Standard normal distribution function, to 1e-5 (logistic form of Bowling et al., 2009)."""
    below: Matrix = 1.0 / (1.0 + np.exp(-(0.07056 * z**3 + 1.5976 * z)))
    return below


def output_token_s(points: OperatingPoints, traffic: Traffic, percentile: Percentile) -> Matrix:
    """TPOT at a percentile: τ + σ_c·q(σ_w²/σ_c², r), q the quantile of the mixture over reply lengths.

    σ_c = τ'(c)·√(c/r),  r = 1 − c·τ'(c)/τ(c)    more or fewer requests in flight
    σ_w² = λ·τ·w²·(1 + cv²)                      more or fewer prompts during a reply of two tokens
    """
    mean = points.time_per_output_token_s
    if percentile == "mean":
        return mean
    # Processor sharing at a rate that depends on how many share: P(n+1)/P(n) = λ·Q·τ(n+1)/(n+1), so around its mode the
    # number in flight has variance c/r, and it takes 1/r lifetimes to get back there.
    slope = np.maximum(_slope(mean), 0.0)
    pull = np.clip(1.0 - IN_FLIGHT_GRID[None, :] * slope / np.maximum(mean, 1e-12), RELAXATIONS[0], RELAXATIONS[-1])
    crowd = np.maximum(slope * np.sqrt(IN_FLIGHT_GRID[None, :] / pull), 1e-3 * mean)
    per_lane = points.requests_per_s * IN_FLIGHT_GRID[None, :] / np.maximum(points.in_flight, 1e-12)
    prompts = per_lane * mean * points.interruption_s**2 * (1.0 + squared_variation(traffic.prompt))
    table = mixture_quantiles(traffic.output, float(percentile[1:]) / 100.0)
    ratio = np.log(np.clip(prompts / (crowd * crowd), VARIANCE_RATIOS[0], VARIANCE_RATIOS[-1]))
    return np.asarray(mean + crowd * _bilinear(table, np.log(VARIANCE_RATIOS), ratio, RELAXATIONS, pull))


def _bilinear(table: Matrix, rows: Vector, at_row: Matrix, columns: Vector, at_column: Matrix) -> Matrix:
    """``table`` on the grid rows × columns, read between its points."""
    i = np.clip(np.searchsorted(rows, at_row) - 1, 0, len(rows) - 2)
    j = np.clip(np.searchsorted(columns, at_column) - 1, 0, len(columns) - 2)
    a = (at_row - rows[i]) / (rows[i + 1] - rows[i])
    b = (at_column - columns[j]) / (columns[j + 1] - columns[j])
    top = table[i, j] * (1.0 - b) + table[i, j + 1] * b
    bottom = table[i + 1, j] * (1.0 - b) + table[i + 1, j + 1] * b
    found: Matrix = top * (1.0 - a) + bottom * a
    return found


def squared_variation(lengths: Lengths) -> float:
    """Squared coefficient of variation of a length distribution."""
    mean = lengths.mean
    second = sum(t * t * s for t, s in zip(lengths.tokens, lengths.shares, strict=True))
    return max(0.0, second / (mean * mean) - 1.0) if mean > 0 else 0.0


def queue_wait_s(points: OperatingPoints, prompt: Lengths, percentile: Percentile) -> Matrix:
    """Time a prompt waits for prompts before it (Pollaczek–Khinchine mean; exponential tail).

    E[W] = ρ·S(1+cv²)/(2(1−ρ));  W_p = S(1+cv²)/(2(1−ρ)) · ln(ρ/(1−p)) where that is positive
    """
    lanes = points.in_flight / IN_FLIGHT_GRID[None, :]
    load = np.minimum(points.requests_per_s / np.maximum(lanes, 1.0) * points.passed_s, 0.999)
    scale = points.passed_s * (1.0 + squared_variation(prompt)) / (2.0 * (1.0 - load))
    if percentile == "mean":
        return load * scale
    tail = 1.0 - float(percentile[1:]) / 100.0
    return scale * np.maximum(0.0, np.log(np.maximum(load, 1e-12) / tail))


def first_token_s(points: OperatingPoints, traffic: Traffic, percentile: Percentile) -> Matrix:
    """TTFT at a percentile: mean passage, a longer prompt's own prefill, and waiting behind others."""
    longer = 1.0
    if percentile != "mean":
        longer = traffic.prompt.quantile(float(percentile[1:]) / 100.0) / max(traffic.prompt.mean, 1.0)
    own = points.time_to_first_token_s + (longer - 1.0) * points.prefill_s
    return own + queue_wait_s(points, traffic.prompt, percentile)


@dataclass(slots=True)
class ScreenedTimes:
    """Times of candidates at their operating points, which are on IN_FLIGHT_GRID: the same whatever the targets are, so each percentile
    is worked out once for all the targets that it is held against."""

    points: OperatingPoints
    traffic: Traffic
    _known: dict[tuple[str, Percentile], Matrix] = field(default_factory=dict, repr=False)
    _rising: "ScreenedTimes | None" = field(default=None, repr=False)

    def first_token_s(self, percentile: Percentile) -> Matrix:
        """TTFT at a percentile, (N, K)."""
        found = self._known.get(("first", percentile))
        if found is None:
            found = self._known["first", percentile] = first_token_s(self.points, self.traffic, percentile)
        return found

    def output_token_s(self, percentile: Percentile) -> Matrix:
        """TPOT at a percentile, (N, K)."""
        found = self._known.get(("token", percentile))
        if found is None:
            found = self._known["token", percentile] = output_token_s(self.points, self.traffic, percentile)
        return found

    @property
    def rising(self) -> "ScreenedTimes":
        """The same where a more crowded point counts as no slower than a less crowded one: rates differ by rounding alone there."""
        if self._rising is None:
            rates = np.maximum.accumulate(self.points.requests_per_s, axis=1)
            self._rising = ScreenedTimes(replace(self.points, requests_per_s=rates), self.traffic)
        return self._rising


def _at(lengths: Lengths, percentile: Percentile) -> float:
    return lengths.mean if percentile == "mean" else lengths.quantile(float(percentile[1:]) / 100.0)


def capacity(
    times: ScreenedTimes,
    targets: Targets,
    margin: Matrix | float = 1.0,
    network_s: Matrix | float = 0.0,
    *,
    generous: bool = False,
) -> Capacity:
    """Largest rate of every candidate at which all targets hold, interpolated between grid points.

    generous: memory and seats are taken to suffice for one more grid point than they do.

    margin: factor on predicted times (above 1 asks for confidence). network_s: round trip between users and candidates,
    added to what users wait for the first and for the last token.
    """
    points, limited = times.points, limited_times(times, targets, margin, network_s)
    feasible = points.feasible
    if generous:
        feasible = np.concatenate([np.ones_like(feasible[:, :1]), feasible[:, :-1]], axis=1)
    worst = np.stack([np.where(feasible, 0.0, 2.0), *(one.seconds / one.limit_s for one in limited)])
    binding = np.argmax(worst, axis=0)
    edge = _edge(points.requests_per_s, np.max(worst, axis=0), binding)
    blocking = np.where(edge.is_possible, edge.beyond(binding), binding[:, 0])
    best = np.zeros(len(blocking))
    for index, one in enumerate(limited, start=1):
        best = np.where(blocking == index, one.seconds[:, 0], best)
    return Capacity(
        requests_per_s=np.maximum(edge.at(points.requests_per_s), 0.0),
        in_flight=edge.at(points.in_flight),
        limit=blocking,
        best_s=best,
        limits=(None, *(one.limit for one in limited)),
        time_per_output_token_s=edge.at(points.time_per_output_token_s),
        time_to_first_token_s=edge.at(points.time_to_first_token_s),
        memory_utilisation=edge.at(points.memory_utilisation),
        compute_utilisation=edge.at(points.compute_utilisation),
    )


@dataclass(frozen=True, slots=True)
class LimitedTime:
    """A time that a target limits, at every grid point of every candidate (N, K), and what it may be."""

    limit: TargetLimit
    limit_s: float
    seconds: Matrix


def limited_times(
    times: ScreenedTimes, targets: Targets, margin: Matrix | float, network_s: Matrix | float
) -> list[LimitedTime]:
    """Every time that the targets limit: to the first token, per token, to the last token, to the first that is shown.

    A percentile of the last, and of the first shown, is taken of all its parts at once. margin, network_s: as ``capacity`` says.
    """
    found, traffic = [], times.traffic
    for percentile, limit_s in targets.time_to_first_token_s.items():
        first = times.first_token_s(percentile)
        found.append(LimitedTime(TargetLimit("time_to_first_token_s", percentile), limit_s, first * margin + network_s))
    for percentile, limit_s in targets.time_per_output_token_s.items():
        token = times.output_token_s(percentile)
        found.append(LimitedTime(TargetLimit("time_per_output_token_s", percentile), limit_s, token * margin))
    for percentile, limit_s in targets.end_to_end_s.items():
        later = max(_at(traffic.output, percentile) - 1.0, 0.0) * times.output_token_s(percentile)
        last = times.first_token_s(percentile) + later
        found.append(LimitedTime(TargetLimit("end_to_end_s", percentile), limit_s, last * margin + network_s))
    for percentile, limit_s in targets.time_to_first_answer_s.items():
        shown = times.first_token_s(percentile)
        if traffic.thinking is not None:
            shown = shown + _at(traffic.thinking.hidden, percentile) * times.output_token_s(percentile)
        found.append(
            LimitedTime(TargetLimit("time_to_first_answer_s", percentile), limit_s, shown * margin + network_s)
        )
    return found


@dataclass(frozen=True, slots=True)
class _Edge:
    """Per candidate (N,), where targets stop to hold on the grid: the last column within them, the next one, and how far towards it."""

    last: NDArray[np.intp]
    after: NDArray[np.intp]
    share: Vector
    is_possible: NDArray[np.bool_]
    """Do they hold anywhere?"""

    def at(self, matrix: Matrix) -> Vector:
        """Values (N, K) at the edge, between grid points; 0 where targets hold nowhere."""
        each = np.arange(len(self.last))
        here = matrix[each, self.last]
        return np.where(self.is_possible, here + self.share * (matrix[each, self.after] - here), 0.0)

    def beyond(self, matrix: NDArray[np.intp]) -> NDArray[np.intp]:
        """Values (N, K) at the grid point beyond it."""
        found: NDArray[np.intp] = matrix[np.arange(len(self.after)), self.after]
        return found


def _edge(requests_per_s: Matrix, ratio: Matrix, binding: NDArray[np.intp]) -> _Edge:
    """The edge at the largest rate within targets. ratio: the worst time over its target. binding: which that is, 0 for memory."""
    ok = ratio <= 1.0
    last = np.argmax(np.where(ok, requests_per_s, 0.0), axis=1)
    after = np.minimum(last + 1, requests_per_s.shape[1] - 1)
    each = np.arange(len(last))
    beyond = ratio[each, after]
    here = ratio[each, last]
    share = np.where((beyond > 1.0) & (beyond > here), (1.0 - here) / np.maximum(beyond - here, 1e-12), 0.0)
    # Memory holds a request or does not: nothing is gained on the way to a point that it does not hold.
    share = np.clip(np.where(binding[each, after] == 0, 0.0, share), 0.0, 1.0)
    is_possible: NDArray[np.bool_] = np.asarray(ok.any(axis=1))
    return _Edge(last, after, share, is_possible)


def most_requests_per_s(
    times: ScreenedTimes,
    targets: Targets,
    margin: Matrix | float = 1.0,
    network_s: Matrix | float = 0.0,
) -> Vector:
    """A rate that no candidate sustains more of: screening with its own errors allowed for, all in the candidate's favour.

    Times are taken TIME_SLACK shorter, and rates RATE_SLACK larger than that gives. It never falls as a target is loosened
    (``ScreenedTimes.rising``).
    """
    found = capacity(times.rising, targets, margin / TIME_SLACK, network_s, generous=True)
    return found.requests_per_s * RATE_SLACK


def saturation_requests_per_s(points: OperatingPoints) -> Vector:
    """A rate above what any candidate completes, whatever the latency."""
    return np.asarray(points.requests_per_s.max(axis=1)) * RATE_SLACK * RATE_SLACK


TIME_SLACK = 1.35
"""How much shorter than screened any simulated percentile was, at most, and some: ``python -m tests.bench.screening``."""
RATE_SLACK = 1.35
"""The same for rates that seats and the front end limit."""
