"""What the planner says about a measured deployment: the roofline, and the means it expects.

Only this file of the folder knows the solver. Predictions of the same deployment under the same load are kept: a
storm of uploads from one campaign asks for few of them.
"""

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from sqlmodel import Session

from catalog.engine_recipes import documented_admission_interval
from service.benchmarks.comparison import Loop, NotKeptError, PredictedRun
from service.benchmarks.engine_arguments import drafts, engine_settings
from service.benchmarks.facts import FactsCache, PlannerFacts
from service.benchmarks.plausibility import mean_tokens
from service.corrections.cells import cell_text
from service.corrections.queries import note_cells
from service.freshness import Freshness
from service.llms.queries import llm_by_id
from service.recommendations.from_rows import llm_from_row
from service.wire.benchmarks import BenchmarkUpload, MeasuredClosedLoad, MeasuredLengths, MeasuredOpenLoad
from solver.corrections.applied import cell_of, configuration_correction
from solver.deployment.bound import roofline_bound
from solver.deployment.configuration import Configuration
from solver.deployment.deploy import deploy
from solver.errors import FigureMissingError, SaturatedError, SolverError
from solver.layout import Layout
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, uniform_lengths
from solver.llm_shape import LlmShape
from solver.precision import Precision
from solver.prediction.estimate import Estimate, estimate
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings, Load, Traffic

MOST_KEPT = 2_000
RECHECKED_AFTER_S, OLDEST_S = 0.5, 2.0
"""When the facts are read again, and how old they may be for an upload."""
MOST_REPLAYED = 20_000
"""Requests; an Offline run of hundreds of thousands is compared with its roofline only."""
MS_PER_S = 1e3
SINGLE_STREAM = Load("closed", concurrency=1)
"""Nothing decodes faster than one request alone: the bound on TPOT where the load is unknown."""


@dataclass(frozen=True, slots=True)
class BasePrediction:
    """What does not change when results arrive: the roofline, and what the catalog's constants expect."""

    run: PredictedRun
    configuration: Configuration | None = None


class Predictions:
    """A predictor (``service.benchmarks.comparison.Predictor``) over the catalog's facts."""

    def __init__(self) -> None:
        self._facts = FactsCache()
        self._kept: OrderedDict[tuple[object, ...], BasePrediction | None] = OrderedDict()
        self._lock = threading.Lock()
        self._recent: PlannerFacts | None = None
        self._freshness = Freshness(RECHECKED_AFTER_S, OLDEST_S)

    def __call__(self, session: Session, upload: BenchmarkUpload) -> PredictedRun | None:
        """By the newest facts. None where the device lacks a figure, or the lengths of the requests are unknown."""
        facts = self._recent = self._facts.now(session)
        self._freshness.renewed()
        return self._by(session, facts, upload)

    def recent(self, session: Session, upload: BenchmarkUpload) -> PredictedRun | None:
        """The same by facts that may be a moment old: most uploads then need no query."""
        facts = self._recent
        if facts is None or not self._freshness.usable():
            return self(session, upload)
        return self._by(session, facts, upload)

    def kept(self, upload: BenchmarkUpload) -> PredictedRun | None:
        """The same without asking the database. Raises NotKeptError when it must be asked."""
        facts = self._recent
        if facts is None or not self._freshness.usable():
            raise NotKeptError
        key = _key(facts, upload)
        with self._lock:
            if key not in self._kept:
                raise NotKeptError
            base = self._kept[key]
        return None if base is None else with_factors(base, facts)

    def _by(self, session: Session, facts: PlannerFacts, upload: BenchmarkUpload) -> PredictedRun | None:
        base = self._base(session, facts, upload)
        return None if base is None else with_factors(base, facts)

    def _base(self, session: Session, facts: PlannerFacts, upload: BenchmarkUpload) -> BasePrediction | None:
        key = _key(facts, upload)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        row = llm_by_id(session, upload.context.llm)
        base = None if row is None else base_prediction(upload, llm_from_row(row.row), facts)
        with self._lock:
            self._kept[key] = base
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return base


def planner_loop() -> Loop:
    """Joins intake to the planner: results are compared, and their configurations noted for a new correction set."""
    predictions = Predictions()
    return Loop(
        predict=predictions.recent,
        predict_kept=predictions.kept,
        predict_now=predictions,
        changed=note_cells,
    )


def with_factors(base: BasePrediction, facts: PlannerFacts) -> PredictedRun:
    """The expected means, with what is known of this very configuration."""
    if base.configuration is None:
        return base.run
    correction = configuration_correction(facts.corrections, base.configuration)
    factors = correction.factors if correction is not None else {}
    expected = {metric: value * factors.get(metric, 1.0) for metric, value in base.run.base.items()}
    return replace(
        base.run,
        ttft_ms=_milliseconds(expected.get("time_to_first_token")),
        tpot_ms=_milliseconds(expected.get("time_per_output_token")),
        e2e_ms=_milliseconds(expected.get("end_to_end")),
        output_tokens_per_s=expected.get("output_rate"),
        power_w=expected.get("power"),
        correction_set=facts.corrections.number if facts.corrections else None,
    )


def base_prediction(upload: BenchmarkUpload, shape: LlmShape, facts: PlannerFacts) -> BasePrediction | None:
    """The roofline and, under a known load, the means. A deployment that cannot run is told as a problem."""
    context = upload.context
    device = facts.devices.get(context.device)
    prompt, output = _lengths(upload.traffic.prompt_tokens), _lengths(upload.traffic.output_tokens)
    if device is None or prompt is None or output is None or output.maximum < 1:
        return None
    traffic = Traffic(prompt, output, upload.traffic.shared_prefix_fraction)
    layout, precision, settings = context.layout, context.precision, _settings(upload)
    constants = resolve_constants(
        facts.priors, device=device.id, family=device.family, engine=settings.name, llm=context.llm,
        random_weights=settings.random_weights,
    )  # fmt: skip
    try:
        configuration = deploy(
            shape,
            device,
            constants,
            Layout(
                layout.tensor_parallel or 1, layout.pipeline_parallel or 1, layout.data_parallel or 1,
                layout.expert_parallel or 1,
            ),
            Precision(precision.weights or "", precision.kv_cache or ""),
            settings,
            traffic,
        ).configuration  # fmt: skip
    except FigureMissingError:
        return None
    except SolverError as error:
        return BasePrediction(PredictedRun(problem=str(error)))
    load = _load(upload)
    bound = roofline_bound(configuration, traffic, load or SINGLE_STREAM)
    bounds = PredictedRun(
        bound_tpot_ms=bound.time_per_output_token_s * MS_PER_S,
        bound_output_tokens_per_s=bound.output_tokens_per_s if load is not None else None,
    )
    if load is None or not _comparable(upload):
        return BasePrediction(bounds)
    correction = configuration_correction(facts.corrections, configuration)
    plain = None if correction is None else replace(correction, factors={})
    try:
        base = _base(estimate(configuration, traffic, load, plain))
    except SaturatedError as error:
        return BasePrediction(replace(bounds, problem=str(error)))
    except SolverError:
        return BasePrediction(bounds)
    run = replace(bounds, base=base, base_set=facts.release_set, cell=cell_text(cell_of(configuration)))
    return BasePrediction(run, configuration)


def _settings(upload: BenchmarkUpload) -> EngineSettings:
    """As the command line states them; of a server of which nothing is stated as an estimate takes it, so that what a run is off by
    and what it corrects are of one prediction."""
    engine, load = upload.context.engine, upload.load
    settings = engine_settings(engine.name, engine.version, engine.arguments)
    if engine.arguments:
        return settings
    clients = load.concurrency if isinstance(load, MeasuredClosedLoad) else 1
    steps = documented_admission_interval(engine.name, upload.context.device, upload.context.llm, clients)
    return replace(settings, admission_interval_steps=steps)


def _base(found: Estimate) -> dict[str, float]:
    """What is expected without the configuration's own factors, in SI units, by the names corrections use."""
    values = {
        "time_to_first_token": found.time_to_first_token_s.get("mean"),
        "time_to_first_token.p99": found.time_to_first_token_s.get("p99"),
        "time_per_output_token": found.time_per_output_token_s.get("mean"),
        "time_per_output_token.p99": found.time_per_output_token_s.get("p99"),
        "end_to_end": found.end_to_end_s.get("mean"),
        "output_rate": found.output_tokens_per_s,
        "power": found.power_w,
    }
    return {
        metric: interval.expected
        for metric, interval in values.items()
        if interval is not None and math.isfinite(interval.expected) and interval.expected > 0
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MS_PER_S


def _key(facts: PlannerFacts, upload: BenchmarkUpload) -> tuple[object, ...]:
    """What a base prediction depends on."""
    context = upload.context
    deployment = (context.device, context.llm, context.layout, context.precision, context.engine)
    load, traffic = upload.load, upload.traffic.model_dump_json()
    return (facts.digest, facts.revision, *deployment, load, upload.results.completed, traffic)


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
    """The replay knows closed loops and Poisson arrivals, and runs of a size that is worth replaying at intake; what an engine
    that drafts would take depends on an acceptance that runs do not state."""
    load = upload.load
    if drafts(upload.context.engine.arguments):
        return False
    if isinstance(load, MeasuredOpenLoad):
        return load.arrivals == "poisson" and load.max_concurrency is None
    return isinstance(load, MeasuredClosedLoad) and (load.requests or 0) <= MOST_REPLAYED
