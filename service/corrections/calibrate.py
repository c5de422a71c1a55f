"""Make a correction set from measured runs: fit, leave each configuration out in turn, and measure the intervals."""

import datetime as dt
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from catalog.benchmark_rows import BenchmarkFile
from catalog.correction_rows import (
    AccuracyRow,
    CorrectionSetRow,
    EngineCorrectionRow,
    EvidenceRow,
    FittedConstantRow,
    SpreadRow,
)
from catalog.read import Catalog
from service.corrections.measurements import catalog_priors, constants_of, measurements
from service.corrections.snapshot import ROUTING, routing_constant
from solver.corrections.applied import METRICS, shrunk_factor
from solver.corrections.evidence import Measurement, draw_error_fractions, log_ratio, predicted, predicted_with_steps
from solver.corrections.fit import REFUSED, Fit, fit_constants, without
from solver.corrections.load_spreads import ANY, CLOSED, RunMiss, spreads_by_load
from solver.errors import SaturatedError
from solver.prediction.intervals import PredictedInterval, sampled
from solver.prediction.step_error import STEP_METRIC
from solver.step.constants import ConstantPrior, Constants, owned, resolve_constants

FITTED = (
    "gemm_efficiency_16bit", "gemm_efficiency_fp8", "expert_half_width_16bit", "expert_half_width_8bit",
    "weight_read_efficiency", "widened_read_share", "expert_read_efficiency", "state_efficiency", "kv_read_efficiency",
    "kv_read_efficiency_8bit", "attention_efficiency", "stream_efficiency", "link_efficiency", "all_reduce_latency_us",
    "decode_sequence_tokens", "layer_overhead_us", "quantised_layer_overhead_us", "expert_layer_overhead_us",
    "linear_layer_overhead_us", "latent_layer_overhead_us", "eager_linear_layer_us", "eager_latent_layer_us",
    "quantised_cache_layer_overhead_us", "eager_layer_us", "eager_expert_layer_us", "eager_collective_us",
    "step_overhead_us", "sequence_overhead_us", "pipeline_step_overhead_us", "request_overhead_ms", "request_ingest_us",
    "prompt_token_us", "token_front_end_us", "schedule_lag_fraction", "clock_headroom_fraction", "clock_sag_fraction",
    "clock_settling_s", "idle_power_fraction", "memory_power_fraction", "compute_power_fraction_16bit",
    "compute_power_fraction_8bit", "power_cap_fraction",
)  # fmt: skip
"""Constants that serving runs can tell apart; the rest keep the catalog's values."""

ROUTING_START = 1.0
"""Where the search for a model's routing begins: between even, and as uneven as random weights can be. The pull is towards the
prior all the same."""

Predictions = dict[str, dict[str, float]]
"""Run id → metric → predicted value."""


def calibrate(
    catalog: Catalog,
    files: Sequence[BenchmarkFile],
    number: int,
    made_on: dt.date,
    rounds: int = 8,
    previous: CorrectionSetRow | None = None,
) -> CorrectionSetRow:
    """One correction set from all clean runs, one entry a device and engine.

    Of devices of one family under one engine the one with most runs is fitted first; the others are pulled towards what it
    found, as far as the catalog's ranges let them: few runs move only what they speak of.

    previous: where the search begins, an earlier set; it pulls nothing towards itself. rounds: with none its constants stay, and
    factors, errors and spreads are made anew.
    """
    priors = catalog_priors(catalog)
    runs = measurements(catalog, files, priors)
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for run in runs:
        groups[run.configuration.device.id, run.configuration.engine.name].append(run)
    found: dict[tuple[str, str], EngineCorrectionRow] = {}
    for device, engine in sorted(groups, key=lambda subject: (-len(groups[subject]), subject)):
        family = catalog.devices[device].family
        elder = next((c for c in found.values() if (c.family, c.engine) == (family, engine)), None)
        corrections = previous.corrections if previous else []
        before = next((c for c in corrections if (c.device, c.engine) == (device, engine)), None)
        runs_here = groups[device, engine]
        base, fit = fitted(catalog, priors, device, engine, runs_here, rounds, before, elder)
        found[device, engine] = _engine_correction(catalog, priors, device, engine, runs_here, base, fit)
    return CorrectionSetRow(
        number=number,
        made_on=made_on,
        made_by="clusterwright calibrate",
        corrections=[found[subject] for subject in sorted(found)],
    )


def fitted(
    catalog: Catalog,
    priors: tuple[ConstantPrior, ...],
    device: str,
    engine: str,
    runs: Sequence[Measurement],
    rounds: int,
    before: EngineCorrectionRow | None,
    elder: EngineCorrectionRow | None,
) -> tuple[Constants, Fit]:
    """Towards what the constants of a device under an engine are pulled, and the fit. before: where its search begins. elder: a sibling
    with more runs, towards whose constants they are pulled instead of the catalog's."""
    routed = routed_models(runs)
    base = constants_of(catalog, priors, device, engine).with_owners(ROUTING, sorted({llm for _, llm in routed}))
    for llm in sorted({run.configuration.shape.id for run in runs}):
        base = base.with_stated(llm, constants_of(catalog, priors, device, engine, llm))
    taught = {name: c.value for name, c in elder.constants.items() if c.taken} if elder is not None else {}
    base = base.recentred(taught)
    own = {owned(name, llm): taught.get(owned(name, llm), ROUTING_START) for name, llm in routed}
    known = before.constants if before is not None else {}
    start = {name: constant.value for name, constant in known.items() if constant.value > 0}
    own |= {name: value for name, value in start.items() if name in own}
    taken = None if rounds else {name for name, constant in known.items() if constant.taken}
    return base, fit_constants(runs, base, (*FITTED, *own), rounds, {**start, **own}, taken)


def _engine_correction(
    catalog: Catalog,
    priors: tuple[ConstantPrior, ...],
    device: str,
    engine: str,
    runs: Sequence[Measurement],
    base: Constants,
    fit: Fit,
) -> EngineCorrectionRow:
    """What a fit of these runs says, and how far it is off where they are left out. base: towards what it was pulled."""
    left_out = predictions_left_out(runs, fit)
    here = {run.id: told(run, fit.constants) for run in runs}
    physics = {run.id: told(run, physics_constants(catalog, priors, device, engine)) for run in runs}
    versions = sorted({str(run.configuration.engine.version) for run in runs})
    trained = trained_evenness(catalog, priors, device, engine)
    return EngineCorrectionRow(
        device=device,
        family=catalog.devices[device].family,
        engine=engine,
        versions=versions,
        constants={
            name: FittedConstantRow(
                value=round(c.value, 6), prior=c.prior, standard_error_fraction=round(c.standard_error_fraction, 4),
                taken=c.taken,
            )
            for name, c in fit.fitted.items()
        },
        spreads=spreads(runs, left_out),
        own_spreads=own_spreads(runs, here),
        evidence=[_evidence(group, members, here, trained, fit) for group, members in by_group(runs).items()],
        accuracy=accuracy(runs, left_out, physics, fit.constants),
        borrowed_widening=base.si("interval_widening_borrowed"),
        unseen_widening=base.si("interval_widening_unseen"),
    )  # fmt: skip


def physics_constants(catalog: Catalog, priors: tuple[ConstantPrior, ...], device: str, engine: str) -> Constants:
    """Constants without anything measured on serving runs: what the model says before any evidence."""
    unmeasured = [p for p in priors if p.basis == "analytical" or p.name.endswith(("_bytes", "copies"))]
    whole = constants_of(catalog, priors, device, engine)
    plain = resolve_constants(unmeasured, device=device, family=catalog.devices[device].family, engine=engine)
    return Constants(plain.subject, dict(whole.priors) | dict(plain.priors))


def routed_models(runs: Iterable[Measurement]) -> list[tuple[str, str]]:
    """(routing constant, model) of every mixture of experts measured with random weights: how those spread tokens belongs to them."""
    configurations = [run.configuration for run in runs if run.configuration.random_routing]
    return sorted({(routing_constant(c.precision.weights), c.shape.id) for c in configurations})


def by_group(runs: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    groups: dict[str, list[Measurement]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return dict(sorted(groups.items()))


def predictions_left_out(runs: Sequence[Measurement], fit: Fit) -> Predictions:
    """Every run predicted without any run of its own configuration."""
    result: Predictions = {}
    for group in by_group(runs):
        members = [i for i, run in enumerate(runs) if run.group == group]
        constants = without(fit, members)
        result |= {runs[i].id: told(runs[i], constants) for i in members}
    return result


def told(run: Measurement, constants: Constants) -> dict[str, float]:
    """A run as predicted; as a fit counts it, each figure twice off, where the model says that no server serves what one served."""
    try:
        return predicted(run, constants)
    except SaturatedError:
        off = math.exp(REFUSED)
        return {
            metric: value / off if metric == "output_rate" else value * off for metric, value in run.measured.items()
        }


def residual(run: Measurement, metric: str, predictions: Predictions) -> float:
    """ln(measured / predicted), first-token times with their floor."""
    return -log_ratio(metric, predictions[run.id][metric], run.measured[metric])


def relative_residual(run: Measurement, metric: str, predictions: Predictions) -> float:
    """ln(measured / predicted) as an interval sees it: no floor."""
    return math.log(run.measured[metric] / predictions[run.id][metric])


def spreads(runs: Sequence[Measurement], predictions: Predictions) -> list[SpreadRow]:
    """90 % factors by model class, metric and kind of load from runs of left-out configurations."""
    values: dict[tuple[str, str], list[RunMiss]] = defaultdict(list)
    for run in runs:
        for metric in METRICS:
            if metric in run.measured:
                values[run.model_class, metric].append(
                    RunMiss(run.group, run.load.kind, relative_residual(run, metric, predictions))
                )
    return _spread_rows(values)


def own_spreads(runs: Sequence[Measurement], predictions: Predictions) -> list[SpreadRow]:
    """The same where other runs of the configuration are known: each run against the factor of the others."""
    values: dict[tuple[str, str], list[RunMiss]] = defaultdict(list)
    for group, members in by_group(runs).items():
        for metric in METRICS:
            known = {run.id: relative_residual(run, metric, predictions) for run in members if metric in run.measured}
            for run in members:
                others = [v for other, v in known.items() if other != run.id]
                if others and run.id in known:
                    left = known[run.id] - math.log(shrunk_factor(others))
                    values[run.model_class, metric].append(RunMiss(group, run.load.kind, left))
    return _spread_rows(values)


def _spread_rows(values: Mapping[tuple[str, str], list[RunMiss]]) -> list[SpreadRow]:
    return [
        SpreadRow(
            model_class=model_class, metric=metric, load=load, low=low, high=high,
            residuals=sum(load in (ANY, one.load) for one in found),
        )
        for (model_class, metric), found in sorted(values.items())
        for load, (low, high) in spreads_by_load(found).items()
    ]  # fmt: skip


def trained_evenness(
    catalog: Catalog, priors: tuple[ConstantPrior, ...], device: str, engine: str
) -> Mapping[str, float]:
    """How unevenly a trained router is expected to spread tokens at most, by routing constant: the low end of the catalog's range."""
    stated = constants_of(catalog, priors, device, engine)
    return {name: stated.priors[name].low for name in ROUTING if name in stated.priors}


def _evidence(
    group: str,
    members: Sequence[Measurement],
    predictions: Predictions,
    trained: Mapping[str, float],
    fit: Fit,
) -> EvidenceRow:
    """trained: least evenness of trained routers, by routing constant."""
    configuration = members[0].configuration
    routing = routing_constant(configuration.precision.weights)
    routed = fit.fitted.get(owned(routing, configuration.shape.id))
    uneven = routed is not None and routed.taken and routed.value < trained.get(routing, 0.0)
    layout, precision = configuration.layout, configuration.precision
    factors = {}
    for metric in METRICS:
        values = [relative_residual(run, metric, predictions) for run in members if metric in run.measured]
        factors[metric] = round(shrunk_factor(values), 5)
    return EvidenceRow(
        group=group,
        llm=configuration.shape.id,
        weights=precision.weights,
        kv_cache=precision.kv_cache,
        tensor_parallel=layout.tensor_parallel,
        pipeline_parallel=layout.pipeline_parallel,
        data_parallel=layout.data_parallel,
        expert_parallel=layout.expert_parallel,
        model_class=members[0].model_class,
        benchmarks=[run.id for run in members],
        factors=factors,
        random_routing=configuration.random_routing and uneven,
    )


def accuracy(
    runs: Sequence[Measurement], left_out: Predictions, physics: Predictions, constants: Constants
) -> list[AccuracyRow]:
    """Errors by configuration, by class, of open loops, and of all; coverage with intervals made without the group."""
    inside = coverage_left_out(runs, left_out, constants)
    slices: dict[str, list[Measurement]] = {f"group:{group}": members for group, members in by_group(runs).items()}
    for model_class in sorted({run.model_class for run in runs}):
        slices[f"class:{model_class}"] = [run for run in runs if run.model_class == model_class]
    slices["load:open"] = [run for run in runs if run.load.kind == "open"]
    slices["load:closed"] = [run for run in runs if run.load.kind == "closed"]
    slices["all"] = list(runs)
    rows = []
    for name, members in slices.items():
        for metric in METRICS:
            known = [run for run in members if metric in run.measured]
            if not known:
                continue
            ours = [100.0 * (left_out[r.id][metric] / r.measured[metric] - 1.0) for r in known]
            plain = [100.0 * (physics[r.id][metric] / r.measured[metric] - 1.0) for r in known]
            covered = [inside[r.id, metric] for r in known if (r.id, metric) in inside]
            rows.append(
                AccuracyRow(
                    group=name,
                    metric=metric,
                    runs=len(known),
                    left_out_mape_percent=round(statistics.fmean(abs(e) for e in ours), 2),
                    left_out_median_percent=round(statistics.median(ours), 2),
                    physics_mape_percent=round(statistics.fmean(abs(e) for e in plain), 2),
                    physics_median_percent=round(statistics.median(plain), 2),
                    coverage_fraction=round(statistics.fmean(covered), 3) if covered else None,
                )
            )
    return rows


def coverage_left_out(
    runs: Sequence[Measurement], left_out: Predictions, constants: Constants
) -> dict[tuple[str, str], bool]:
    """Whether each measured value lies in the interval that the other configurations would have given it.

    Intervals of open loads hold what steps as slow, or as fast, as those of the others would make of the load.
    """
    inside: dict[tuple[str, str], bool] = {}
    for group, members in by_group(runs).items():
        others = [run for run in runs if run.group != group and run.model_class == members[0].model_class]
        by_load = {
            metric: spreads_by_load(
                [
                    RunMiss(run.group, run.load.kind, relative_residual(run, metric, left_out))
                    for run in others
                    if metric in run.measured
                ]
            )
            for metric in METRICS
        }
        known = {metric: found[ANY] for metric, found in by_load.items()}
        closed = {metric: found.get(CLOSED, found[ANY]) for metric, found in by_load.items()}
        for run in members:
            wide = closed if run.load.kind == "closed" else _queued(run, constants, known)
            for metric, (low, high) in wide.items():
                if metric in run.measured:
                    ratio = run.measured[metric] / left_out[run.id][metric]
                    inside[run.id, metric] = low <= ratio <= high
    return inside


def _queued(
    run: Measurement, constants: Constants, known: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Spreads of an open load, as ``solver.prediction.step_error`` makes them, and what one draw of it differs from the next."""
    centre = predicted(run, constants)
    ends = [predicted_with_steps(run, constants, factor) for factor in known[STEP_METRIC]]
    wide = dict(known)
    for metric in known:
        if metric not in ("power", "output_rate"):
            ratios = [end[metric] / centre[metric] for end in ends]
            wide[metric] = min(known[metric][0], *ratios), max(known[metric][1], *ratios)
    for metric, fraction in draw_error_fractions(run, constants).items():
        told = sampled(PredictedInterval(1.0, *wide[metric]), fraction)
        wide[metric] = told.low, told.high
    return wide
