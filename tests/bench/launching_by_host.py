"""How long hosts take to launch, those that this project measured on and those that others published from:
``python -m tests.bench.launching_by_host [--set 12]`` (half a minute).

Launching a step beyond captured graphs is the host's work. First, by visit: what the constants of launching are multiplied by where the
mixtures of experts measured on that visit are said best, and how far they are off as they are. Then, by device: what a fit would count
of this project's runs, and how far vLLM's published runs are off, where one constant of launching is multiplied. --set: with constants of
this correction set, not of the newest.
"""

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from catalog.read_serving import read_public_runs
from service.corrections.measurements import catalog_priors, measurements
from service.corrections.public_runs import bare_snapshot, predicted_by
from service.corrections.snapshot import in_force
from solver.corrections.evidence import Measurement, misfits
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from tests.bench.host_constants import LAUNCHING, loss
from tests.bench.kept_back_runs import DRAWN, NOT_TOLD
from tests.bench.routing_of_random_weights import measured_run

ENGINE, DEVICES = "vllm", ("h100-sxm", "h200-sxm")
COLLECTIVE = "eager_collective_us"
OF_A_VISIT = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.9, 2.2)
TRIED: tuple[Mapping[str, float], ...] = (
    {}, {COLLECTIVE: 0.75}, {COLLECTIVE: 0.6}, {COLLECTIVE: 0.5}, {COLLECTIVE: 0.25}, {"eager_layer_us": 0.85}, {"eager_layer_us": 0.7},
    {"eager_layer_us": 0.5}, {"eager_expert_layer_us": 0.85}, {"eager_expert_layer_us": 0.7},
    {COLLECTIVE: 0.6, "eager_layer_us": 0.7}, {COLLECTIVE: 0.6, "eager_expert_layer_us": 0.85},
)  # fmt: skip
"""What each constant is multiplied by."""
FIRST_TOKEN, TOKEN = "time_to_first_token", "time_per_output_token"
PRINTED = {FIRST_TOKEN: "TTFT", TOKEN: "TPOT"}
Run = tuple[Measurement, Constants]


def scaled(constants: Constants, by: Mapping[str, float]) -> Constants:
    return constants.replaced({name: constants.priors[name].value * factor for name, factor in by.items()}, "measured")


def constants_of(priors: Sequence[ConstantPrior], one: Measurement, random_weights: bool) -> Constants:
    here = one.configuration
    return resolve_constants(
        priors, device=here.device.id, family=here.device.family, engine=ENGINE, llm=here.shape.id,
        random_weights=random_weights,
    )  # fmt: skip


def of_fits(catalog: Catalog, priors: Sequence[ConstantPrior]) -> Iterator[tuple[str, Run]]:
    """By visit, named by its campaign, the runs that fits take."""
    for file in catalog.benchmarks:
        visit = file.campaign.rpartition("-")[2]
        for one in measurements(catalog, [file], catalog_priors(catalog)):
            if one.configuration.engine.name == ENGINE:
                yield visit, (one, constants_of(priors, one, one.configuration.random_routing))


def kept_back(catalog: Catalog, priors: Sequence[ConstantPrior]) -> Iterator[tuple[str, Run]]:
    """Those that are in no fit."""
    for path in sorted((DEFAULT_ROOT / "kept_back").glob("*_vllm-*.json")):
        configuration, _, visit = path.stem.rpartition("_")
        if NOT_TOLD in configuration:
            continue
        for name, run in json.loads(path.read_text(encoding="utf-8"))["runs"].items():
            one = measured_run(catalog, name, run)
            yield visit, (one, constants_of(priors, one, not configuration.endswith(DRAWN)))


def off_by(runs: Iterable[Run], factor: float) -> tuple[float, dict[str, list[float]]]:
    """What a fit counts where launching takes so many times as long, and the logarithms of said over measured."""
    total, off = 0.0, defaultdict(list)
    for one, constants in runs:
        known = {name: factor for name in LAUNCHING if name in constants.priors}
        found = misfits(one, scaled(constants, known))
        total += loss(one, found)
        for metric in PRINTED:
            if metric in found:
                off[metric].append(found[metric])
    return total, off


def show_visits(by_visit: Mapping[tuple[str, str], Sequence[Run]]) -> None:
    table = Table("device", "visit", "runs of mixtures", "launching is said best", "counted: as it is", "at best",
                  *(f"{name}: said late by, %" for name in PRINTED.values()), title="by visit")  # fmt: skip
    for (device, visit), runs in sorted(by_visit.items()):
        found = {factor: off_by(runs, factor) for factor in OF_A_VISIT}
        best = min(OF_A_VISIT, key=lambda factor: found[factor][0])
        total, off = found[1.0]
        late = (f"{100.0 * math.expm1(statistics.median(off[metric])):+.0f}" for metric in PRINTED)
        table.add_row(device, visit, str(len(runs)), f"{best:g} times", f"{total:.0f}", f"{found[best][0]:.0f}", *late)
    Console(width=140).print(table)


def show_tried(catalog: Catalog, priors: tuple[ConstantPrior, ...], own: Sequence[Run]) -> None:
    published = [run for run in read_public_runs() if run.engine == ENGINE and run.device in DEVICES]
    snapshot = replace(bare_snapshot(catalog), priors=priors)
    published_columns = ("published TTFT: median off, %", "mean", "TPOT: mean off, %")
    table = Table("multiplied", "device", "own runs, counted: dense", "mixtures", *published_columns, title="by device")
    for by in TRIED:
        moved = tuple(replace(p, value=p.value * by.get(p.name, 1.0)) if is_launched_here(p) else p for p in priors)
        said = predicted_by(replace(snapshot, priors=moved), catalog, published)
        for device in DEVICES:
            counted = {
                kind: sum(loss(one, misfits(one, scaled(constants, by))) for one, constants in own
                          if (one.configuration.device.id, one.model_class) == (device, kind))
                for kind in ("dense", "moe")
            }  # fmt: skip
            off = [
                (abs(e.ttft_ms.mean.expected / run.ttft_ms - 1.0), abs(e.tpot_ms.mean.expected / run.tpot_ms - 1.0))
                for run, e in zip(published, said, strict=True)
                if e is not None and run.device == device and run.ttft_ms and run.tpot_ms
            ]
            first, token = zip(*off, strict=True)
            shown = (statistics.median(first), statistics.fmean(first), statistics.fmean(token))
            name = ", ".join(f"{constant} x {factor:g}" for constant, factor in by.items()) or "nothing"
            table.add_row(name, device, *(f"{v:.0f}" for v in counted.values()), *(f"{100.0 * v:.1f}" for v in shown))
    Console(width=160).print(table)


def is_launched_here(prior: ConstantPrior) -> bool:
    """Whether a row is one of launching on a Hopper device under vLLM."""
    return prior.engine == ENGINE and (prior.device in DEVICES or prior.family == "hopper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=int, default=None)
    number = parser.parse_args().set
    catalog = read_catalog()
    row = next(c for c in reversed(catalog.corrections) if number in (None, c.number))
    priors = in_force(row, catalog_priors(catalog))
    print(f"constants of correction set {row.number}")
    fits = list(of_fits(catalog, priors))
    by_visit: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for visit, run in (*fits, *kept_back(catalog, priors)):
        if run[0].model_class == "moe":
            by_visit[run[0].configuration.device.id, visit].append(run)
    show_visits(by_visit)
    show_tried(catalog, priors, [run for _, run in fits])


if __name__ == "__main__":
    main()
