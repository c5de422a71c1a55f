"""Predict one deployment under several streams of requests at once: the whole, and each stream."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from solver.deployment.configuration import Configuration
from solver.errors import SaturatedError
from solver.prediction.estimate import (
    Correction,
    Estimate,
    estimated,
    needs_moving,
    without_probes,
)
from solver.prediction.lasting_queue import lasting_queue_of_mix
from solver.prediction.moved_constants import moved_constants
from solver.prediction.step_error import dilated, step_spread, stretched
from solver.replay.long_run import LongRun, draw_requests, long_run_mixed
from solver.replay.one_stream import Replay
from solver.replay.streams import MixedReplay, RequestStream, replay_mixed
from solver.step.tables import StepTables
from solver.workload import Load, Traffic, mixed_traffic


@dataclass(frozen=True, slots=True)
class MixedEstimate:
    """whole: over all requests together. streams: over those of each, in the order given; power is of the deployment."""

    whole: Estimate
    streams: tuple[Estimate, ...]


def estimate_mixed(
    configuration: Configuration,
    streams: Sequence[RequestStream],
    correction: Correction | None = None,
) -> MixedEstimate:
    """As ``estimate`` for a steady open load, from one long run of all streams; each has an interval of its own.

    A correction holds for the configuration whatever its requests are, so for every stream alike. Raises as ``estimate``.
    """
    configuration = without_probes(configuration, correction)
    tables = configuration.tables()
    run = long_run_mixed(configuration, tables, streams)
    total = Load("open", requests_per_s=sum(one.requests_per_s for one in streams))
    moved: tuple[MixedReplay, MixedReplay] | None = None
    if needs_moving(correction):
        ends = [_moved(configuration, streams, run.draws[0], total, towards_slow=slow) for slow in (True, False)]
        moved = ends[0], ends[1]
    elif correction is not None:
        low, high = step_spread(correction.spreads)
        moved = (
            _with_steps(configuration, tables, streams, run.draws[0], total, high),
            _with_steps(configuration, tables, streams, run.draws[0], total, low),
        )
    traffic = mixed_traffic([(one.traffic, one.requests_per_s) for one in streams])

    def made(of: Traffic, load: Load, centre: LongRun, both: tuple[Replay, Replay] | None) -> Estimate:
        return estimated(configuration, tables, of, load, centre, both, correction)

    whole = made(traffic, total, run.whole, None if moved is None else (moved[0].whole, moved[1].whole))
    queue = lasting_queue_of_mix(configuration, tables, streams, Configuration.tables)
    return MixedEstimate(
        replace(whole, lasting_queue=queue),
        tuple(
            made(
                one.traffic,
                Load("open", requests_per_s=one.requests_per_s),
                run.of_stream(n),
                None if moved is None else (moved[0].streams[n], moved[1].streams[n]),
            )
            for n, one in enumerate(streams)
        ),
    )


def _moved(
    configuration: Configuration,
    streams: Sequence[RequestStream],
    centre: MixedReplay,
    total: Load,
    *,
    towards_slow: bool,
) -> MixedReplay:
    """The first draw with moved constants; a load that then saturates keeps the centre's result, stretched."""
    constants = moved_constants(configuration.constants, towards_slow=towards_slow)
    moved = configuration.with_constants(constants)
    try:
        return replay_mixed(moved, moved.tables(), streams, seed=1, requests=draw_requests(moved))
    except SaturatedError as limit:
        return _all_stretched(centre, total, limit, configuration)


def _with_steps(
    configuration: Configuration,
    tables: StepTables,
    streams: Sequence[RequestStream],
    centre: MixedReplay,
    total: Load,
    factor: float,
) -> MixedReplay:
    """The first draw with every step ``factor`` times as long: see ``solver.prediction.step_error``."""
    faster = [replace(one, requests_per_s=one.requests_per_s * factor) for one in streams]
    try:
        found = replay_mixed(configuration, tables, faster, seed=1, requests=draw_requests(configuration))
    except SaturatedError as limit:
        more = replace(total, requests_per_s=total.requests_per_s * factor)
        return _all_stretched(centre, more, limit, configuration)
    return MixedReplay(dilated(found.whole, factor), tuple(dilated(one, factor) for one in found.streams))


def _all_stretched(
    centre: MixedReplay, total: Load, limit: SaturatedError, configuration: Configuration
) -> MixedReplay:
    whole = stretched(centre.whole, total, limit, configuration.constants)
    return MixedReplay(whole, tuple(stretched(one, total, limit, configuration.constants) for one in centre.streams))
