"""Targets met with a stated confidence: predicted times are taken at an upper quantile of their uncertainty.

An interval's factor holds nine of ten values, five per cent beyond either side: with lognormal errors the quantile q
lies at factor^(z_q/z_0.95), and the median (50 %) at the prediction itself.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from solver.candidates.space import SearchSpace
from solver.corrections.applied import CorrectionSet, carried_over, correction_for, on_instance
from solver.corrections.unseen import SHARED_EXPERTS_MISSES
from solver.deployment.platforms import Platform
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.precision import Precision
from solver.workload import Workload

Factors = NDArray[np.float64]
NINE_OF_TEN_SCORE = NormalDist().inv_cdf(0.95)
TIME_METRICS = ("time_to_first_token", "time_to_first_token.p99", "time_per_output_token")
SHAPING_CONSTANTS = ("gemm_efficiency_16bit", "weight_read_efficiency")
"""Constants whose range stands for the uncertainty of a device nobody measured."""
UNMEASURED_SHARE = 0.5
"""Share of a constant's range an unmeasured prediction moves by: as in its interval (see solver.prediction.estimate)."""


def upper_factor(
    platform: Platform,
    workload: Workload,
    current: CorrectionSet | None,
    shape: LlmShape,
    *,
    shares_experts: bool = False,
) -> float:
    """Factor on predicted times that 95 % of measured values stay below, on one platform.

    shares_experts: of copies of attention that do, with what such were measured to miss, as in their intervals
    (``solver.corrections.unseen``).
    """
    device, model_class = platform.device, shape.told_by
    if current is not None:
        found = correction_for(
            current,
            device=device.id,
            family=device.family,
            engine=platform.engine,
            version=None,
            llm=workload.llm_id,
            model_class=model_class,
            precision=Precision(workload.weight_formats[0], workload.kv_cache_formats[0]),
            layout=Layout(),
        )
        if device.partition is not None:
            found = on_instance(current, device, platform.engine, model_class)
        if platform.disk_cache_bytes or platform.api_servers is not None or shape.adapters is not None:
            found = carried_over(current, device, platform.engine, found)
        if found is not None and found.spreads:
            known = max(found.spreads[m][1] for m in TIME_METRICS if m in found.spreads)
            missed = max(1.0, *(platform.constants.range_si(name)[1] for name in SHARED_EXPERTS_MISSES))
            return math.exp(math.hypot(math.log(known), math.log(missed))) if shares_experts else known
    widest = 0.0
    for name in SHAPING_CONSTANTS:
        prior = platform.constants.priors.get(name)
        if prior is not None and 0 < prior.low < prior.value:
            widest = max(widest, UNMEASURED_SHARE * math.log(prior.value / prior.low))
    missed = platform.constants.range_si("interval_token_miss")[1]
    return math.exp(math.hypot(widest, math.log(max(missed, 1.0))))


def margins(workload: Workload, space: SearchSpace, current: CorrectionSet | None) -> Factors | None:
    """Factor on predicted times by row; None at even odds, where the prediction itself decides."""
    confidence = workload.only.targets.confidence_fraction
    if confidence <= 0.5:
        return None

    kept = space.memo.get("margins")
    asked = confidence, workload.llm_id, workload.weight_formats[0], workload.kv_cache_formats[0]
    if isinstance(kept, KeptMargins) and kept.current is current and kept.asked == asked:
        return kept.factors

    def by_row(*, shares_experts: bool) -> Factors:
        each = [
            upper_factor(one, workload, current, space.shape, shares_experts=shares_experts) for one in space.platforms
        ]
        return np.array(each)[space.platform_index]

    shared = by_row(shares_experts=True), by_row(shares_experts=False)
    factors = np.where(space.grid.lockstep_copies[space.grid_row, 0] > 0.0, *shared)
    found: Factors = np.asarray(factors ** (NormalDist().inv_cdf(confidence) / NINE_OF_TEN_SCORE))
    space.memo["margins"] = KeptMargins(current, asked, found)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class KeptMargins:
    """The margins of a space that were asked for last, of the same corrections: each number of replicas asks."""

    current: CorrectionSet | None
    asked: tuple[object, ...]
    factors: Factors
