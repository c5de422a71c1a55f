"""Constants of three kinds of published runs, as the catalog's rows cite them: what releases before overlapped scheduling wait for on
MI300X, what vLLM's first loop waits for anywhere, and how far first tokens of equal requests lie between their two regimes.

    python -m tests.bench.wait_constants

Printed: output rates of AMD's runs under vLLM before 0.14 for pairs of ``waited_step_us`` and ``waited_sequence_us``, with each release
left out; times per token of runs under vLLM before 0.8 for values of ``first_loop_step_us``, with each source and device left out (two
minutes); then ``interval_regimes_share``, the part of the way from the geometric middle of the
regimes to either within which nine of ten loops of a model lie: alone, and beside what else the interval holds.
"""

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from catalog.read import Catalog, read_catalog
from catalog.read_serving import read_public_runs
from catalog.rows import ConstantRow
from catalog.serving_rows import PublicRunRow
from service.corrections.measurements import catalog_priors
from service.corrections.public_runs import asked, predicted_runs
from service.corrections.snapshot import in_force
from solver.engine.releases import has_first_loop
from solver.replay.long_run import replayed
from tests.bench.public_fits import measurement_of

STEP, SEQUENCE = "waited_step_us", "waited_sequence_us"
PAIRS = ((0.0, 0.0), (100.0, 3.0), (300.0, 0.0), (300.0, 10.0), (300.0, 30.0), (600.0, 10.0), (600.0, 45.0))
FIRST_STEP, FIRST_STEPS = "first_loop_step_us", (600.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0, 4000.0)
"""The first is what later releases that wait have."""
SHARE, REGIMES = 0.9, "interval_regimes_share"
LEAST_APART, LEAST_RUNS = 0.05, 20
"""Of the middle to either regime, in logarithms: nearer ones do not tell where between them a run lies. And runs of a group."""


def with_waits(catalog: Catalog, family: str, pair: tuple[float, float]) -> Catalog:
    """The catalog with other waits of a family under vLLM."""
    values = dict(zip((STEP, SEQUENCE), pair, strict=True))

    def changed(row: ConstantRow) -> ConstantRow:
        own = row.name in values and (row.family, row.engine) == (family, "vllm")
        return row.model_copy(update={"value": values[row.name], "low": 0.0}) if own else row

    return replace(catalog, constants=tuple(map(changed, catalog.constants)))


def rate_errors(catalog: Catalog, runs: Sequence[PublicRunRow]) -> dict[str, list[float]]:
    """Of output rates in per cent, by release."""
    found: dict[str, list[float]] = defaultdict(list)
    for run, told in zip(runs, predicted_runs(catalog, runs), strict=True):
        if told is not None and run.output_tokens_per_s:
            error = 100.0 * abs(told.output_tokens_per_s.expected / run.output_tokens_per_s - 1.0)
            found[run.engine_version or ""].append(error)
    return found


def mean(errors: Mapping[str, list[float]], without: str = "") -> float:
    return statistics.fmean(error for release, own in errors.items() if release != without for error in own)


def print_waits(catalog: Catalog, runs: Sequence[PublicRunRow]) -> None:
    own = [run for run in runs if run.source == "amd-rocm-hub" and run.device == "mi300x" and run.engine == "vllm"]
    known = {pair: rate_errors(with_waits(catalog, "cdna3", pair), own) for pair in PAIRS}
    sys.stdout.write(f"| {STEP} | {SEQUENCE} | output rate off, % |\n|---|---|---|\n")
    for pair, errors in known.items():
        sys.stdout.write(f"| {pair[0]:g} | {pair[1]:g} | {mean(errors):.1f} |\n")
    sys.stdout.write("\n| release left out | pair of least error over the others | off there, % |\n|---|---|---|\n")
    for release in sorted(known[PAIRS[0]]):
        best = min(PAIRS, key=lambda pair: mean(known[pair], without=release))
        off = statistics.fmean(known[best][release])
        sys.stdout.write(f"| {release} | {best[0]:g}, {best[1]:g} | {off:.1f} |\n")


def with_first_loop(catalog: Catalog, step_us: float) -> Catalog:
    """The catalog with another wait of a first loop."""
    changed = (
        row.model_copy(update={"value": step_us, "low": 0.0}) if row.name == FIRST_STEP else row
        for row in catalog.constants
    )
    return replace(catalog, constants=tuple(changed))


def times_off(catalog: Catalog, runs: Sequence[PublicRunRow]) -> dict[tuple[str, str], list[float]]:
    """Logarithms of measured over predicted times per token, or of output rates where the source has no others; by source and device."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run, told in zip(runs, predicted_runs(catalog, runs), strict=True):
        if told is None:
            continue
        if run.tpot_ms:
            found[run.source, run.device].append(math.log(run.tpot_ms / told.tpot_ms.mean.expected))
        elif run.output_tokens_per_s:
            found[run.source, run.device].append(math.log(told.output_tokens_per_s.expected / run.output_tokens_per_s))
    return found


def percent_off(logarithms: Sequence[float]) -> float:
    """Mean error of predictions in per cent."""
    return 100.0 * statistics.fmean(abs(math.expm1(-one)) for one in logarithms)


def print_first_loop(catalog: Catalog, runs: Sequence[PublicRunRow]) -> None:
    own = [run for run in runs if has_first_loop(run.engine, run.engine_version)]
    known = {step_us: times_off(with_first_loop(catalog, step_us), own) for step_us in FIRST_STEPS}
    print_row(
        "",
        FIRST_STEP,
        "runs",
        "time per token off, %",
        "each source and device once",
        "measured over predicted, median",
    )
    for step_us, groups in known.items():
        every = [one for group in groups.values() for one in group]
        ratio = f"{math.exp(statistics.median(every)):.2f}"
        print_row(f"{step_us:g}", str(len(every)), f"{percent_off(every):.1f}", f"{without(groups):.1f}", ratio)
    print_row(
        "",
        "left out",
        "runs",
        f"{FIRST_STEP} of least error over the others",
        "off there, %",
        "with what later releases have",
    )
    for group, later in sorted(known[FIRST_STEPS[0]].items()):
        best = min(FIRST_STEPS, key=lambda step_us: without(known[step_us], group))
        told = f"{percent_off(known[best][group]):.0f}"
        print_row(", ".join(group), str(len(later)), f"{best:g}", told, f"{percent_off(later):.0f}")


def print_row(*cells: str) -> None:
    """A row of a table; a first cell that is empty begins one, whose titles are the others."""
    if cells[0]:
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
    else:
        sys.stdout.write(f"\n| {' | '.join(cells[1:])} |\n|{'---|' * (len(cells) - 1)}\n")


def without(groups: Mapping[tuple[str, str], list[float]], left_out: tuple[str, str] | None = None) -> float:
    """Mean over groups of their mean errors, each counted once."""
    return statistics.fmean(percent_off(own) for group, own in groups.items() if group != left_out)


def print_regimes(catalog: Catalog, runs: Sequence[PublicRunRow]) -> None:
    told = [run for run in runs if regimes_matter(run)]
    share = [
        row.model_copy(update={"value": 0.0, "low": 0.0}) if row.name == REGIMES else row for row in catalog.constants
    ]
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    alone: dict[str, list[float]] = defaultdict(list)
    beside: dict[str, list[float]] = defaultdict(list)
    for run, found in zip(told, predicted_runs(replace(catalog, constants=tuple(share)), told), strict=True):
        one = measurement_of(catalog, priors, asked(run))
        ratio = replayed(one.configuration, one.configuration.tables(), one.traffic, one.load).mean.at_once_ratio
        half_way = 0.5 * abs(math.log(ratio))
        if found is None or run.ttft_ms is None or half_way < LEAST_APART:
            continue
        mean_ms = found.ttft_ms.mean
        off = math.log(run.ttft_ms / mean_ms.expected)
        rest = math.log((mean_ms.high if off > 0.0 else mean_ms.low) / mean_ms.expected)
        title = f"{run.source}, {run.llm} under {run.engine} on {run.device}"
        alone[title].append(abs(off) / half_way)
        beside[title].append(math.sqrt(max(off**2 - rest**2, 0.0)) / half_way)
    sys.stdout.write(
        "\n| loops of equal requests | runs | nine of ten within | beside the rest of the interval |\n|---|---|---|---|\n"
    )
    for title, shares in sorted(alone.items()):
        if len(shares) >= LEAST_RUNS:
            sys.stdout.write(
                f"| {title} | {len(shares)} | {nine_of_ten(shares):.2f} | {nine_of_ten(beside[title]):.2f} |\n"
            )


def regimes_matter(run: PublicRunRow) -> bool:
    equal = run.prompt_tokens_low == run.prompt_tokens_high and run.output_tokens_low == run.output_tokens_high
    return (
        equal
        and run.load == "closed"
        and run.requests is None
        and run.ttft_ms is not None
        and (run.concurrency or 0) > 1
    )


def nine_of_ten(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(SHARE * len(values)) - 1]


def main() -> None:
    catalog, runs = read_catalog(), read_public_runs()
    print_waits(catalog, runs)
    print_first_loop(catalog, runs)
    print_regimes(catalog, runs)


if __name__ == "__main__":
    main()
