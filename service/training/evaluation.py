"""What the fitted constants are worth: every source, and every model, left out in turn, beside a constant share of the peak."""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.training.fitting import Key, PublishedRun, fit_rows, log_peak, log_rate, problem_of, with_constants
from service.training.inputs import TrainingModel
from solver.training import step
from solver.training.constants import TrainingPrior
from solver.training.estimate import model_flop_per_token
from solver.training.fit import cluster_weights, quantiles

PARTS = 8
"""Into which models are divided when they are left out."""
REFIT_ROUNDS = 5
"""From the constants of all runs: the rest of them differ little."""
LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95


@dataclass(frozen=True)
class LeftOut:
    """One run predicted by constants that have not seen it. constant_mfu: by the others' median share of the peak."""

    run: PublishedRun
    by: str
    predicted: float
    constant_mfu: float | None
    measured: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1.0

    @property
    def constant_mfu_error(self) -> float | None:
        return None if self.constant_mfu is None else self.constant_mfu / self.measured - 1.0


def by_source(run: PublishedRun) -> str:
    return run.row.source


def by_model(run: PublishedRun) -> str:
    """Models in a few parts: each is left out together with others."""
    return f"part {zlib.crc32(run.row.llm.encode()) % PARTS}"


def left_out(
    model: TrainingModel,
    runs: Sequence[PublishedRun],
    assumed: Mapping[Key, TrainingPrior],
    group: Callable[[PublishedRun], str],
    label: str,
    *,
    of_memory: bool = False,
) -> list[LeftOut]:
    """Each group predicted by a fit to all others."""
    usable = [r for r in runs if not r.row.left_out_because and _measured(r, of_memory) is not None]
    unfitted = with_constants(model, {key: (prior.value, 0.0) for key, prior in assumed.items()})
    start = {key: prior.value for key, prior in values_of(model).items()}
    found = []
    for name in sorted({group(r) for r in usable}):
        others = [r for r in usable if group(r) != name]
        own = [r for r in usable if group(r) == name]
        refit = fit_rows(others, assumed, of_memory=of_memory, start=start, rounds=REFIT_ROUNDS)
        fitted = with_constants(unfitted, refit)
        values = {(r.name, r.family, r.stack): r.value for rows in fitted.priors.values() for r in rows}
        problem = problem_of(own)
        constants = problem.constants(np.array([values[key] for key in problem.keys]))
        law = log_peak if of_memory else log_rate
        predicted = np.exp(law(problem.work, constants))
        for run, value in zip(own, predicted, strict=True):
            naive = None if of_memory else constant_mfu_rate(run, others)
            found.append(LeftOut(run, label, float(value), naive, _measured(run, of_memory) or 0.0))
    return found


def constant_mfu_rate(run: PublishedRun, others: Iterable[PublishedRun]) -> float:
    """What the back of an envelope says: the median share of the peak of other runs of its kind and precision."""
    alike = [o for o in others if o.kind == run.kind]
    same = [o for o in alike if o.row.precision == run.row.precision] or alike
    shares = [_mfu(o) for o in same]
    return float(np.median(shares)) * _peak_rate(run)


def measured_spread(found: Sequence[LeftOut], kind: str) -> tuple[float, float]:
    """Between which ratios of measured to predicted nine of ten left-out runs lie."""
    own = [one for one in found if one.run.kind == kind]
    weights = cluster_weights([one.run.cluster for one in own])
    ratios = np.array([one.measured / one.predicted for one in own])
    return quantiles(ratios, weights, LOW_QUANTILE, HIGH_QUANTILE)


@dataclass(frozen=True)
class Anchored:
    """A run predicted from a measured one of the same model, device and software on fewer devices.

    ratio: measured over predicted.
    """

    run: PublishedRun
    anchor: PublishedRun
    ratio: float


def anchored_pairs(runs: Sequence[PublishedRun]) -> list[Anchored]:
    """Of each model, device, release, precision and sequence: the runs on more devices than the smallest."""
    groups: dict[tuple[object, ...], list[PublishedRun]] = defaultdict(list)
    for run in runs:
        if run.row.tokens_per_s_per_device is not None and not run.row.left_out_because:
            groups[(*run.cluster, run.row.sequence_tokens)].append(run)
    found = []
    for own in groups.values():
        first = min(own, key=lambda r: r.row.devices)
        larger = [run for run in own if run.row.devices > first.row.devices]
        off = {id(run): _measured_over_predicted(run) for run in (first, *larger)}
        found += [Anchored(run, first, off[id(run)] / off[id(first)]) for run in larger]
    return found


def anchored_spread(pairs: Sequence[Anchored]) -> tuple[float, float]:
    """Between which ratios of measured to predicted nine of ten anchored runs lie."""
    weights = cluster_weights([pair.run.cluster for pair in pairs])
    return quantiles(np.array([pair.ratio for pair in pairs]), weights, LOW_QUANTILE, HIGH_QUANTILE)


def _measured_over_predicted(run: PublishedRun) -> float:
    predicted = float(step.tokens_per_s_per_device(run.work, run.trained.constants)[0])
    return (run.row.tokens_per_s_per_device or 0.0) / predicted


@dataclass(frozen=True)
class ErrorLine:
    """Errors of one group of left-out runs, in per cent."""

    group: str
    runs: int
    median: float
    mean: float
    ninetieth: float
    bias: float
    constant_mfu_median: float | None
    covered: float | None


def error_lines(
    found: Sequence[LeftOut], group: Callable[[LeftOut], str], spreads: Mapping[str, tuple[float, float]]
) -> list[ErrorLine]:
    groups: dict[str, list[LeftOut]] = defaultdict(list)
    for one in found:
        groups["all"].append(one)
        groups[group(one)].append(one)
    return [_line(name, own, spreads) for name, own in sorted(groups.items())]


def _line(name: str, own: Sequence[LeftOut], spreads: Mapping[str, tuple[float, float]]) -> ErrorLine:
    off = np.abs([one.error for one in own])
    naive = [abs(e) for one in own if (e := one.constant_mfu_error) is not None]
    covered = None
    if spreads:
        held = [spreads[o.run.kind][0] <= o.measured / o.predicted <= spreads[o.run.kind][1] for o in own]
        covered = float(np.mean(held))
    return ErrorLine(
        group=name,
        runs=len(own),
        median=_percent(np.median(off)),
        mean=_percent(np.mean(off)),
        ninetieth=_percent(np.quantile(off, 0.9)),
        bias=_percent(np.median([one.error for one in own])),
        constant_mfu_median=_percent(np.median(naive)) if naive else None,
        covered=covered,
    )


def _percent(share: float | np.floating) -> float:
    return round(100.0 * float(share), 1)


def _mfu(run: PublishedRun) -> float:
    return (run.row.tokens_per_s_per_device or 0.0) / _peak_rate(run)


def _peak_rate(run: PublishedRun) -> float:
    return run.trained.run.device.flop_per_s / model_flop_per_token(run.trained.run.shape)


def _measured(run: PublishedRun, of_memory: bool) -> float | None:
    return run.row.peak_memory_gib if of_memory else run.row.tokens_per_s_per_device


def values_of(model: TrainingModel) -> dict[Key, TrainingPrior]:
    return {(r.name, r.family, r.stack): r for rows in model.priors.values() for r in rows}
