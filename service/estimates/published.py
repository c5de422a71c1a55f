"""Estimates of systems of which nothing but measured speeds is published: as their users meet them, in their makers' own layout."""

from dataclasses import dataclass

from service.estimates.predict import served_traffic, with_context
from service.recommendations.from_rows import load_from_wire
from service.recommendations.present import present_interval, present_percentiles
from service.recommendations.published import speed_of
from service.wire.estimates import EstimatedOut, EstimateIn
from solver.llm_shape import LlmShape
from solver.prediction.intervals import PredictedInterval
from solver.prediction.published import PublishedSpeed, check_single_stream, published_estimate
from solver.workload import PERCENTILES


@dataclass(frozen=True)
class PublishedCase:
    """One model on one system, by a published speed."""

    asked: EstimateIn
    shape: LlmShape
    speed: PublishedSpeed


def published_case(asked: EstimateIn, shape: LlmShape) -> PublishedCase | None:
    """What a published speed answers: a case that states no layout, and no format, engine or machine but those it was measured with.
    None where none does."""
    if asked.device is None or {"layout", "partition", "node"} & asked.model_fields_set:
        return None
    speed = speed_of(asked.device, asked.llm)
    if speed is None or asked.engine.speculative is not None or asked.adapters or asked.traffic.media:
        return None
    formats = asked.precision.model_fields_set
    stated = "weights" in formats and asked.precision.weights != speed.weights
    other = "name" in asked.engine.model_fields_set and asked.engine.name != speed.engine
    return None if stated or other else PublishedCase(asked, shape, speed)


def predict_published(case: PublishedCase) -> EstimatedOut:
    """Raises UnsupportedError for loads of which nothing is published."""
    asked, speed = with_context(case.asked, case.shape), case.speed
    check_single_stream(load_from_wire(asked.load))
    traffic, clipped = served_traffic(asked, case.shape)
    found = published_estimate(speed, traffic)

    def alike(one: PredictedInterval) -> dict[str, PredictedInterval]:
        return dict.fromkeys(("mean", *PERCENTILES), one)

    token = present_percentiles(alike(found.time_per_output_token_s))
    return EstimatedOut(
        outcome="estimated",
        basis="measured",
        evidence=list(speed.evidence),
        ttft_ms=present_percentiles(alike(found.time_to_first_token_s)),
        tpot_ms=token,
        itl_ms=token,
        e2e_ms=present_percentiles(alike(found.end_to_end_s)),
        output_tokens_per_s=present_interval(found.output_tokens_per_s),
        requests_per_s=present_interval(found.requests_per_s),
        power_w=None,
        joules_per_output_token=None,
        memory=None,
        bottleneck=None,
        step=[],
        bound=None,
        roofline=None,
        clipped_fraction=clipped,
        layout=None,
        precision=asked.precision.model_copy(update={"weights": speed.weights}),
        engine=asked.engine.model_copy(update={"name": speed.engine}),
    )
