"""What the planner predicts for a measured deployment, as far as intake needs it.

The application holds a ``Loop`` (``app.state.benchmark_loop``); without one, results are stored without a comparison
and the roofline check is skipped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


Predictor = Callable[[Session, BenchmarkUpload], PredictedRun | None]
"""Answers None where nothing can be predicted: an unknown load, a figure missing from the catalog."""


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


ChangedHook = Callable[[Session, list[str]], None]
"""Called with the ids of runs that became or ceased to be accepted, in the transaction that makes them so: what it
raises undoes the change. It runs while the database's write lock is held, so it notes work rather than doing it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How intake is joined to prediction: both halves may be absent."""

    predict: Predictor | None = None
    changed: ChangedHook | None = None
