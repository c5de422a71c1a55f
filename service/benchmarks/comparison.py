"""What the planner predicts for a measured deployment, as far as intake needs it.

The application holds a ``Loop`` (``app.state.benchmark_loop``); without one, results are stored without a comparison
and the roofline check is skipped.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlmodel import Session

from service.wire.benchmarks import BenchmarkUpload


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """Predicted means for the measured deployment and load, and the roofline that no engine can beat.

    correction_set: which corrections were in force. problem: why the planner thinks that this cannot have run.
    """

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None
    output_tokens_per_s: float | None = None
    power_w: float | None = None
    bound_tpot_ms: float | None = None
    bound_output_tokens_per_s: float | None = None
    correction_set: int | None = None
    problem: str | None = None
    base: Mapping[str, float] = field(default_factory=dict)
    """Expected without the configuration's own factors, in SI units, by the names corrections use."""
    base_set: int = 0
    cell: str | None = None


@dataclass(frozen=True, slots=True)
class Residual:
    """ln(measured / predicted) by metric, predicted with the catalog's set ``base`` and without factors of its own.

    cell: the configuration, as text.
    """

    base: int
    cell: str
    residuals: Mapping[str, float]


Predictor = Callable[[Session, BenchmarkUpload], PredictedRun | None]
"""Answers None where nothing can be predicted: an unknown load, a figure missing from the catalog."""


class NotKeptError(LookupError):
    """The prediction is not at hand: the database must be asked."""


KeptPredictor = Callable[[BenchmarkUpload], PredictedRun | None]
"""The same from memory alone, at once. Raises NotKeptError."""


def predicted_over_measured(predicted: PredictedRun | None, upload: BenchmarkUpload) -> dict[str, float] | None:
    """Ratios of predicted to measured means, for what both have; None without a prediction."""
    if predicted is None:
        return None
    results = upload.results
    pairs: Mapping[str, tuple[float | None, float | None]] = {
        "ttft_ms": (predicted.ttft_ms, results.ttft_ms.mean),
        "tpot_ms": (predicted.tpot_ms, results.tpot_ms.mean),
        "e2e_ms": (predicted.e2e_ms, results.e2e_ms.mean),
        "output_tokens_per_s": (predicted.output_tokens_per_s, results.output_tokens_per_s),
        "power_w": (predicted.power_w, upload.context.power_w_mean),
    }
    ratios = {name: ours / theirs for name, (ours, theirs) in pairs.items() if ours is not None and theirs}
    return ratios or None


REQUESTS_FOR_P99 = 100


def residual_of(predicted: PredictedRun | None, upload: BenchmarkUpload) -> Residual | None:
    """What the prediction leaves unexplained of a run; None where the two have nothing in common."""
    if predicted is None or predicted.cell is None:
        return None
    results, watts = upload.results, upload.context.power_w_mean
    tail = (results.completed or 0) >= REQUESTS_FOR_P99
    measured = {
        "time_to_first_token": _seconds(results.ttft_ms.mean),
        "time_to_first_token.p99": _seconds(results.ttft_ms.p99) if tail else None,
        "time_per_output_token": _seconds(results.tpot_ms.mean),
        "time_per_output_token.p99": _seconds(results.tpot_ms.p99) if tail else None,
        "end_to_end": _seconds(results.e2e_ms.mean),
        "output_rate": results.output_tokens_per_s,
        "power": watts,
    }
    residuals = {
        metric: math.log(value / predicted.base[metric])
        for metric, value in measured.items()
        if value and metric in predicted.base
    }
    return Residual(predicted.base_set, predicted.cell, residuals) if residuals else None


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


ChangedHook = Callable[[Session, list[str]], None]
"""Called with the ids of runs that became or ceased to be accepted, in the transaction that makes them so: what it
raises undoes the change. It runs while the database's write lock is held, so it notes work rather than doing it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How intake is joined to prediction; every part may be absent.

    predict: at intake, by facts that may be a moment old; predict_kept: the same without reading anything.
    predict_now: for showing a stored result, by the newest.
    """

    predict: Predictor | None = None
    predict_kept: KeptPredictor | None = None
    predict_now: Predictor | None = None
    changed: ChangedHook | None = None
