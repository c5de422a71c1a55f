"""Constants by which uploads of a model move its other configurations, on published runs of 16 models on devices under engines.

    python -m tests.bench.kin_constants

Of each model every second configuration (precision and layout, in order) tells of the others, then the other way round. Printed: the mean
error of TPOT and TTFT of those told, before and for each of a grid of ``kin_bandwidth``, ``kin_run_shrinkage`` and ``kin_shrinkage``.
"""

import itertools
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from catalog.read import read_catalog
from catalog.read_serving import read_public_runs
from catalog.serving_rows import PublicRunRow
from service.corrections.public_runs import LAYOUT, predicted_runs
from service.wire.estimates import EstimatedOut
from solver.corrections.kin import Kin, MeasuredLoad, Relative, Shrinkage

SOURCE = "aiconfigurator"
TITLES = {"time_per_output_token": "TPOT", "time_to_first_token": "TTFT"}
GRID = ((0.6, 0.8, 1.0), (0.5, 1.0), (0.3, 0.5, 0.9, 1.8))
Model = tuple[str, str, str]
Configuration = tuple[object, ...]


class Run(NamedTuple):
    clients: float
    prompt_tokens: float
    residuals: Mapping[str, float]


def residuals(run: PublicRunRow, told: EstimatedOut) -> dict[str, float]:
    pairs = {
        "time_per_output_token": (run.tpot_ms, told.tpot_ms.mean.expected),
        "time_to_first_token": (run.ttft_ms, told.ttft_ms.mean.expected),
    }
    return {metric: math.log(measured / said) for metric, (measured, said) in pairs.items() if measured is not None}


def gathered() -> dict[Model, dict[Configuration, list[Run]]]:
    runs = [run for run in read_public_runs() if run.source == SOURCE]
    found: dict[Model, dict[Configuration, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run, told in zip(runs, predicted_runs(read_catalog(), runs), strict=True):
        if told is None or run.concurrency is None:
            continue
        configuration = (run.weights, run.kv_cache, *(getattr(run, name) for name in LAYOUT))
        prompt = (run.prompt_tokens_low + run.prompt_tokens_high) / 2.0
        one = Run(run.concurrency / run.data_parallel, prompt, residuals(run, told))
        found[run.engine, run.device, run.llm][configuration].append(one)
    return found


def relative(configuration: Configuration, runs: Sequence[Run]) -> Relative:
    points = tuple(MeasuredLoad(run.clients, run.prompt_tokens, 1, run.residuals) for run in runs)
    return Relative(str(configuration[0]), (), (), {}, True, points)


def errors(
    models: Mapping[Model, Mapping[Configuration, list[Run]]], shrinkage: Shrinkage | None, first: int
) -> dict[str, float]:
    """Mean errors in per cent of the configurations told; first: whether even ones tell, or odd ones."""
    found: dict[str, list[float]] = defaultdict(list)
    for configurations in models.values():
        ordered = sorted(configurations.items(), key=str)
        telling = [relative(*one) for one in ordered[first::2]]
        for configuration, runs in ordered[1 - first :: 2]:
            own = tuple(one for one in telling if one.weights == configuration[0]) or tuple(telling)
            for run in runs if own else ():
                factors = Kin((), {}, own, shrinkage).at(run.clients, run.prompt_tokens)
                for metric, residual in run.residuals.items():
                    found[metric].append(100.0 * abs(factors.get(metric, 1.0) * math.exp(-residual) - 1.0))
    return {metric: statistics.fmean(known) for metric, known in found.items()}


def main() -> None:
    models = gathered()
    shown = [f"{title} {half}" for half in ("of odd", "of even") for title in TITLES.values()]
    sys.stdout.write(f"| bandwidth | runs | relatives | {' | '.join(shown)} |\n|{'---|' * (3 + len(shown))}\n")
    for values in (None, *itertools.product(*GRID)):
        shrinkage = None if values is None else Shrinkage(values[2], values[1], values[0])
        told = [errors(models, shrinkage, first)[metric] for first in (0, 1) for metric in TITLES]
        named = ("–", "–", "–") if values is None else values
        sys.stdout.write(f"| {' | '.join(map(str, named))} | {' | '.join(f'{one:.1f}' for one in told)} |\n")


if __name__ == "__main__":
    main()
