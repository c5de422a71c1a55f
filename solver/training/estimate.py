"""What a training step takes and needs: for a stated layout, or for the best of all that a run can have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.errors import FigureMissingError
from solver.training import memory, step
from solver.training.constants import TrainingConstants
from solver.training.layouts import LayoutSpace, enumerate_layouts
from solver.training.memory import REFUSED_ABOVE, Verdict
from solver.training.shape import TrainingShape
from solver.training.work import Layouts, Recompute, Run, Sharding, Values, Work

SHORTLIST_FRACTION = 0.05
"""Layouts within this of the fastest are told: predicted differences below it are not worth a choice."""
TIE_FRACTION = 0.01
"""Within this the simpler layout is taken: fewer ranks a replica, nothing recomputed."""


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """Measured over predicted rates: nine of ten lie between ``low_ratio`` and ``high_ratio``."""

    low_ratio: float
    high_ratio: float


@dataclass(frozen=True, slots=True)
class PredictedLayout:
    """One layout with its rate and its need of memory. recomputed_fraction: of the layers, all of whose forward pass is repeated."""

    degrees: Mapping[str, int]
    recompute: Recompute
    recomputed_fraction: float
    sharding: Sharding
    tokens_per_s_per_device: float
    peak_bytes: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    """terms: seconds of one step, which they sum to. parts: bytes on the fullest device. shortlist: best first, the chosen
    one among them. considered: layouts compared.
    """

    chosen: PredictedLayout
    step_s: float
    tokens_per_step: float
    mfu_fraction: float
    terms: Mapping[str, float]
    parts: Mapping[str, float]
    available_bytes: float
    shortlist: tuple[PredictedLayout, ...]
    considered: int


def model_flop_per_token(shape: TrainingShape) -> float:
    """6 operations for each weight a token is multiplied with, and three times the causal attention's forward ones.

    Adapters and recomputation count the same: it says how useful the devices' time was, not how busy they were.
    """
    return 6.0 * shape.active_weights + 3.0 * shape.attention_flop_per_token


@dataclass(frozen=True, slots=True)
class Compared:
    """Every layout of a run with its seconds and its need of memory, and the position of the one to take."""

    layouts: Layouts
    work: Work
    seconds: Values
    peaks: Values
    best: int

    @property
    def alone(self) -> Work:
        """The run under the one to take."""
        return self.work.at(self.best)


def compared(
    run: Run, constants: TrainingConstants, devices: int, layout_space: LayoutSpace, batch_stated: bool
) -> Compared:
    """The fastest layout that memory holds, or, where none does, the one that needs least of it, among all others.

    Raises UnsupportedError for what no layout can be, FigureMissingError for a network that nobody has published.
    """
    layouts, work = laid_out(run, constants, devices, layout_space, batch_stated)
    seconds = step.step_s(work, constants)
    peaks = memory.peak_bytes(work, constants)
    return Compared(layouts, work, seconds, peaks, chosen_position(layouts, seconds, peaks, run.device.memory_bytes))


def estimate_training(
    run: Run, constants: TrainingConstants, devices: int, layout_space: LayoutSpace, batch_stated: bool
) -> TrainingEstimate:
    """The layout to take, what its step is made of, and others as good. Raises as ``compared`` does."""
    every = compared(run, constants, devices, layout_space, batch_stated)
    layouts, seconds, peaks, best, work = every.layouts, every.seconds, every.peaks, every.best, every.work
    rates = work.tokens_per_step / seconds / devices
    listed = _shortlist(layouts, rates, peaks, run.device.memory_bytes, best)
    alone = every.alone
    return TrainingEstimate(
        chosen=_predicted(layouts, rates, peaks, run.device.memory_bytes, best),
        step_s=float(seconds[best]),
        tokens_per_step=float(work.tokens_per_step[0]),
        mfu_fraction=float(rates[best]) * model_flop_per_token(run.shape) / run.device.flop_per_s,
        terms={name: float(value[0]) for name, value in step.step_terms(alone, constants).items()},
        parts={name: float(value[0]) for name, value in memory.memory_parts(alone, constants).items()},
        available_bytes=run.device.memory_bytes,
        shortlist=tuple(_predicted(layouts, rates, peaks, run.device.memory_bytes, at) for at in listed),
        considered=len(layouts),
    )


def laid_out(
    run: Run, constants: TrainingConstants, devices: int, layout_space: LayoutSpace, batch_stated: bool
) -> tuple[Layouts, Work]:
    """Every legal layout, each recomputing what is stated, or as little as memory asks. Raises as ``estimate_training`` does."""
    batch = run.global_batch_sequences if batch_stated else None
    layouts = enumerate_layouts(run.shape, devices, batch, layout_space)
    needs_network(run, devices)
    work = run.work(layouts)
    if layout_space.recompute is not None:
        return layouts, work
    share = memory.least_recompute(work, constants, layout_space.recomputes_layers)
    return replace(layouts, recompute_full=share), replace(work, recompute_full=share)


def needs_network(run: Run, devices: int) -> None:
    """Raises FigureMissingError where devices beyond one domain are joined by a network of unknown rate."""
    if devices > run.device.link_domain_devices and run.device.network_bytes_per_s <= 0.0:
        raise FigureMissingError(run.device.id, "network between nodes")
    if devices > 1 and run.device.link_bytes_per_s <= 0.0:
        raise FigureMissingError(run.device.id, "link between devices")


def chosen_position(layouts: Layouts, seconds: Values, peaks: Values, available_bytes: float) -> int:
    """Of those that fit the device: the simplest within a hundredth of the fastest. Else the same of those that may fit; else
    the one that needs least.
    """
    for most in (available_bytes, available_bytes * REFUSED_ABOVE):
        holds = peaks <= most
        if holds.any():
            limit = seconds[holds].min() * (1.0 + TIE_FRACTION)
            near = np.flatnonzero(holds & (seconds <= limit))
            ranks = layouts.tensor_parallel[near] * layouts.pipeline_parallel[near] * layouts.context_parallel[near]
            order = np.lexsort((seconds[near], layouts.virtual_pipeline[near], layouts.recompute_full[near], ranks))
            return int(near[order[0]])
    return int(np.argmin(peaks))


def _shortlist(
    layouts: Layouts, rates: Values, peaks: Values, available_bytes: float, best: int, most: int = 8
) -> Sequence[int]:
    """The chosen one, then others that fit and are within 5 % of the fastest, each of another split, best first."""
    fast = rates[best] * (1.0 - SHORTLIST_FRACTION)
    near = np.flatnonzero((peaks <= max(available_bytes, float(peaks[best]))) & (rates >= fast))
    listed, seen = [best], {_split(layouts, best)}
    for position in near[np.argsort(-rates[near], kind="stable")]:
        if len(listed) == most:
            break
        if _split(layouts, int(position)) not in seen:
            seen.add(_split(layouts, int(position)))
            listed.append(int(position))
    return listed


def _split(layouts: Layouts, at: int) -> tuple[float, ...]:
    return (
        layouts.tensor_parallel[at], layouts.pipeline_parallel[at], layouts.context_parallel[at],
        layouts.expert_parallel[at], layouts.recompute_full[at], layouts.sharded_weights[at],
    )  # fmt: skip


def _predicted(layouts: Layouts, rates: Values, peaks: Values, available_bytes: float, at: int) -> PredictedLayout:
    names = (
        "tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel",
        "data_parallel", "micro_batch_sequences",
    )  # fmt: skip
    full, selective = bool(layouts.recompute_full[at]), bool(layouts.recompute_selective[at])
    return PredictedLayout(
        degrees={name: int(getattr(layouts, name)[at]) for name in names},
        recompute="full" if full else "selective" if selective else "none",
        recomputed_fraction=float(layouts.recompute_full[at]),
        sharding="zero3" if layouts.sharded_weights[at] else "zero1",
        tokens_per_s_per_device=float(rates[at]),
        peak_bytes=float(peaks[at]),
        verdict=memory.verdict(float(peaks[at]), available_bytes),
    )
