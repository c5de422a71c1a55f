"""Predict one fixed deployment: replay its load, name what its time is made of, say how sure the prediction is."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from solver.deployment.bound import Bound, roofline_bound
from solver.deployment.configuration import Configuration
from solver.deployment.kept_tables import TablesOf
from solver.engine.pipelining import stages_work_from
from solver.errors import SaturatedError
from solver.prediction.intervals import (
    NINE_OF_TEN_SCORE,
    PredictedInterval,
    holding,
    metric_interval,
    no_earlier,
    percentile_intervals,
    sampled,
    whole_requests,
)
from solver.prediction.lasting_queue import LastingQueue, lasting_queue
from solver.prediction.moved_constants import moved_constants
from solver.prediction.spreads import moved_spreads, widened
from solver.prediction.step_error import dilated, queued_spreads, reaching, step_spread, stretched
from solver.replay.long_run import LongRun, Metric, draw, replayed
from solver.replay.one_stream import Replay, mean_replay, open_draws, replay
from solver.sessions import hastened
from solver.step.named_terms import Term, dominant, step_terms
from solver.step.power import board_power_w
from solver.step.rates import multiplies_narrow
from solver.step.tables import StepTables
from solver.workload import PERCENTILES, Load, Traffic

METRICS = ("time_to_first_token", "time_per_output_token", "inter_token", "end_to_end", "output_rate", "power")


@dataclass(frozen=True, slots=True)
class Correction:
    """What measurements say about one configuration.

    factors: measured over predicted, by metric. spreads: (low, high) factors around that, by metric.
    """

    basis: str
    evidence: tuple[str, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Least and largest of measured over predicted among the runs that are cited, where they are known."""
    by_load: Callable[[float, float, float], Mapping[str, float]] | None = None
    """factors of a closed loop by its clients a replica, mean prompt and mean reply, where runs tell loads apart."""

    def at(self, load: Load, traffic: Traffic, replicas: int) -> "Correction":
        """The same with the factors of this load. Of an open one, whose clients nobody states, with those of any."""
        if self.by_load is None or load.kind != "closed" or not load.concurrency:
            return self
        return replace(
            self, factors=self.by_load(load.concurrency / replicas, traffic.prompt.mean, traffic.output.mean)
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """One prediction. Times in seconds, rates of the whole deployment, power of all its devices in watts."""

    basis: str
    evidence: tuple[str, ...]
    time_to_first_token_s: dict[str, PredictedInterval]
    time_per_output_token_s: dict[str, PredictedInterval]
    inter_token_s: dict[str, PredictedInterval]
    end_to_end_s: dict[str, PredictedInterval]
    output_tokens_per_s: PredictedInterval
    requests_per_s: PredictedInterval
    power_w: PredictedInterval
    joules_per_output_token: PredictedInterval
    prefill_bottleneck: str
    decode_bottleneck: str
    step: tuple[Term, ...]
    bound: Bound
    decoding_sequences: float
    """Mean number in flight of one replica, at least one: those of ``step``."""
    prefix_hit_fraction: float | None = None
    """Share of the tokens of prompts found in the cache, where requests are turns of sessions."""
    routed_over: int | None = None
    """Replicas among which turns of sessions were spread; 1: sessions stay where they began."""
    time_to_first_answer_s: dict[str, PredictedInterval] | None = None
    """To the first token that is shown, where some are hidden."""
    lasting_queue: LastingQueue | None = None
    """Of an open load: the queue that stays once it has come up; None where it goes."""


def estimate(
    configuration: Configuration,
    traffic: Traffic,
    load: Load,
    correction: Correction | None = None,
    tables_of: TablesOf = Configuration.tables,
) -> Estimate:
    """Predict a load on a configuration. tables_of: makes step tables, or has kept them (``solver.deployment.kept_tables``).

    Without a correction the interval comes from the constants' own ranges: the load's first draw is replayed twice more,
    with all of them moved against and in favour of speed by half their range (errors of independent constants partly
    cancel). With one, an open load is replayed with all steps slower and faster by as much as tokens were ever off
    (``solver.prediction.step_error``). What one draw of an open load differs from the next widens every interval. Where releases differ
    in whether pipeline stages work at once and none is stated, intervals hold what they do in either.
    Raises SaturatedError, InvalidInputError, UnsupportedError and FigureMissingError.
    """
    correction = correction.at(load, traffic, configuration.layout.data_parallel) if correction is not None else None
    configuration = without_probes(configuration, correction)
    tables = tables_of(configuration)
    run = replayed(configuration, tables, traffic, load)
    moved = None
    if needs_moving(correction):
        slow = _shifted(configuration, traffic, load, tables_of, towards_slow=True, fallback=run.centre)
        moved = slow, _shifted(configuration, traffic, load, tables_of, towards_slow=False, fallback=run.centre)
    elif correction is not None and load.kind == "open":
        moved = _with_step_error(configuration, tables, traffic, load, correction, fallback=run.centre)
    other = with_stages_at_once(configuration)
    at_once = None if other is None else _replay_if_served(other, traffic, load, tables_of)
    found = estimated(configuration, tables, traffic, load, run, moved, correction, at_once)
    return replace(found, lasting_queue=lasting_queue(configuration, tables, traffic, load, tables_of))


def with_stages_at_once(configuration: Configuration) -> Configuration | None:
    """The configuration under a release whose pipeline stages work at once, where any release is meant and they do not in the one that
    is taken."""
    engine, stages = configuration.engine, configuration.layout.pipeline_parallel
    if engine.version is not None or not engine.any_release or configuration.batches == stages:
        return None
    return replace(configuration, engine=replace(engine, version=stages_work_from(engine.name, configuration.shape)))


def _replay_if_served(configuration: Configuration, traffic: Traffic, load: Load, tables_of: TablesOf) -> Replay | None:
    try:
        return replay(configuration, tables_of(configuration), traffic, load)
    except SaturatedError:
        return None


def without_probes(configuration: Configuration, correction: Correction | None) -> Configuration:
    """The configuration as a correction found it.

    Factors were made against constants without probes, and the runs behind them say what the probes would.
    """
    if correction is None or not correction.factors:
        return configuration
    if configuration.speculation is None and not configuration.constants.evidence:
        return configuration
    return configuration.with_constants(configuration.constants.without_probes())


def at_once_error_fraction(result: Replay, share: float) -> float:
    """One standard deviation of what is not known of how the prompts of equal requests come together: nine of ten loops lie within a
    share of the way from the geometric middle of the two regimes to either.

    >>> calm = Replay(*({"mean": 0.2} for _ in range(4)), 100.0, 1.0, 0.5, 0.5, 4.0, 0)
    >>> at_once_error_fraction(calm, 0.5)
    0.0
    """
    return share * 0.5 * abs(math.log(max(result.at_once_ratio, 1e-12))) / NINE_OF_TEN_SCORE


def needs_moving(correction: Correction | None) -> bool:
    """Does the interval come from the constants' ranges, because no measurement gives a spread?"""
    return correction is None or not correction.spreads


def estimated(
    configuration: Configuration,
    tables: StepTables,
    traffic: Traffic,
    load: Load,
    run: LongRun,
    moved: tuple[Replay, Replay] | None,
    correction: Correction | None,
    at_once: Replay | None = None,
) -> Estimate:
    """A run as a prediction. moved: its first draw with slow and with fast constants where ``needs_moving``, of other open
    loads with slow and with fast steps. at_once: with pipeline stages that work at once, where the release that is meant may be one
    in which they do."""
    result = run.mean
    if needs_moving(correction):
        assert moved is not None
        basis = correction.basis if correction else configuration.constants.basis
        basis = "borrowed" if basis in ("measured", "corrected") and correction is None else basis
        spreads = moved_spreads(
            run.centre, *moved, configuration.constants, any_release=configuration.engine.any_release
        )
        if configuration.speculation is not None:
            spreads = widened(spreads, configuration.constants.si("interval_widening_unseen"))
        factors: Mapping[str, float] = correction.factors if correction else {}
    else:
        assert correction is not None
        basis, spreads, factors = correction.basis, dict(correction.spreads), correction.factors
        if result.time_to_first_answer_s is not None and "end_to_end" in spreads:
            spreads.setdefault("time_to_first_answer", spreads["end_to_end"])
        if moved is not None:
            spreads = queued_spreads(spreads, run.centre, *moved)
    if at_once is not None:
        spreads = reaching(spreads, run.centre, at_once)
    if correction is not None:
        spreads = holding(spreads, factors, correction.ranges)
    power = mean_power_w(configuration, result)
    busy_sequences = max(1.0, result.mean_in_flight)
    steps = decode_terms(configuration, tables, busy_sequences, traffic)
    bound = roofline_bound(configuration, traffic, load)

    def interval(metric: str, value: float, floor: float = 0.0, ceiling: float = float("inf")) -> PredictedInterval:
        return metric_interval(metric, value, spreads, factors, floor, ceiling)

    def times(metric: Metric, floor: float = 0.0) -> dict[str, PredictedInterval]:
        known = percentile_intervals(metric.removesuffix("_s"), getattr(result, metric), spreads, factors, floor)
        share = configuration.constants.si("interval_regimes_share") if metric == "time_to_first_token_s" else 0.0
        regimes = at_once_error_fraction(result, share)
        return {
            name: sampled(known[name], math.hypot(run.sampling_error_fraction(metric, name), regimes), floor)
            for name in PERCENTILES
        }

    if moved is not None and load.kind == "open" and load.requests is None:
        # Below its capacity a steady load is served as it comes: no factor changes its rate, and nothing makes it more.
        served = min(1.0, moved[0].output_tokens_per_s / run.centre.output_tokens_per_s)
        output_rate = metric_interval("output_rate", result.output_tokens_per_s, {"output_rate": (served, 1.0)}, {})
    else:
        output_rate = interval("output_rate", result.output_tokens_per_s, ceiling=bound.output_tokens_per_s)
    per_request = result.requests_per_s / max(result.output_tokens_per_s, 1e-12)
    watts = interval("power", power)
    first = times("time_to_first_token_s")
    answered = None if result.time_to_first_answer_s is None else times("time_to_first_answer_s")
    answered = None if answered is None else no_earlier(answered, first)
    return Estimate(
        basis=basis,
        evidence=(correction.evidence if correction else ()) + configuration.constants.evidence,
        time_to_first_token_s=first,
        time_per_output_token_s=times(
            "time_per_output_token_s", bound.time_per_output_token_s if traffic.output.maximum > 1 else 0.0
        ),
        inter_token_s=times("inter_token_s"),
        end_to_end_s=whole_requests(traffic, first, answered, times("end_to_end_s")),
        output_tokens_per_s=output_rate,
        requests_per_s=PredictedInterval(
            *(x * per_request for x in (output_rate.expected, output_rate.low, output_rate.high))
        ),
        power_w=watts,
        joules_per_output_token=PredictedInterval(
            watts.expected / output_rate.expected,
            watts.low / output_rate.high,
            watts.high / max(output_rate.low, 1e-12),
        ),
        prefill_bottleneck=dominant(prefill_terms(configuration, traffic)),
        decode_bottleneck=dominant(steps),
        step=steps,
        bound=bound,
        decoding_sequences=busy_sequences,
        prefix_hit_fraction=result.prefix_hit_fraction,
        routed_over=traffic.sessions.spread_over if traffic.sessions is not None else None,
        time_to_first_answer_s=answered,
    )


def decode_terms(
    configuration: Configuration, tables: StepTables, sequences: float, traffic: Traffic
) -> tuple[Term, ...]:
    """Terms of a decode step with ``sequences`` in flight, drafting among them where tokens are drafted."""
    shape, rates, layout = configuration.shape, configuration.rates(), configuration.layout
    if configuration.speculation is None:
        return step_terms(shape, rates, layout, sequences, traffic)
    seat = min(round(sequences), len(tables.draft_s) - 1)
    queries = configuration.speculation.decoding.draft_tokens + 1.0
    return step_terms(
        shape, rates, layout, sequences, traffic, queries=queries, drafting_s=tables.draft_s[max(seat, 1)]
    )


def mean_power_w(configuration: Configuration, result: Replay) -> float:
    """Mean power of all devices of the deployment over a replay."""
    return devices_power_w(configuration, result.memory_utilisation, result.compute_utilisation)


def devices_power_w(configuration: Configuration, memory_utilisation: float, compute_utilisation: float) -> float:
    """Mean power of all devices of the deployment at these shares of the datasheet rates."""
    narrow = multiplies_narrow(configuration.device, configuration.precision.weights)
    per_device = board_power_w(
        configuration.device.power_limit_w,
        configuration.constants,
        memory_utilisation=memory_utilisation,
        compute_utilisation=compute_utilisation,
        narrow=narrow,
    )
    return float(np.asarray(per_device)) * configuration.layout.devices


def prefill_step_tokens(configuration: Configuration, traffic: Traffic) -> float:
    """Tokens of the mean prompt in one step."""
    return max(min(traffic.prompt.mean, float(configuration.engine.max_batched_tokens)), 1.0)


def prefill_terms(configuration: Configuration, traffic: Traffic) -> tuple[Term, ...]:
    tokens = prefill_step_tokens(configuration, traffic)
    return step_terms(
        configuration.shape, configuration.rates(), configuration.layout, 0.0, traffic, prefill_tokens=tokens
    )  # fmt: skip


def _shifted(
    configuration: Configuration,
    traffic: Traffic,
    load: Load,
    tables_of: TablesOf,
    *,
    towards_slow: bool,
    fallback: Replay,
) -> Replay:
    """The first draw with moved constants; an open load that then saturates keeps the centre's result, stretched."""
    moved = configuration.with_constants(moved_constants(configuration.constants, towards_slow=towards_slow))
    try:
        return _compared(moved, tables_of(moved), traffic, load)
    except SaturatedError as limit:
        return stretched(fallback, load, limit, configuration.constants)


def _compared(configuration: Configuration, tables: StepTables, traffic: Traffic, load: Load) -> Replay:
    """What under moved constants stands beside ``LongRun.centre``: the same draws."""
    if load.kind == "open" and load.requests is None:
        return draw(configuration, tables, traffic, load.requests_per_s)
    if load.kind == "open":
        return mean_replay(open_draws(configuration, tables, traffic, load))
    return replay(configuration, tables, traffic, load)


def _with_step_error(
    configuration: Configuration,
    tables: StepTables,
    traffic: Traffic,
    load: Load,
    correction: Correction,
    fallback: Replay,
) -> tuple[Replay, Replay]:
    """The first draw of an open load with slow and with fast steps."""

    def at(factor: float) -> Replay:
        faster = replace(load, requests_per_s=load.requests_per_s * factor)
        try:
            return dilated(_compared(configuration, tables, hastened(traffic, factor), faster), factor)
        except SaturatedError as limit:
            return stretched(fallback, faster, limit, configuration.constants)

    low, high = step_spread(correction.spreads)
    return at(high), at(low)
