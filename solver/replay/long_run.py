"""What a replica does in the long run at a rate: the one rule by which steady open loads are simulated everywhere.

A percentile of a short run is not that of the workload: requests in flight pile up slowly near capacity, and one draw of
arrivals is an easy or a hard one. So a steady state is the mean over DRAWS replays of DRAW_REQUESTS requests each, with
arrivals and lengths of its own, and what one draw differs from the next says how sure that is. Where crowds come and go
slowly, draws differ by a factor, and there are more of them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

from solver.deployment.configuration import Configuration
from solver.replay.draw_sizes import DRAW_REQUESTS, DRAW_SEEDS, FURTHER_SEEDS
from solver.replay.one_stream import Replay, Statistics, mean_replay, open_draws, replay
from solver.replay.streams import MixedReplay, RequestStream, replay_mixed
from solver.step.tables import StepTables
from solver.workload import Load, Percentile, Traffic

SURE_FRACTION = 0.07
"""A percentile at the 95th whose standard error is below this share of it needs no further draws."""
TURNOVERS = 10
"""How often all seats of a lane are taken anew in a draw, at least."""

Metric = Literal[
    "time_to_first_token_s", "time_per_output_token_s", "inter_token_s", "end_to_end_s", "time_to_first_answer_s",
]  # fmt: skip
STEADY_METRICS: tuple[Metric, ...] = ("time_to_first_token_s", "time_per_output_token_s")


class DrawPercentiles(Protocol):
    """What draws of one load say."""

    def value_s(self, metric: Metric, percentile: Percentile, /) -> float:
        """A percentile over requests, averaged over the draws."""

    def standard_error_s(self, metric: Metric, percentile: Percentile, /) -> float:
        """Of that average, by how the draws differ; 0 for one."""


def is_sure(run: DrawPercentiles) -> bool:
    """Do the first draws agree so far that there need be no more?

    It turns on the load alone, not on targets: whoever asks about a rate hears of the same draws.
    """
    return all(
        run.standard_error_s(metric, "p95") <= SURE_FRACTION * run.value_s(metric, "p95") for metric in STEADY_METRICS
    )


@dataclass(frozen=True, slots=True)
class LongRun:
    """``draws``: replays of one load that differ in nothing but their arrivals and the order of lengths. ``single``: what is asked
    about is one more such run, and not what they have in common."""

    draws: tuple[Replay, ...]
    single: bool = False

    @property
    def centre(self) -> Replay:
        """What a load under moved constants is compared with: the first draw of the long run, the mean of single ones."""
        return self.mean if self.single else self.draws[0]

    @property
    def mean(self) -> Replay:
        """Every figure averaged over the draws."""
        return mean_replay(self.draws)

    def value_s(self, metric: Metric, percentile: Percentile) -> float:
        """A percentile over requests, averaged over the draws."""
        return math.fsum(self._of(metric, percentile)) / len(self.draws)

    def standard_error_s(self, metric: Metric, percentile: Percentile) -> float:
        """Of that average, by how the draws differ: s/√n. 0 for one draw."""
        if len(self.draws) < 2:
            return 0.0
        middle = self.value_s(metric, percentile)
        squares = math.fsum((value - middle) ** 2 for value in self._of(metric, percentile))
        return math.sqrt(squares / (len(self.draws) - 1) / len(self.draws))

    def sampling_error_fraction(self, metric: Metric, percentile: Percentile) -> float:
        """Standard error of the percentile over its value; of a single further run, whose own draw comes to it: s·√(1 + 1/n)."""
        value = self.value_s(metric, percentile)
        error = self.standard_error_s(metric, percentile) * (math.sqrt(len(self.draws) + 1) if self.single else 1.0)
        return error / value if value > 0.0 else 0.0

    def _of(self, metric: Metric, percentile: Percentile) -> Iterator[float]:
        for draw in self.draws:
            values: Statistics = getattr(draw, metric) or draw.time_to_first_token_s
            yield values[percentile]


def draw_requests(configuration: Configuration) -> int:
    """Requests of one draw, per lane."""
    seats = max(1, configuration.engine.max_sequences // configuration.layout.pipeline_parallel)
    return max(DRAW_REQUESTS, TURNOVERS * seats)


Drawn = TypeVar("Drawn")


def enough_draws(
    draw_of: Callable[[int], Drawn], as_run: Callable[[tuple[Drawn, ...]], DrawPercentiles]
) -> tuple[Drawn, ...]:
    """The first draws, and the further ones where those do not agree. draw_of: makes one from its seed."""
    first = tuple(draw_of(seed) for seed in DRAW_SEEDS)
    return first if is_sure(as_run(first)) else first + tuple(draw_of(seed) for seed in FURTHER_SEEDS)


def draw(
    configuration: Configuration, tables: StepTables, traffic: Traffic, requests_per_s: float, seed: int = DRAW_SEEDS[0]
) -> Replay:
    """One draw of a steady open load. Raises SaturatedError above capacity, InvalidInputError."""
    load = Load("open", requests_per_s=requests_per_s)
    return replay(configuration, tables, traffic, load, seed=seed, requests=draw_requests(configuration))


def long_run(configuration: Configuration, tables: StepTables, traffic: Traffic, requests_per_s: float) -> LongRun:
    """All draws of a steady open load. Raises as ``draw`` does."""
    return LongRun(enough_draws(partial(draw, configuration, tables, traffic, requests_per_s), LongRun))


def replayed(configuration: Configuration, tables: StepTables, traffic: Traffic, load: Load) -> LongRun:
    """Any load: a steady open one in the long run, one of so many requests in several draws, a closed one as it is.

    Raises as ``solver.replay.one_stream.replay`` does.
    """
    if load.kind != "open":
        return LongRun((replay(configuration, tables, traffic, load),))
    if load.requests is None:
        return long_run(configuration, tables, traffic, load.requests_per_s)
    return LongRun(open_draws(configuration, tables, traffic, load), single=True)


@dataclass(frozen=True, slots=True)
class MixedLongRun:
    """The same of several streams of requests at once."""

    draws: tuple[MixedReplay, ...]

    @property
    def whole(self) -> LongRun:
        """Over all requests."""
        return LongRun(tuple(one.whole for one in self.draws))

    def of_stream(self, number: int) -> LongRun:
        """Over those of one stream."""
        return LongRun(tuple(one.streams[number] for one in self.draws))


def draw_mixed(
    configuration: Configuration,
    tables: StepTables,
    streams: Sequence[RequestStream],
    seed: int,
    *,
    notes_gaps: bool = True,
) -> MixedReplay:
    """One draw of a steady open load of several streams. Raises as ``draw`` does."""
    requests = draw_requests(configuration)
    return replay_mixed(configuration, tables, streams, seed=seed, requests=requests, notes_gaps=notes_gaps)


def long_run_mixed(configuration: Configuration, tables: StepTables, streams: Sequence[RequestStream]) -> MixedLongRun:
    """All draws of a steady open load of several streams. Raises as ``draw`` does."""
    draw_of = partial(draw_mixed, configuration, tables, streams)
    return MixedLongRun(enough_draws(draw_of, lambda draws: MixedLongRun(draws).whole))
