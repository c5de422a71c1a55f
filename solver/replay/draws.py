"""Several draws of requests replayed on several deployments in one call, on as many threads as are wanted.

What a confirmation asks for: the same draws on every deployment, so that deployments differ and not their luck, and
enough of them that a tail says something. The kernel runs without the interpreter lock, so threads run side by side;
processor time is that of one thread.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solver.engine.replayable import Prefixes, check_fitting, check_tabulated, longest_tokens, one_prefix
from solver.engine.simulate import Schedule, Vector, Whole
from solver.errors import InvalidInputError
from solver.replay.kept import kept
from solver.replay.one_stream import sampled_requests
from solver.step.tables import StepTables
from solver.workload import Traffic

if TYPE_CHECKING:
    from solver.engine.kernel.columns import Engine


@dataclass(frozen=True, slots=True)
class Draws:
    """(draws, requests) arrays: tokens, and arrival times in seconds at one request per second.

    prefixes: of each draw, what is cached of its prompts; none: each deployment's schedule says (``one_prefix``).
    """

    prompts: Whole
    outputs: Whole
    unit_arrivals_s: Vector
    prefixes: tuple[Prefixes, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedLane:
    """One lane of a deployment and the requests per second that come to it."""

    tables: StepTables
    schedule: Schedule
    requests_per_s: float


@dataclass(frozen=True, slots=True)
class DrawTimes:
    """Seconds of every request, (lanes, draws, requests); preemptions (lanes, draws)."""

    time_to_first_token_s: Vector
    time_per_output_token_s: Vector
    end_to_end_s: Vector
    preemptions: Whole


@kept
def drawn(traffic: Traffic, requests: int, seeds: tuple[int, ...]) -> Draws:
    """One draw for each seed, the same that ``replay`` makes of it."""
    prompts, outputs, arrivals = zip(*(sampled_requests(traffic, requests, seed) for seed in seeds), strict=True)
    return Draws(np.stack(prompts), np.stack(outputs), np.stack(arrivals))


@dataclass(frozen=True, slots=True)
class ReadyDraw:
    """One draw with all of it that no rate changes.

    intervals: between the tokens of each reply, 1 where there are none. single: replies of one token, None where there
    are none. longest_tokens: cache that the longest request needs.
    """

    prompts: Whole
    outputs: Whole
    unit_arrivals_s: Vector
    prefixes: Prefixes
    intervals: Vector
    single: NDArray[np.bool_] | None
    longest_tokens: int


def ready_draw(draws: Draws, number: int, prefix_fraction: float) -> ReadyDraw:
    """prefix_fraction: of every prompt, cached, where the draws do not say. Raises InvalidInputError."""
    prompts, outputs = draws.prompts[number], draws.outputs[number]
    prefixes = draws.prefixes[number] if draws.prefixes else one_prefix(prompts, prefix_fraction)
    longest, single = longest_tokens(prompts, outputs, prefixes), outputs < 2
    intervals = np.maximum(outputs - 1, 1).astype(np.float64)
    arrivals_s = draws.unit_arrivals_s[number]
    return ReadyDraw(prompts, outputs, arrivals_s, prefixes, intervals, single if single.any() else None, longest)


@kept
def ready_draws(
    traffic: Traffic, requests: int, seeds: tuple[int, ...], prefix_fraction: float
) -> tuple[ReadyDraw, ...]:
    """``drawn``, ready for every lane that caches the same share of prompts."""
    draws = drawn(traffic, requests, seeds)
    return tuple(ready_draw(draws, number, prefix_fraction) for number in range(len(seeds)))


def replay_draws(lanes: Sequence[LoadedLane], draws: Draws, *, threads: int = 1) -> DrawTimes:
    """Replay every draw on every lane at its rate; the same figures whatever the number of threads.

    A load above capacity is replayed like any other: its queue grows to the end of the draw.
    Raises InvalidInputError for a rate that is none, no draws, and what ``simulate`` refuses.
    """
    if draws.prompts.ndim != 2 or not draws.prompts.shape == draws.outputs.shape == draws.unit_arrivals_s.shape:
        raise InvalidInputError("draws are arrays of one shape: draws by requests")
    if any(not (np.isfinite(one.requests_per_s) and one.requests_per_s > 0) for one in lanes):
        raise InvalidInputError("every lane needs a positive rate")
    seeds = len(draws.prompts)
    shape = (len(lanes), *draws.prompts.shape)
    times = DrawTimes(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[:2], dtype=np.int64))
    if threads < 2 or len(lanes) * seeds < 2:
        for number in range(len(lanes)):
            _replay_lane(lanes, draws, number, range(seeds), times)
        return times
    with ThreadPoolExecutor(threads) as pool:
        each = [(number, range(draw, draw + 1)) for number in range(len(lanes)) for draw in range(seeds)]
        for done in [pool.submit(_replay_lane, lanes, draws, number, which, times) for number, which in each]:
            done.result()
    return times


@dataclass(frozen=True, slots=True)
class LaneTimes:
    """Seconds of every request, (draws, requests); preemptions (draws,)."""

    time_to_first_token_s: Vector
    time_per_output_token_s: Vector
    end_to_end_s: Vector
    preemptions: Whole

    def rows_from(self, first: int) -> Vector:
        """Requests from ``first`` on, (3 · draws, requests): times to the first token of each draw, per token, to the end."""
        each = (self.time_to_first_token_s, self.time_per_output_token_s, self.end_to_end_s)
        return np.concatenate([times[:, first:] for times in each])


@dataclass(frozen=True, slots=True)
class KernelInput:
    """Step tables and a schedule as the kernel takes them, checked against each other once."""

    engine: "Engine"
    most_requests_tabulated: tuple[int, int]


def prepared(tables: StepTables, schedule: Schedule) -> KernelInput:
    """For any number of open loads, one after the other or side by side."""
    from solver.engine.kernel.columns import engine  # imports numba

    on = engine(tables, schedule, closed=False, notes_gaps=False)
    return KernelInput(on, (len(tables.decode_s), len(tables.head_s)))


def replay_prepared(
    on: KernelInput, schedule: Schedule, requests_per_s: float, draws: Sequence[ReadyDraw]
) -> LaneTimes:
    """Replay draws of as many requests on one lane at a rate, on two threads where there is more than one draw.

    The figures do not depend on that. Raises InvalidInputError as ``replay_draws`` does.
    """
    shape = (len(draws), len(draws[0].prompts))
    times = LaneTimes(np.empty(shape), np.empty(shape), np.empty(shape), np.zeros(shape[0], dtype=np.int64))
    numbered = dict(enumerate(draws))
    if len(draws) < 2:
        _replay(on, schedule, requests_per_s, numbered, times)
        return times
    here, beside = dict(list(numbered.items())[::2]), dict(list(numbered.items())[1::2])
    with ThreadPoolExecutor(1) as other:  # of this call alone: a thread that waits would not survive a fork
        done = other.submit(_replay, on, schedule, requests_per_s, beside, times)
        _replay(on, schedule, requests_per_s, here, times)
        done.result()
    return times


def _replay_lane(lanes: Sequence[LoadedLane], draws: Draws, number: int, which: range, times: DrawTimes) -> None:
    """Some draws on one lane, written where they belong."""
    lane = lanes[number]
    mine = LaneTimes(
        times.time_to_first_token_s[number],
        times.time_per_output_token_s[number],
        times.end_to_end_s[number],
        times.preemptions[number],
    )
    ready = {draw: ready_draw(draws, draw, lane.schedule.cached_prefix_fraction) for draw in which}
    _replay(prepared(lane.tables, lane.schedule), lane.schedule, lane.requests_per_s, ready, mine)


def _replay(
    on: KernelInput, schedule: Schedule, requests_per_s: float, draws: Mapping[int, ReadyDraw], times: LaneTimes
) -> None:
    """Draws of as many requests each, into the rows of ``times`` that they are numbered by."""
    from solver.engine.kernel.columns import replayed, working_space  # imports numba

    queues = None
    for number, draw in draws.items():
        check_fitting(schedule, draw.longest_tokens)
        check_tabulated(schedule, len(draw.prompts), *on.most_requests_tabulated)
        queues = queues or working_space(len(draw.prompts), min(len(draw.prompts), on.engine.seats))
        arrivals_s = draw.unit_arrivals_s / requests_per_s
        found = replayed(on.engine, draw.prompts, draw.outputs, 0, arrivals_s, draw.prefixes, queues=queues)
        np.subtract(found.first_s, found.sent_s, out=times.time_to_first_token_s[number])
        np.subtract(found.last_s, found.sent_s, out=times.end_to_end_s[number])
        per_token_s = times.time_per_output_token_s[number]
        np.divide(found.last_s - found.first_s, draw.intervals, out=per_token_s)
        if draw.single is not None:
            per_token_s[draw.single] = 0.0
        times.preemptions[number] = found.end.preemptions
