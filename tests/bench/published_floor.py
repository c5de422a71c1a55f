"""What published runs can tell about one another without any physics: how far off a black box is on runs it has not seen.

    python -m tests.bench.published_floor [--unstated]

Ridge regression and nearest neighbours over everything that a run of ``catalog/serving`` states (device, precision, layout, load,
lengths) and what the catalog says of its device and model, on logarithms of times and rates; and the same of what is left of this
project's predictions (their ratio to what was measured), so that a column says how much of their error follows from what is known.
Each source, then each device, is left out in turn, with the black box's own setting chosen within the rest by the same rule. Printed:
the median over sources and devices, each once, of the mean error in per cent. A figure that no column reaches is not to be had from
this evidence.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from catalog.read import Catalog, read_catalog
from catalog.read_serving import is_current, read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import predicted_runs
from service.recommendations.from_rows import device_from_row, llm_from_row
from service.wire.estimates import EstimatedOut
from solver.llm_shape import LlmShape
from solver.precision import WEIGHT_FORMATS
from solver.step.rates import compute_dtype

Vector = NDArray[np.float64]
RIDGES = (0.3, 3.0, 30.0, 300.0)
NEIGHBOURS = (1, 3, 9, 27)
METRICS = {"time per token": "tpot_ms", "output rate": "output_tokens_per_s", "first token": "ttft_ms"}


class Case(NamedTuple):
    """One figure of one run. covariates: of its run; measured, predicted: logarithms."""

    source: str
    device: str
    covariates: Vector
    measured: float
    predicted: float


class Sample(NamedTuple):
    """covariates: a run a row, standardised. group: which one is left out together."""

    covariates: Vector
    values: Vector
    group: NDArray[np.str_]


Guess = Callable[[Sample, Vector, float], Vector]


def ridge(seen: Sample, asked: Vector, strength: float) -> Vector:
    """ŷ = ȳ + x·(XᵀX + λI)⁻¹Xᵀ(y − ȳ) (Hoerl and Kennard, 1970)."""
    mean = seen.values.mean()
    size = seen.covariates.shape[1]
    weights = np.linalg.solve(
        seen.covariates.T @ seen.covariates + strength * np.eye(size), seen.covariates.T @ (seen.values - mean)
    )
    return np.asarray(mean + asked @ weights)


def neighbours(seen: Sample, asked: Vector, count: float) -> Vector:
    """Mean of the nearest runs, by Euclidean distance of standardised covariates (Cover and Hart, 1967)."""
    distance = ((asked[:, None, :] - seen.covariates[None, :, :]) ** 2).sum(axis=2)
    nearest = np.argsort(distance, axis=1)[:, : int(count)]
    return np.asarray(seen.values[nearest].mean(axis=1))


BOXES: dict[str, tuple[Guess, Sequence[float]]] = {
    "ridge": (ridge, RIDGES),
    "nearest": (neighbours, tuple(map(float, NEIGHBOURS))),
}


def left_out(sample: Sample, guess: Guess, setting: float) -> Vector:
    """What each run is told by all that are not of its group."""
    told = np.empty_like(sample.values)
    for name in np.unique(sample.group):
        own = sample.group == name
        told[own] = guess(Sample(*(part[~own] for part in sample)), sample.covariates[own], setting)
    return told


def blind(sample: Sample, guess: Guess, settings: Sequence[float]) -> Vector:
    """The same, each group's setting the one of least absolute error among the others, left out likewise."""
    told = np.empty_like(sample.values)
    for name in np.unique(sample.group):
        own = sample.group == name
        others = Sample(*(part[~own] for part in sample))
        errors = [float(np.abs(left_out(others, guess, one) - others.values).mean()) for one in settings]
        told[own] = guess(others, sample.covariates[own], settings[int(np.argmin(errors))])
    return told


def covariates(catalog: Catalog, run: PublicRunRow, shape: LlmShape, engines: Sequence[str]) -> Vector:
    """What is known before a run is made, in logarithms where it is a size."""
    row = catalog.devices[run.device]
    device = device_from_row(row.model_dump(mode="json"))
    dtype = compute_dtype(device, run.weights)
    degree = run.tensor_parallel * run.pipeline_parallel
    held = shape.active_weights * WEIGHT_FORMATS[run.weights].bytes_per_weight
    sizes = (
        device.memory_bytes_per_s, device.flop_per_s[dtype], device.memory_bytes, degree, run.data_parallel, held, shape.total_weights,
        shape.layers, held / (device.memory_bytes_per_s * degree), shape.active_weights / (device.flop_per_s[dtype] * degree),
        run.concurrency or run.requests_per_s or 1.0, run.prompt_tokens_low + run.prompt_tokens_high,
        run.output_tokens_low + run.output_tokens_high,
    )  # fmt: skip
    current = is_current(run.engine, run.engine_version, run.measured_on)
    kinds = (
        *(run.engine == name for name in engines), *(row.memory_class == name for name in ("hbm", "gddr")), row.vendor == "NVIDIA",
        run.load == "open", run.requests is not None, current is False, current is None, shape.is_moe,
        WEIGHT_FORMATS[run.weights].quantised,
    )  # fmt: skip
    return np.array([*np.log(np.array(sizes, dtype=float)), *map(float, kinds)])


def standardised(values: Vector) -> Vector:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def predicted(told: EstimatedOut, metric: str) -> float:
    if metric == "output_tokens_per_s":
        return told.output_tokens_per_s.expected
    return (told.tpot_ms if metric == "tpot_ms" else told.ttft_ms).mean.expected


def cases(catalog: Catalog, *, stated: bool) -> dict[str, list[Case]]:
    runs = read_public_runs()
    engines = sorted({run.engine for run in runs})
    shapes = {name: llm_from_row(row.model_dump(mode="json")) for name, row in catalog.llms.items()}
    found: dict[str, list[Case]] = defaultdict(list)
    for run, told in zip(runs, predicted_runs(catalog, runs, stated=stated), strict=True):
        if told is None:
            continue
        known = covariates(catalog, run, shapes[run.llm], engines)
        for name, metric in METRICS.items():
            if (value := getattr(run, metric)) is not None:
                found[name].append(
                    Case(run.source, run.device, known, float(np.log(value)), float(np.log(predicted(told, metric))))
                )
    return found


def each_once(own: Sequence[Case], told: Vector) -> str:
    """Median over sources and devices of the mean error in per cent; an error above 300 % counts as that."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for case, guess in zip(own, told, strict=True):
        errors[case.source, case.device].append(min(100.0 * abs(float(np.exp(guess - case.measured)) - 1.0), 300.0))
    return f"{np.median([np.mean(group) for group in errors.values()]):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--unstated",
        action="store_true",
        help="predictions as of a request that names no release, nor how lengths vary",
    )
    found = cases(read_catalog(), stated=not parser.parse_args().unstated)
    titles = ("figure", "runs", "left out", "predicted", *BOXES, *(f"predicted, then {name}" for name in BOXES))
    lines = [titles, ("---",) * len(titles)]
    for name, own in found.items():
        known = standardised(np.array([case.covariates for case in own]))
        measured, told = (np.array([getattr(case, field) for case in own]) for field in ("measured", "predicted"))
        for left in ("source", "device"):
            group = np.array([getattr(case, left) for case in own])
            alone = [each_once(own, blind(Sample(known, measured, group), *box)) for box in BOXES.values()]
            after = [
                each_once(own, told + blind(Sample(known, measured - told, group), *box)) for box in BOXES.values()
            ]
            lines.append((name, str(len(own)), left, each_once(own, told), *alone, *after))
    sys.stdout.write("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
