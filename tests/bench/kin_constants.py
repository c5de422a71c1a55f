"""Constants by which uploads of a model move its other configurations, on published runs of 16 models on devices under engines.

    python -m tests.bench.kin_constants

Of each model every second configuration (precision and layout, in order) tells of the others, then the other way round. Printed: the mean
error of TPOT and TTFT of those told, before and for each of a grid of ``kin_bandwidth`` and ``kin_run_shrinkage``, by load, and of
``kin_shrinkage``, at any load; then by how much the worst engine on a device rose, in either half, and the sum of the four errors
over those before.
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
from solver.corrections.applied import shrunk_factor
from solver.corrections.kin import MeasuredLoad, Relative, Shrinkage, kin_of
from solver.layout import Layout

SOURCE = "aiconfigurator"
TITLES = {"time_per_output_token": "TPOT", "time_to_first_token": "TTFT"}
BANDWIDTHS, RUNS, RELATIVES = (0.8, 0.9, 1.0, 1.1, 1.3), (0.6, 1.0, 1.4, 2.0), (0.3, 0.5, 0.9, 1.8)
Before = tuple[int, str, str, str]
Model = tuple[str, str, str]
Configuration = tuple[object, ...]


class Run(NamedTuple):
    clients: float
    prompt_tokens: float
    output_tokens: float
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
        output = (run.output_tokens_low + run.output_tokens_high) / 2.0
        one = Run(run.concurrency / run.data_parallel, prompt, output, residuals(run, told))
        found[run.engine, run.device, run.llm][configuration].append(one)
    return found


def relative(configuration: Configuration, runs: Sequence[Run], *, by_load: bool) -> Relative:
    points = tuple(MeasuredLoad(run.clients, run.prompt_tokens, run.output_tokens, 1, run.residuals) for run in runs)
    factors = {m: shrunk_factor([run.residuals[m] for run in runs if m in run.residuals]) for m in TITLES}
    weights, _, *degrees = configuration
    return Relative(
        str(weights), (), (), factors, True, points if by_load else (), Layout(*map(int, map(str, degrees)))
    )


def errors(
    models: Mapping[Model, Mapping[Configuration, list[Run]]], shrinkage: Shrinkage | None, *, by_load: bool = True
) -> dict[Before, float]:
    """Mean errors in per cent of the configurations told, by half, metric, engine and device."""
    found: dict[Before, list[float]] = defaultdict(list)
    for (engine, device, _), configurations in models.items():
        ordered = sorted(configurations.items(), key=str)
        for first in (0, 1):
            telling = [relative(*one, by_load=by_load) for one in ordered[first::2]]
            for configuration, runs in ordered[1 - first :: 2] if telling else ():
                own = relative(configuration, runs, by_load=by_load)
                kin = None if shrinkage is None else kin_of(telling, own.weights, None, shrinkage, own.layout)
                for run in runs:
                    factors = kin.at(run.clients, run.prompt_tokens, run.output_tokens) if kin is not None else {}
                    for metric, residual in run.residuals.items():
                        error = 100.0 * abs(factors.get(metric, 1.0) * math.exp(-residual) - 1.0)
                        for cell in ((engine, device), ("", "")):
                            found[(first, metric, *cell)].append(error)
    return {key: statistics.fmean(known) for key, known in found.items()}


def main() -> None:
    models = gathered()
    halves = [(first, metric, "", "") for first in (0, 1) for metric in TITLES]
    shown = [f"{title} {half}" for half in ("of odd", "of even") for title in TITLES.values()]
    sys.stdout.write(
        f"| bandwidth | runs | relatives | {' | '.join(shown)} | worst rise | sum |\n|{'---|' * (5 + len(shown))}\n"
    )
    before = errors(models, None)

    def line(named: Sequence[object], known: Mapping[Before, float]) -> None:
        rise = max(known[key] - before[key] for key in before)
        told = [f"{known[key]:.1f}" for key in halves]
        total = math.fsum(known[key] / before[key] for key in halves)
        sys.stdout.write(f"| {' | '.join(map(str, named))} | {' | '.join(told)} | {rise:+.1f} | {total:.3f} |\n")

    line(("–", "–", "–"), before)
    for bandwidth, runs in itertools.product(BANDWIDTHS, RUNS):
        line((bandwidth, runs, "–"), errors(models, Shrinkage(1.0, runs, bandwidth)))
    for relatives in RELATIVES:
        line(("–", "–", relatives), errors(models, Shrinkage(relatives, 1.0, 1.0), by_load=False))


if __name__ == "__main__":
    main()
