"""What public runs say of constants and of intervals: the rows of ``catalog/constants`` that cite them.

    python -m tests.bench.public_fits FILE [--every 3]

FILE is that of ``tests.bench.public_cases``. First, constants of TensorRT-LLM and of sparse attention fitted to its runs towards the
catalog, with each group of a model and a device left out. Then what measured over predicted needs beyond the ranges of constants
(``interval_token_miss``, ``interval_first_token_miss``): the shortest range that holds nine of ten, each group counted once, and how
much of one half of the groups the range of the other half holds.
"""

import argparse
import csv
import math
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import correction_set, in_force
from service.recommendations.from_rows import (
    device_from_row,
    engine_from_wire,
    layout_from_wire,
    llm_from_row,
    load_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.wire.estimates import EstimateIn
from solver.corrections.applied import CorrectionSet, configuration_correction
from solver.corrections.evidence import Measurement, misfits
from solver.corrections.fit import fit_constants, without
from solver.deployment.deploy import deploy
from solver.prediction.estimate import estimate, needs_moving
from solver.prediction.spreads import in_quadrature
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from tests.bench.public_cases import asked

TOKEN, FIRST = "time_per_output_token", "time_to_first_token"
FIELDS = {TOKEN: "tpot_ms_mean", FIRST: "ttft_ms_mean"}
MISSES = ("interval_token_miss", "interval_first_token_miss")
FITS = {
    "tensorrt-llm": ("token_front_end_us", "expert_layer_overhead_us", "kv_read_efficiency_8bit"),
    "sglang glm-5": ("index_layer_overhead_us",),
}
Group = tuple[str, ...]


class Miss(NamedTuple):
    """Logarithms of one run: measured over predicted, and the ends of its interval by the ranges of constants alone."""

    group: Group
    ratio: float
    low: float
    high: float


def measurement(catalog: Catalog, priors: Sequence[ConstantPrior], row: dict[str, str]) -> Measurement:
    one = EstimateIn.model_validate(asked(row))
    shape = llm_from_row(catalog.llms[one.llm].model_dump(mode="json"))
    assert one.device is not None
    assert one.layout is not None
    device = device_from_row(catalog.devices[one.device].model_dump(mode="json"))
    constants = resolve_constants(priors, device=device.id, family=device.family, engine=one.engine.name, llm=shape.id)
    traffic = traffic_from_wire(one.traffic)
    engine = replace(engine_from_wire(one.engine), max_context_tokens=min(traffic.maximum, shape.max_context_tokens))
    layout, precision = layout_from_wire(one.layout), precision_from_wire(one.precision)
    deployed = deploy(shape, device, constants, layout, precision, engine, traffic)
    group = (row["engine"], row["device"], row["llm"], row["weights"], row["engine_version"])
    measured = {metric: float(row[field]) / 1e3 for metric, field in FIELDS.items() if row[field]}
    load = load_from_wire(one.load)
    return Measurement(
        row["case_id"], "|".join(group), shape.model_class, deployed.configuration, traffic, load, measured
    )


def model_on_device(run: Measurement) -> str:
    return f"{run.configuration.shape.id} on {run.configuration.device.id}"


def off(runs: Iterable[Measurement], constants: Constants) -> str:
    errors = [misfits(run, constants) for run in runs]
    known = [100.0 * abs(math.exp(one[TOKEN]) - 1.0) for one in errors if TOKEN in one]
    return f"{statistics.fmean(known):.1f}"


def print_fit(title: str, runs: Sequence[Measurement], names: Sequence[str]) -> None:
    prior = runs[0].configuration.constants
    fit = fit_constants(runs, prior, names, rounds=4)
    found = ", ".join(f"{name} {one.prior:.3g} → {one.value:.3g}" for name, one in fit.fitted.items())
    sys.stdout.write(
        f"\n{title}, {len(runs)} runs: {found}\n\n| left out | TPOT %, before | then | constants |\n|---|---|---|---|\n"
    )
    for group in sorted({model_on_device(run) for run in runs}):
        own = [i for i, run in enumerate(runs) if model_on_device(run) == group]
        others = without(fit, own)
        told = ", ".join(f"{others.priors[name].value:.3g}" for name in names)
        members = [runs[i] for i in own]
        before, then = off(members, prior), off(members, others)
        sys.stdout.write(f"| {group} | {before} | {then} | {told} |\n")


def misses(runs: Iterable[Measurement], current: CorrectionSet, metric: str) -> list[Miss]:
    found = []
    for run in runs:
        correction = configuration_correction(current, run.configuration)
        if metric not in run.measured or not needs_moving(correction):
            continue
        told = estimate(run.configuration, run.traffic, run.load, correction)
        one = (told.time_per_output_token_s if metric == TOKEN else told.time_to_first_token_s)["mean"]
        ends = math.log(one.low / one.expected), math.log(one.high / one.expected)
        found.append(Miss(tuple(run.group.split("|")), math.log(run.measured[metric] / one.expected), *ends))
    return found


def weights(found: Sequence[Miss]) -> list[float]:
    sizes = Counter(one.group for one in found)
    return [1.0 / sizes[one.group] / len(sizes) for one in found]


def shortest(found: Sequence[Miss], share: float = 0.9) -> tuple[float, float]:
    """The shortest (low, high) that holds the share of measured over predicted, in quadrature with each run's own interval."""
    shares = weights(found)
    below = [math.sqrt(max(one.ratio**2 - one.low**2, 0.0)) if one.ratio < 0 else 0.0 for one in found]
    above = [math.sqrt(max(one.ratio**2 - one.high**2, 0.0)) if one.ratio > 0 else 0.0 for one in found]

    def leaving(values: Sequence[float], outside: float) -> float:
        passed = 0.0
        for value, weight in sorted(zip(values, shares, strict=True), reverse=True):
            passed += weight
            if passed > outside + 1e-9:
                return value
        return 0.0

    tails = [(i / 100.0, 1.0 - share - i / 100.0) for i in range(int(100 * (1.0 - share)) + 1)]
    low, high = min(((leaving(below, a), leaving(above, b)) for a, b in tails), key=sum)
    return math.exp(-low), math.exp(high)


def held(found: Sequence[Miss], miss: tuple[float, float]) -> float:
    inside = 0.0
    for one, weight in zip(found, weights(found), strict=True):
        low, high = in_quadrature((math.exp(one.low), math.exp(one.high)), miss)
        inside += weight * (math.log(low) <= one.ratio <= math.log(high))
    return inside


def print_misses(title: str, found: Sequence[Miss]) -> None:
    groups = sorted({one.group for one in found})
    halves = [[one for one in found if groups.index(one.group) % 2 == parity] for parity in (0, 1)]
    low, high = shortest(found)
    crossed = [f"{100 * held(halves[1 - i], shortest(halves[i])):.0f} %" for i in (0, 1) if all(halves)]
    sys.stdout.write(
        f"| {title} | {len(groups)} | {len(found)} | {100 * held(found, (1.0, 1.0)):.0f} % | {low:.2f}–{high:.2f} | "
        f"{100 * held(found, (low, high)):.0f} % | {', '.join(crossed)} |\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=3, help="fit constants to every so many runs")
    arguments = parser.parse_args()
    rows = [row for row in csv.DictReader(arguments.file.open(encoding="utf-8")) if row["load"] == "closed"]
    catalog = read_catalog()
    newest = catalog.corrections[-1]
    # Without the rows that these runs gave: towards what everybody else says, and as little for an index as for a latent.
    given = {name for names in FITS.values() for name in names}
    stated = [p for p in catalog_priors(catalog) if not (p.engine == "tensorrt-llm" and p.name in given)]
    latent = next(p for p in stated if p.name == "latent_layer_overhead_us")
    index = replace(latent, name="index_layer_overhead_us", high=10.0 * latent.high)
    stated = [index if p.name == index.name else p for p in stated]
    plain = in_force(newest, [replace(p, low=1.0, high=1.0) if p.name in MISSES else p for p in stated])
    for title, names in FITS.items():
        engine, _, llm = title.partition(" ")
        chosen = [r for r in rows if r["engine"] == engine and r["llm"].startswith(llm)][:: arguments.every]
        print_fit(title, [measurement(catalog, plain, row) for row in chosen], names)
    sys.stdout.write(
        "\n| engine, metric | groups | runs | inside | beyond the ranges of constants | inside then | halves |\n"
    )
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    wide = [replace(p, low=1.0, high=1.0) if p.name in MISSES else p for p in catalog_priors(catalog)]
    current, priors = correction_set(newest), in_force(newest, wide)
    for engine in sorted({row["engine"] for row in rows}):
        runs = [measurement(catalog, priors, row) for row in rows if row["engine"] == engine]
        for metric in FIELDS:
            print_misses(f"{engine}, {metric}", misses(runs, current, metric))


if __name__ == "__main__":
    main()
