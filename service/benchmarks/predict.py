"""What the planner says about a measured deployment: the roofline, and the means it expects.

Only this file of the folder knows the solver. Predictions of the same deployment under the same load are kept: a
storm of uploads from one campaign asks for few of them.
"""

import datetime as dt
import threading
from collections import OrderedDict
from collections.abc import Callable

from sqlmodel import Session

from service.benchmarks.comparison import Loop, PredictedRun
from service.benchmarks.engine_arguments import engine_settings
from service.benchmarks.plausibility import mean_tokens
from service.llms.queries import llm_by_id
from service.recommendations.catalog_snapshot import CatalogSnapshot, SnapshotCache
from service.recommendations.snapshot import llm_from_row
from service.wire.benchmarks import BenchmarkUpload, MeasuredClosedLoad, MeasuredLengths, MeasuredOpenLoad
from solver.corrections.sets import configuration_correction
from solver.deploy import deploy
from solver.errors import FigureMissingError, SaturatedError, SolverError
from solver.estimate import estimate
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.precision import Precision
from solver.step.bound import roofline_bound
from solver.step.constants import resolve_constants
from solver.workload import Lengths, Load, Traffic, fixed_lengths, lognormal_lengths, uniform_lengths

MOST_KEPT = 2_000
MOST_REPLAYED = 20_000
"""Requests; an Offline run of hundreds of thousands is compared with its roofline only."""
MS_PER_S = 1e3
SINGLE_STREAM = Load("closed", concurrency=1)
"""Nothing decodes faster than one request alone: the bound on TPOT where the load is unknown."""


class Predictions:
    """A predictor (``service.benchmarks.comparison.Predictor``) over the catalog's snapshots."""

    def __init__(self, snapshots: SnapshotCache, clock: Callable[[], dt.datetime]) -> None:
        self._snapshots = snapshots
        self._clock = clock
        self._kept: OrderedDict[tuple[object, ...], PredictedRun | None] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, session: Session, upload: BenchmarkUpload) -> PredictedRun | None:
        """None where the catalog lacks a figure of the device, or the lengths of the requests are unknown."""
        snapshot = self._snapshots.at(session, self._clock())
        key = _key(snapshot, upload)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        row = llm_by_id(session, upload.context.llm)
        predicted = None if row is None else predict(upload, llm_from_row(row.row), snapshot)
        with self._lock:
            self._kept[key] = predicted
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return predicted


def planner_loop(snapshots: SnapshotCache, clock: Callable[[], dt.datetime]) -> Loop:
    """Joins intake to the planner."""
    return Loop(predict=Predictions(snapshots, clock))


def predict(upload: BenchmarkUpload, shape: LlmShape, snapshot: CatalogSnapshot) -> PredictedRun | None:
    """The roofline and, under a known load, the corrected means. A deployment that cannot run is told as a problem."""
    context = upload.context
    device = snapshot.devices.get(context.device)
    prompt, output = _lengths(upload.traffic.prompt_tokens), _lengths(upload.traffic.output_tokens)
    if device is None or prompt is None or output is None or output.maximum < 1:
        return None
    traffic = Traffic(prompt, output, upload.traffic.shared_prefix_fraction)
    layout, precision = context.layout, context.precision
    try:
        deployed = deploy(
            shape,
            device,
            resolve_constants(snapshot.priors, device=device.id, family=device.family, engine=context.engine.name),
            Layout(
                layout.tensor_parallel or 1, layout.pipeline_parallel or 1, layout.data_parallel or 1,
                layout.expert_parallel or 1,
            ),
            Precision(precision.weights or "", precision.kv_cache or ""),
            engine_settings(context.engine.name, context.engine.version, context.engine.arguments),
            traffic,
        )  # fmt: skip
    except FigureMissingError:
        return None
    except SolverError as error:
        return PredictedRun(problem=str(error))
    load = _load(upload)
    if load is None:
        bound = roofline_bound(deployed.configuration, traffic, SINGLE_STREAM)
        return PredictedRun(bound_tpot_ms=bound.time_per_output_token_s * MS_PER_S)
    bound = roofline_bound(deployed.configuration, traffic, load)
    bounds = PredictedRun(
        bound_tpot_ms=bound.time_per_output_token_s * MS_PER_S, bound_output_tokens_per_s=bound.output_tokens_per_s
    )
    if not _comparable(upload):
        return bounds
    correction = configuration_correction(snapshot.corrections, deployed.configuration)
    try:
        found = estimate(deployed.configuration, traffic, load, correction)
    except SaturatedError as error:
        return PredictedRun(
            bound_tpot_ms=bounds.bound_tpot_ms,
            bound_output_tokens_per_s=bounds.bound_output_tokens_per_s,
            problem=str(error),
        )
    except SolverError:
        return bounds
    return PredictedRun(
        ttft_ms=found.time_to_first_token_s["mean"].expected * MS_PER_S,
        tpot_ms=found.time_per_output_token_s["mean"].expected * MS_PER_S if found.time_per_output_token_s else None,
        e2e_ms=found.end_to_end_s["mean"].expected * MS_PER_S,
        output_tokens_per_s=found.output_tokens_per_s.expected,
        power_w=found.power_w.expected if found.power_w.expected == found.power_w.expected else None,
        bound_tpot_ms=bounds.bound_tpot_ms,
        bound_output_tokens_per_s=bounds.bound_output_tokens_per_s,
        correction_set=snapshot.corrections.number if snapshot.corrections else None,
    )


def _key(snapshot: CatalogSnapshot, upload: BenchmarkUpload) -> tuple[object, ...]:
    """What a prediction depends on."""
    corrections = snapshot.corrections.number if snapshot.corrections else None
    context = upload.context
    deployment = (context.device, context.llm, context.layout, context.precision, context.engine)
    return (snapshot.digest, snapshot.revision, corrections, *deployment, upload.load, upload.traffic.model_dump_json())


def _lengths(stated: MeasuredLengths | None) -> Lengths | None:
    """A mean alone is read as that length for every request: right for throughput, narrow for percentiles."""
    match stated:
        case None:
            return None
        case _ if stated.distribution == "fixed":
            return fixed_lengths(stated.tokens)
        case _ if stated.distribution == "uniform":
            return uniform_lengths(stated.low, stated.high)
        case _ if stated.distribution == "lognormal":
            return lognormal_lengths(stated.mean, stated.p95)
        case _ if stated.distribution == "histogram":
            bins = sorted(stated.histogram, key=lambda b: b.tokens)
            return Lengths(tuple(b.tokens for b in bins), tuple(b.share for b in bins))
    return fixed_lengths(round(mean_tokens(stated) or 0))


def _load(upload: BenchmarkUpload) -> Load | None:
    requests = upload.results.completed
    match upload.load:
        case MeasuredClosedLoad() as closed:
            return Load("closed", concurrency=closed.concurrency, requests=closed.requests or requests)
        case MeasuredOpenLoad() as stated:
            return Load("open", requests_per_s=stated.requests_per_s, requests=stated.requests or requests)
    return None


def _comparable(upload: BenchmarkUpload) -> bool:
    """The replay knows closed loops and Poisson arrivals, and runs of a size that is worth replaying at intake."""
    load = upload.load
    if isinstance(load, MeasuredOpenLoad):
        return load.arrivals == "poisson" and load.max_concurrency is None
    return isinstance(load, MeasuredClosedLoad) and (load.requests or 0) <= MOST_REPLAYED
