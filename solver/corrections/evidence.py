"""Measured runs as the fit takes them, and what the model says about each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from solver.deployment.configuration import Configuration
from solver.errors import SaturatedError, SolverError
from solver.prediction.estimate import mean_power_w
from solver.prediction.step_error import dilated, stretched
from solver.replay.long_run import LongRun
from solver.replay.one_stream import Replay, open_draws, replay
from solver.step.constants import Constants
from solver.workload import Load, Traffic

Metric = str

WEIGHTS: dict[Metric, float] = {
    "time_per_output_token": 0.03,
    "output_rate": 0.03,
    "time_to_first_token": 0.08,
    "time_to_first_token.p99": 0.10,
    "power": 0.05,
}
"""Standard deviation expected of the logarithm of measured over predicted: what one unit of misfit is."""

DRAWN_APART = 100
"""Between the seeds of two draws: an open load of few requests takes several from one on."""
TIME_TO_FIRST_TOKEN_FLOOR_S = 0.015
"""Below this, TTFT is scheduling noise of the host: a relative error there counts for less."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured run. group: what is left out together when accuracy is measured (device, engine, LLM, precision,
    layout). measured: seconds, tokens per second and watts by metric; absent metrics were not measured. host: on which it was
    made: processors differ (``tests/bench/host_constants.py``)."""

    id: str
    group: str
    model_class: str
    """dense or moe: intervals are kept apart."""
    configuration: Configuration
    traffic: Traffic
    load: Load
    measured: Mapping[Metric, float]
    host: str = ""


def predicted(measurement: Measurement, constants: Constants, draws: int = 1) -> dict[Metric, float]:
    """The model's figure for every metric of a run under these constants, averaged over so many draws of its requests. Raises what
    ``replay`` raises."""
    configuration = _configured(measurement, constants)
    tables = configuration.tables()
    found = [
        _figures(
            configuration,
            replay(configuration, tables, measurement.traffic, measurement.load, seed=1 + DRAWN_APART * draw),
        )
        for draw in range(draws)
    ]
    return {metric: math.fsum(one[metric] for one in found) / draws for metric in found[0]}


def predicted_with_steps(measurement: Measurement, constants: Constants, factor: float) -> dict[Metric, float]:
    """The same of an open load whose every step takes ``factor`` times as long (see ``solver.prediction.step_error``)."""
    configuration = _configured(measurement, constants)
    tables = configuration.tables()
    faster = replace(measurement.load, requests_per_s=measurement.load.requests_per_s * factor)
    try:
        found = dilated(replay(configuration, tables, measurement.traffic, faster), factor)
    except SaturatedError as limit:
        centre = replay(configuration, tables, measurement.traffic, measurement.load)
        found = stretched(centre, faster, limit, configuration.constants)
    return _figures(configuration, found)


def draw_error_fractions(measurement: Measurement, constants: Constants) -> dict[Metric, float]:
    """Of an open load: how far one run of its requests differs from the mean of many, by metric of latency, as one standard
    deviation over the value. Nothing for a closed load, whose requests do not wait for arrivals."""
    if measurement.load.kind != "open" or not measurement.load.requests:
        return {}
    configuration = _configured(measurement, constants)
    drawn = open_draws(configuration, configuration.tables(), measurement.traffic, measurement.load)
    run = LongRun(drawn, single=True)
    return {
        "time_per_output_token": run.sampling_error_fraction("time_per_output_token_s", "mean"),
        "time_per_output_token.p99": run.sampling_error_fraction("time_per_output_token_s", "p99"),
        "time_to_first_token": run.sampling_error_fraction("time_to_first_token_s", "mean"),
        "time_to_first_token.p99": run.sampling_error_fraction("time_to_first_token_s", "p99"),
        "end_to_end": run.sampling_error_fraction("end_to_end_s", "mean"),
    }


def _configured(measurement: Measurement, constants: Constants) -> Configuration:
    configuration = measurement.configuration
    # What is fitted to a model is how its random weights route; experts that are drawn evenly are no matter of weights.
    own = constants.owned_by(configuration.shape.id, stated=not configuration.random_routing)
    return configuration.with_constants(own)


def _figures(configuration: Configuration, found: Replay) -> dict[Metric, float]:
    return {
        "time_per_output_token": found.time_per_output_token_s["mean"],
        "output_rate": found.output_tokens_per_s,
        "time_to_first_token": found.time_to_first_token_s["mean"],
        "time_to_first_token.p99": found.time_to_first_token_s["p99"],
        "time_per_output_token.p99": found.time_per_output_token_s["p99"],
        "end_to_end": found.end_to_end_s["mean"],
        "power": mean_power_w(configuration, found),
    }


def log_ratio(metric: Metric, prediction: float, measured: float) -> float:
    """ln(predicted / measured); first-token times are compared with a floor added to both."""
    floor = TIME_TO_FIRST_TOKEN_FLOOR_S if metric.startswith("time_to_first_token") else 0.0
    return math.log((prediction + floor) / (measured + floor))


def misfits(measurement: Measurement, constants: Constants, draws: int = 1) -> dict[Metric, float]:
    """Logarithm of predicted over measured by metric, as ``predicted`` averages it; empty where the model refuses the run."""
    try:
        found = predicted(measurement, constants, draws)
    except SolverError:
        return {}
    return {
        metric: log_ratio(metric, found[metric], value)
        for metric, value in measurement.measured.items()
        if metric in WEIGHTS and value > 0 and found.get(metric, 0.0) > 0 and math.isfinite(found[metric])
    }
