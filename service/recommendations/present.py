"""Solver quantities and stored recommendations → wire. Seconds become milliseconds here."""

import math
from collections.abc import Mapping
from decimal import Decimal

from service.answers.store import inputs_of
from service.recommendations.asked import asked_for
from service.recommendations.tables import RecommendationTable
from service.wire.quantities import Interval, Percentiles
from service.wire.recommendations import RecommendationOut, RecommendationSummaryOut
from solver.prediction.intervals import PredictedInterval

MS_PER_S = 1e3


def present_interval(found: PredictedInterval, factor: float = 1.0) -> Interval:
    return Interval(expected=found.expected * factor, low=found.low * factor, high=found.high * factor)


def present_percentiles(found: Mapping[str, PredictedInterval]) -> Percentiles:
    return Percentiles.model_validate({name: present_interval(value, MS_PER_S) for name, value in found.items()})


def present_power(found: PredictedInterval, factor: float = 1.0) -> Interval | None:
    """None where nobody has published what the device draws."""
    return present_interval(found, factor) if math.isfinite(found.expected) else None


def present_recommendation(stored: RecommendationTable) -> RecommendationOut:
    """The stored result as it was written, with its id, inputs and request."""
    return RecommendationOut.model_validate(
        stored.result
        | {"id": stored.id, "created_at": stored.created_at, "inputs": inputs_of(stored), "request": stored.request}
    )


def present_summary(stored: RecommendationTable) -> RecommendationSummaryOut:
    workloads = stored.request["workloads"]
    amount = stored.usd_per_hour
    return RecommendationSummaryOut(
        id=stored.id,
        created_at=stored.created_at,
        outcome=stored.outcome,
        objective=stored.objective,
        workloads=[w["name"] for w in workloads],
        llms=[w["llm"] for w in workloads],
        asked=[asked_for(w) for w in workloads],
        usd_per_hour=None if amount is None else Decimal(amount),
    )
